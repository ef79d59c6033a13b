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
	path := RightBeside(a.GetPath())
	if decision != authorizer.DecisionAllow || a.IsResourceRequest() || path == "" {
		return decision, why, err
	}
	return b.Authorizer.Authorize(ctx, authorizer.AttributesRecord{User: a.GetUser(), Verb: a.GetVerb(), Path: path})
}

// RightBeside returns the path that a user must be allowed to get beside a path of the API, "" for any other path.
func RightBeside(path string) string {
	switch {
	case !strings.HasPrefix(path, api.Prefix):
		return ""
	case path == api.Prefix+"whatif":
		return whatIfPath
	}
	return viewerPath
}
