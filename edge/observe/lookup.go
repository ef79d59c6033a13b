package observe

import (
	"context"
	"io"
	"net/http"
	"time"
)

// This file bounds how long the API server may take to say who may ask. Before the server runs it is
// asked for the certificates that clients may have (the ConfigMap extension-apiserver-authentication), and
// the library sets no limit: an API server that takes the call and never answers it would keep Berth from
// serving, its probes included, and from leading.

// lookUpLimit is how long one call may take. It is that of the library's other calls.
const lookUpLimit = 10 * time.Second

// boundCalls returns a transport whose calls end after lookUpLimit: those that have no limit of their own
// and don't watch.
func boundCalls(to http.RoundTripper) http.RoundTripper { return boundedCalls{to} }

// boundedCalls implements http.RoundTripper.
type boundedCalls struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper. The limit holds until the answer is read.
func (b boundedCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, limited := r.Context().Deadline(); limited || r.URL.Query().Get("watch") != "" {
		return b.to.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookUpLimit)
	answer, err := b.to.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = &endingBody{answer.Body, cancel}
	return answer, nil
}

// endingBody is the body of an answer whose limit ends when it is closed.
type endingBody struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
