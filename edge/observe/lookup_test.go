package observe

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent is an API server that takes calls and never answers, or an answer that it begins.
type silent struct{ begins bool }

// RoundTrip implements http.RoundTripper.
func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.begins {
		return &http.Response{Body: io.NopCloser(ending{r.Context()})}, nil
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// ending is a text without an end, which a context ends.
type ending struct{ ctx context.Context }

// Read implements io.Reader.
func (e ending) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

// TestCallsThatSayWhoMayAskEnd, as they are made when the server is set up: before it serves.
func TestCallsThatSayWhoMayAskEnd(t *testing.T) {
	for _, c := range []struct {
		name, query string
		server      silent
		own, want   time.Duration // own: the limit of the caller
	}{
		{"no answer", "", silent{}, 0, lookUpLimit},
		{"an answer without an end", "", silent{begins: true}, 0, lookUpLimit},
		{"a call with a limit of its own", "", silent{}, time.Minute, time.Minute},
		{"a watch", "?watch=true", silent{}, 0, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				time.AfterFunc(time.Hour, end)
				if c.own > 0 {
					var late context.CancelFunc
					ctx, late = context.WithTimeout(ctx, c.own)
					defer late()
				}
				begun := time.Now()
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"+c.query, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := NewServing().authentication.CustomRoundTripperFn(c.server).RoundTrip(r)
				if err == nil {
					_, err = io.ReadAll(answer.Body)
					err = errors.Join(err, answer.Body.Close())
				}
				if took := time.Since(begun); took != c.want || err == nil || !strings.Contains(err.Error(), "context") {
					t.Errorf("it ends after %s with %v, want after %s with the error of the context", took, err, c.want)
				}
			})
		})
	}
}
