package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// This file keeps a pod's report and its binding apart. What must hold: once a bind has been
// handed out, no request of a report of its pod is sent, and the bind waits for the one that has
// been. A report names the pod's UID only, so the API server would carry it out after the binding:
// the bound pod would be shown as unschedulable.

// errBinding is the outcome of a nomination that wasn't written since the pod is
// being bound.
var errBinding = errors.New("the pod is being bound")

// reportCall is the writing of a report, from the worker that begins it to its last request.
type reportCall struct {
	report
	uid   types.UID
	ended chan struct{} // closed when no further request is sent

	mu        sync.Mutex
	withdrawn bool               // guarded by mu
	sent      bool               // a request has no answer yet; guarded by mu
	cancel    context.CancelFunc // nil before begin; guarded by mu
}

type reportCallKey struct{}

// begin returns the context for the requests of the call. It ends with withdraw, but for a request
// that has been sent: whether the API server carries out one that is cancelled isn't known.
func (c *reportCall) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, reportCallKey{}, c))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel = cancel; c.withdrawn {
		cancel()
	}
	return ctx, cancel
}

// withdraw has no further request sent.
func (c *reportCall) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withdrawn = true
	if c.cancel != nil && !c.sent {
		c.cancel()
	}
}

// isWithdrawn reports whether withdraw was called.
func (c *reportCall) isWithdrawn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withdrawn
}

// outcome returns the call's error, which is errBinding, too, when the call was withdrawn.
func (c *reportCall) outcome(err error) error {
	if err != nil && c.isWithdrawn() {
		return fmt.Errorf("%w: %w", errBinding, err)
	}
	return err
}

// send reports whether a request may be sent, and records that it has been.
func (c *reportCall) send() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = !c.withdrawn
	return c.sent
}

// answered records that a request has its answer. One that failed would be sent again later, by
// client-go or persist.
func (c *reportCall) answered(failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = false
	if c.withdrawn && failed {
		c.cancel()
	}
}

// await waits until the call has ended, longestAfter at most: then its request is cancelled. A nil
// call has ended.
func (c *reportCall) await(ctx context.Context) {
	if c == nil {
		return
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
	case <-time.After(longestAfter):
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.cancel != nil {
			c.cancel()
		}
	}
}

// withdrawable sends the requests of a configuration's reportCalls unless they are withdrawn.
// It is inside of the configuration's other wrappers: the fence may have a request wait.
func withdrawable(cfg *rest.Config) {
	cfg.WrapTransport = transport.Wrappers(func(next http.RoundTripper) http.RoundTripper { return withdrawableTransport{next} }, cfg.WrapTransport)
}

type withdrawableTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t withdrawableTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, _ := r.Context().Value(reportCallKey{}).(*reportCall)
	if c == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	if !c.send() {
		if r.Body != nil {
			_ = r.Body.Close() // as the contract of RoundTripper asks
		}
		return nil, errBinding
	}
	answer, err := t.RoundTripper.RoundTrip(r)
	c.answered(err != nil || answer.StatusCode >= http.StatusBadRequest)
	return answer, err
}
