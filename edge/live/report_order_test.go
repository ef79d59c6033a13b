package live

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core/step"
)

// reportAPI is an API server that answers writes of a pod's status as it is told, and other calls
// with success. Like a real one it carries out what has reached it, whether or not the client
// still waits.
type reportAPI struct {
	takes      time.Duration // to answer a write of a status
	code       int
	retryAfter string

	mu      sync.Mutex
	carried []string // what was carried out, in that order; guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (a *reportAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	body, call := `{"kind":"Status","apiVersion":"v1","status":"Success"}`, "event"
	switch {
	case strings.HasSuffix(r.URL.Path, "/binding"):
		call = "bind"
	case r.Method == http.MethodPatch:
		call, body, answer.StatusCode = "status", `{"kind":"Pod","apiVersion":"v1"}`, a.code
		if a.retryAfter != "" {
			answer.Header.Set("Retry-After", a.retryAfter)
		}
		select {
		case <-time.After(a.takes):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	a.mu.Lock()
	a.carried = append(a.carried, call)
	a.mu.Unlock()
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

// TestNothingIsReportedOfAPodAfterItsBinding hands out the bind of a pod a second after a report of
// it: the bind waits for the call that is under way, and there is no call of the report after it.
func TestNothingIsReportedOfAPodAfterItsBinding(t *testing.T) {
	for _, c := range []struct {
		name    string
		api     *reportAPI
		want    []string      // what the API server carries out
		bound   time.Duration // when the bind has its outcome
		written bool          // the report was
	}{
		{"answered", &reportAPI{code: 200}, []string{"status", "event", "bind"}, time.Second, true},
		{"answered late", &reportAPI{takes: 3 * time.Second, code: 200}, []string{"status", "bind"}, 3 * time.Second, true},
		{"tried again", &reportAPI{takes: 900 * time.Millisecond, code: 504}, []string{"status", "bind"}, 1800 * time.Millisecond, false},
		{"tried again by client-go", &reportAPI{code: 429, retryAfter: "5"}, []string{"status", "bind"}, time.Second, false},
		{"answered never", &reportAPI{takes: time.Hour, code: 200}, []string{"bind"}, time.Second + longestAfter, false},
	} {
		for _, nominates := range []bool{false, true} {
			name := c.name + ", a condition"
			if nominates {
				name = c.name + ", a nomination"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					api := &reportAPI{takes: c.api.takes, code: c.api.code, retryAfter: c.api.retryAfter}
					var bound time.Duration
					outcome := reportThenBind(t, api, nominates, time.Second, &bound)
					want := slices.DeleteFunc(slices.Clone(c.want), func(call string) bool { return nominates && call == "event" })
					if c.api.code == 504 {
						want = slices.Insert(want, 0, "status") // the second attempt is under way when the bind is handed out
					}
					if !slices.Equal(api.carried, want) {
						t.Errorf("the API server carried out %v, want %v", api.carried, want)
					}
					if bound.Truncate(100*time.Millisecond) != c.bound {
						t.Errorf("the bind has its outcome after %s, want %s", bound, c.bound)
					}
					if nominates && (outcome == nil) != c.written || outcome != nil && !errors.Is(outcome, errBinding) {
						t.Errorf("the nomination's outcome is %v, want success: %v", outcome, c.written)
					}
				})
			})
		}
	}
}

// reportThenBind writes a pod's condition or nomination, and binds the pod some time later. It
// notes when the bind has its outcome, waits another minute, and returns the nomination's outcome.
func reportThenBind(t *testing.T, api http.RoundTripper, nominates bool, later time.Duration, bound *time.Duration) (outcome error) {
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	clients, err := newClients(&rest.Config{Host: "http://api", Transport: api, QPS: -1}, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkers(ctx, Options{Log: slog.New(slog.DiscardHandler)}, clients, &load{})
	w.reporter.run(ctx, &wg)
	w.binder.run(ctx, &wg)
	begin := time.Now()
	if nominates {
		w.Nominate(step.Nomination{UID: "p", Namespace: "default", Name: "p", Node: "n"}, func(err error) { outcome = err })
	} else {
		event := step.Event{Kind: "Pod", Namespace: "default", Name: "p", Reason: "FailedScheduling", Warning: true}
		w.Condition(step.Condition{UID: "p", Namespace: "default", Name: "p", Event: &event})
	}
	time.Sleep(later)
	w.Bind(step.Bind{UID: "p", Namespace: "default", Name: "p", Node: "n"}, func(err error) {
		if *bound = time.Since(begin); err != nil {
			t.Errorf("the bind failed: %v", err)
		}
	})
	time.Sleep(time.Minute)
	synctest.Wait()
	return outcome
}
