package observe

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/berthproject/berth/edge/api"
)

// TestDiscoveryIsNoRight has a user who may get what every user may, and then the rights beside it.
func TestDiscoveryIsNoRight(t *testing.T) {
	granted := map[string]bool{"/api/v1alpha1/overview": true, "/api/v1alpha1/whatif": true, "/metrics": true}
	b := beyondDiscovery{authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if granted[a.GetPath()] {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	may := func(path string, want bool) {
		t.Helper()
		d, _, err := b.Authorize(t.Context(), authorizer.AttributesRecord{Verb: "get", Path: path})
		if err != nil || (d == authorizer.DecisionAllow) != want {
			t.Errorf("%s: %v, %v; want allowed: %t", path, d, err, want)
		}
	}
	may("/metrics", true)
	may("/api/v1alpha1/overview", false)
	granted[viewerPath] = true
	may("/api/v1alpha1/overview", true)
	may("/api/v1alpha1/whatif", false)
	granted[whatIfPath] = true
	may("/api/v1alpha1/whatif", true)
}

// TestPathsOfFormerVersionsAreForThoseWhoMayReadAllPods: nothing in their answers is cut to what a viewer may read.
func TestPathsOfFormerVersionsAreForThoseWhoMayReadAllPods(t *testing.T) {
	l := newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	s.rights = api.NewRights(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "list" && a.GetResource() == "pods" && a.GetNamespace() == "" && a.GetUser().GetName() == "admin" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}))
	s.BecomeLeader()
	s.State(l.core)
	for _, path := range []string{"/debug/status", "/debug/explain?names=pods", "/debug/shadow"} {
		for name, refused := range map[string]bool{"admin": false, "jane": true} {
			ctx := apirequest.WithUser(t.Context(), &user.DefaultInfo{Name: name})
			if code, body := get(ctx, s, l.core, path); (code == http.StatusForbidden) != refused || refused && !strings.Contains(body, "query /api/v1alpha1/ instead") {
				t.Errorf("%s as %s: %d %s", path, name, code, body)
			}
		}
	}
}
