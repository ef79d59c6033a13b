package observe

import (
	"context"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/berthproject/berth/edge/api"
)

// The rights to these paths are needed beside those to the API's.
const (
	viewerPath = "/debug/status" // for all of the API but what-ifs
	whatIfPath = "/debug/whatif"
)

// beyondDiscovery asks for a right outside of /api/ beside each right to the API: every cluster has the ClusterRole
// system:discovery, which lets every user get /api/*, for the API server's own paths of that name.
type beyondDiscovery struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (b beyondDiscovery) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, why, err := b.Authorizer.Authorize(ctx, a)
	if err != nil || decision != authorizer.DecisionAllow || a.IsResourceRequest() || !strings.HasPrefix(a.GetPath(), api.Prefix) {
		return decision, why, err
	}
	path := viewerPath
	if a.GetPath() == api.Prefix+"whatif" {
		path = whatIfPath
	}
	return b.Authorizer.Authorize(ctx, authorizer.AttributesRecord{User: a.GetUser(), Verb: a.GetVerb(), Path: path})
}
