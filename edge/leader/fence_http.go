package leader

import (
	"io"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Config returns a copy of an API client's configuration: clients that are made from it read
// whenever they like, and write while the fence is open.
func (f *Fence) Config(base *rest.Config) *rest.Config {
	out := rest.CopyConfig(base)
	if f != nil {
		out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fencedTransport{f, next} })
	}
	return out
}

// fencedTransport is the last that a request passes before it gets a connection: it has waited
// for its rate limit by then, and each attempt of client-go's comes through here again.
type fencedTransport struct {
	fence *Fence
	next  http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*fencedTransport)(nil)

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *fencedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(r)
	}
	ctx, leave, err := t.fence.Enter(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as the contract of RoundTripper asks
		}
		return nil, err
	}
	answer, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		leave()
		return nil, err
	}
	answer.Body = &fencedBody{answer.Body, sync.OnceFunc(leave)}
	return answer, nil
}

// fencedBody is the body of an answer. The request is over when it is closed.
type fencedBody struct {
	io.ReadCloser
	leave func()
}

// Close implements io.Closer.
func (b *fencedBody) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}
