package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// comingServer is an API server by the time: it can't be reached until up, and answers 403 to
// everything but /readyz, and 500 to that, until ready.
type comingServer struct {
	up, ready time.Time
	asked     []string
}

func (s *comingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now()
	answer := func(code int, text string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	switch {
	case now.Before(s.up):
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case r.URL.Path == "/readyz" && now.Before(s.ready):
		return answer(http.StatusInternalServerError, "not yet")
	case r.URL.Path == "/readyz":
		return answer(http.StatusOK, "ok")
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	if now.Before(s.ready) {
		return answer(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden"}`)
	}
	return answer(http.StatusOK, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n"}}]}`)
}

// TestListsWaitForAnAPIServerThatIsAway: what can't reach the server is asked when that is ready,
// within half a second, and not before.
func TestListsWaitForAnAPIServerThatIsAway(t *testing.T) {
	for _, c := range []struct {
		name      string
		up, ready time.Duration
		give      time.Duration // how long the caller waits; 0 for ever
		want      string
	}{
		{"it is there", 0, 0, 0, "1 nodes after 0s, 1 requests"},
		{"it is away for 40 s", 40 * time.Second, 40 * time.Second, 0, "1 nodes after 40s, 1 requests"},
		{"it isn't ready at once", 40 * time.Second, 42 * time.Second, 0, "1 nodes after 42s, 1 requests"},
		{"it says for ever that it isn't ready", 40 * time.Second, time.Hour, 0, "forbidden after 45s, 1 requests"},
		{"the caller goes", time.Minute, time.Minute, 10 * time.Second, "connection refused after 10s, 0 requests"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := &comingServer{up: start.Add(c.up), ready: start.Add(c.ready)}
			clients, err := newClients(&rest.Config{Host: "http://api", QPS: -1, Transport: s}, func() bool { return false }, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.give > 0 {
				time.AfterFunc(c.give, cancel)
			}
			nodes, err := clients.watch.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			got := fmt.Sprintf("%d nodes", len(nodes.Items))
			switch {
			case err != nil && strings.Contains(err.Error(), "refused"):
				got = "connection refused"
			case err != nil:
				got = "forbidden"
			}
			if got += fmt.Sprintf(" after %v, %d requests", time.Since(start), len(s.asked)); got != c.want {
				t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
			}
		})
	}
}

// TestWritesDoNotWaitForAnAPIServerThatIsAway: whoever writes decides how often it tries.
func TestWritesDoNotWaitForAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &comingServer{up: time.Now().Add(time.Hour)}
		p := patient{s, &outages{log: slog.New(slog.DiscardHandler)}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api/api/v1/nodes", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if resp, err := p.RoundTrip(r); err == nil || time.Since(start) > 0 {
			t.Errorf("answered %v after %v, want an error at once", resp, time.Since(start))
		}
	})
}
