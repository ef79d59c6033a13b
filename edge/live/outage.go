package live

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// This file has lists and watches wait for an API server that is away. client-go's reflectors
// try again after 1 s, which doubles with every failure, up to 30 to 60 s, and begins anew only
// after two minutes without one: after an outage of seconds Berth would be blind for most of a
// minute. So a request that can't reach the server isn't answered with an error: it is sent when
// the server says that it is ready.

const (
	// readyEvery is how long after an unanswered question the server is asked again.
	readyEvery = 250 * time.Millisecond
	// readyTimeout is how long an answer may take.
	readyTimeout = 2 * time.Second
	// unreadyFor is how long a server that answers may say that it isn't ready. Somebody between
	// here and the server may answer for it, or forbid the question.
	unreadyFor = 5 * time.Second
)

// outages are those that the requests of one client notice.
type outages struct {
	log     *slog.Logger
	waiting atomic.Int64 // requests that wait for the server
}

// patient sends a request that reads again when the server is back that it could not reach.
type patient struct {
	http.RoundTripper
	*outages
}

// RoundTrip implements http.RoundTripper.
func (t patient) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		resp, err := t.RoundTripper.RoundTrip(r)
		if err == nil || r.Method != http.MethodGet || !unreachable(err) {
			return resp, err
		}
		if t.waiting.Add(1) == 1 {
			t.log.Warn("the API server is unreachable; waiting for it before listing and watching", "err", err)
		}
		ready := t.waitUntilReady(r)
		if t.waiting.Add(-1) == 0 && ready {
			t.log.Info("the API server is reachable again")
		}
		if !ready {
			return nil, err
		}
	}
}

// unreachable reports whether no connection could be made.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// waitUntilReady returns true when the server of a request is ready, or has answered for
// unreadyFor that it isn't; false when the request's context ends before.
func (t patient) waitUntilReady(r *http.Request) bool {
	var answered time.Time // when it answered first; zero while it hasn't
	for {
		select {
		case <-r.Context().Done():
			return false
		case <-time.After(readyEvery):
		}
		switch code := t.askReady(r); {
		case code == 0:
			answered = time.Time{}
		case code == http.StatusOK, !answered.IsZero() && time.Since(answered) >= unreadyFor:
			return true
		case answered.IsZero():
			answered = time.Now()
		}
	}
}

// askReady returns the status with which the server of a request answers /readyz, 0 for no
// answer.
func (t patient) askReady(r *http.Request) (code int) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	question := r.Clone(ctx) // with the credentials
	question.URL.Path, question.URL.RawPath, question.URL.RawQuery = "/readyz", "", ""
	resp, err := t.RoundTripper.RoundTrip(question)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
