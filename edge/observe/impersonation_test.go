package observe

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// TestActingAsSomebodyElse: who may impersonate a user is answered as that user, with that user's rights and no
// others; who may not is refused.
func TestActingAsSomebodyElse(t *testing.T) {
	var asked string
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if u, ok := apirequest.UserFrom(r.Context()); ok {
			asked = u.GetName()
		}
	})
	for _, x := range []struct {
		name, as string
		code     int
		asked    string
	}{
		{"admin", "", http.StatusOK, "admin"}, {"admin", "viewer", http.StatusOK, "viewer"}, {"admin", "stranger", http.StatusForbidden, ""}, {"viewer", "admin", http.StatusForbidden, ""},
	} {
		authn := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: x.name}}, true, nil
		})
		authz := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			may := a.GetUser().GetName() == "admin" || a.GetVerb() == "get" && a.GetUser().GetName() == "viewer"
			if may {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})
		r := httptest.NewRequest(http.MethodGet, "/api/v1alpha1/overview", nil)
		if x.as != "" {
			r.Header.Set("Impersonate-User", x.as)
		}
		w := httptest.NewRecorder()
		asked = ""
		protect(h, authn, authz).ServeHTTP(w, r)
		if w.Code != x.code || asked != x.asked {
			t.Errorf("%s as %q: status %d, asked as %q; want %d and %q", x.name, x.as, w.Code, asked, x.code, x.asked)
		}
	}
}
