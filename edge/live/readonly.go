package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// This file has a shadow write nothing, by what it is made of: its clients refuse whatever isn't
// reading, and so does its provider. That a shadow's core asks for no work, and that nobody would
// do it, are other things; these refuse it whoever asks.

// ReadOnly returns a copy of an API client's configuration: clients that are made from it get,
// list and watch, and every other request fails before it is sent.
func ReadOnly(base *rest.Config) *rest.Config {
	out := rest.CopyConfig(base)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnlyTransport{next} })
	return out
}

// ErrShadow is why a shadow doesn't do what it was asked for.
var ErrShadow = errors.New("a shadow only reads")

// readOnlyTransport is the last that a request passes before it gets a connection.
type readOnlyTransport struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = readOnlyTransport{}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t readOnlyTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t readOnlyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // as the contract of RoundTripper asks
	}
	return nil, fmt.Errorf("%w; %s %s was not sent", ErrShadow, r.Method, r.URL.Path)
}

// readOnlyProvider is a provider that tells of its groups and doesn't change them.
type readOnlyProvider struct{ provider nodegroup.Provider }

var _ nodegroup.Provider = readOnlyProvider{}

// Groups implements nodegroup.Provider.
func (p readOnlyProvider) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	return p.provider.Groups(ctx)
}

// GroupOf implements nodegroup.Provider.
func (p readOnlyProvider) GroupOf(node *v1.Node) string { return p.provider.GroupOf(node) }

// IncreaseSize implements nodegroup.Provider.
func (readOnlyProvider) IncreaseSize(_ context.Context, group string, delta int) error {
	return fmt.Errorf("%w; node group %s was not increased by %d", ErrShadow, group, delta)
}

// DeleteNodes implements nodegroup.Provider.
func (readOnlyProvider) DeleteNodes(_ context.Context, group string, instances []nodegroup.Instance) error {
	return fmt.Errorf("%w; %d nodes of node group %s were not deleted", ErrShadow, len(instances), group)
}

// DecreaseTargetSize implements nodegroup.Provider.
func (readOnlyProvider) DecreaseTargetSize(_ context.Context, group string, delta int) error {
	return fmt.Errorf("%w; the target size of node group %s was not decreased by %d", ErrShadow, group, delta)
}
