package observe

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
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
