package live

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// This file has a shadow write nothing, by what it is made of: its clients refuse whatever isn't
// reading. That a shadow's core asks for no work, and that nobody would do it, are other things;
// these refuse it whoever asks.

// ReadOnly returns a copy of an API client's configuration: clients that are made from it get,
// list and watch, and every other request fails before it is sent.
func ReadOnly(base *rest.Config) *rest.Config {
	out := rest.CopyConfig(base)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnlyTransport{next} })
	return out
}

// ErrShadow is why a shadow doesn't do what it was asked for.
var ErrShadow = fmt.Errorf("a shadow only reads")

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
