package reach

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berthproject/berth/edge/api"
)

// instance is a Berth whose answers say which it is.
type instance struct {
	*httptest.Server
	leads   atomic.Bool
	headers atomic.Pointer[http.Header] // of the last request
}

func newInstance(t *testing.T, name string) *instance {
	i := &instance{}
	i.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := r.Header.Clone()
		i.headers.Store(&headers)
		switch {
		case !i.leads.Load() && r.URL.Path == "/api/v1alpha1/meta": // which is answered
			w.Header().Set(api.StandbyHeader, "true")
			fmt.Fprint(w, name, " stands by")
		case !i.leads.Load():
			w.Header().Set(api.StandbyHeader, "true")
			http.Error(w, `{"error":"standing by"}`, http.StatusServiceUnavailable)
		case r.URL.Path == "/api/v1alpha1/forbidden":
			http.Error(w, "no", http.StatusForbidden)
		case r.URL.Path == "/api/v1alpha1/old":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Set-Cookie", "secret=1")
			fmt.Fprint(w, name, " ", r.URL.RequestURI())
		}
	}))
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.StartTLS()
	t.Cleanup(i.Close)
	return i
}

// TestTheForwarderFollowsTheLeader: a request is answered by the one that leads, also when another has led
// before, or is gone.
func TestTheForwarderFollowsTheLeader(t *testing.T) {
	a, b := newInstance(t, "a"), newInstance(t, "b")
	leader, opened := a, 0
	f := &Forwarder{open: func() (*Connection, error) {
		opened++
		return &Connection{http: leader.Client(), base: leader.URL, to: "Berth", refused: refusedInTunnel, close: func() {}}, nil
	}}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for name, value := range map[string]string{"Cookie": "key=1", "Authorization": "Bearer stolen", "Origin": "http://x", "Accept": "text/event-stream", "Last-Event-ID": "e.7"} {
			r.Header.Set(name, value)
		}
		f.ServeHTTP(w, r)
		if w.Header().Get("Set-Cookie") != "" {
			t.Error("a cookie was passed on")
		}
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	a.leads.Store(true)
	for range 3 {
		if code, body := ask("/api/v1alpha1/nodes?q=a%20b"); code != http.StatusOK || body != "a /api/v1alpha1/nodes?q=a%20b" {
			t.Errorf("got %d %s", code, body)
		}
	}
	if h := *a.headers.Load(); h.Get("Cookie") != "" || h.Get("Authorization") != "" || h.Get("Origin") != "" || h.Get("Last-Event-ID") != "e.7" || opened != 1 {
		t.Errorf("%d connections, headers %v", opened, h)
	}
	if code, body := ask("/api/v1alpha1/forbidden"); code != http.StatusForbidden || !strings.Contains(body, "not authorized to get /api/v1alpha1/forbidden") {
		t.Errorf("got %d %s", code, body)
	}
	if code, body := ask("/api/v1alpha1/old"); code != http.StatusNotFound || !strings.Contains(body, "does not serve /api/v1alpha1/old: it is an older version of Berth") {
		t.Errorf("got %d %s", code, body)
	}
	// Another leads.
	a.leads.Store(false)
	b.leads.Store(true)
	leader = b
	if code, body := ask("/api/v1alpha1/overview"); code != http.StatusOK || body != "b /api/v1alpha1/overview" || opened != 2 {
		t.Errorf("with another leader: got %d %s by %d connections", code, body, opened)
	}
	// The page asks who answers until somebody leads: an instance that stands by answers, too, and isn't asked for ever.
	b.leads.Store(false)
	a.leads.Store(true)
	leader = a
	if code, body := ask("/api/v1alpha1/meta"); code != http.StatusOK || !strings.HasPrefix(body, "a ") {
		t.Errorf("who answers: got %d %s, want the one that leads", code, body)
	}
	a.leads.Store(false)
	if code, body := ask("/api/v1alpha1/meta"); code != http.StatusOK || body != "a stands by" {
		t.Errorf("who answers while nobody leads: got %d %s", code, body)
	}
	// Meanwhile the leader isn't looked for with each request.
	before := opened
	for range 5 {
		if code, body := ask("/api/v1alpha1/meta"); code != http.StatusOK || body != "a stands by" || opened != before {
			t.Errorf("who answers just after: got %d %s by %d connections, want those of before, %d", code, body, opened, before)
		}
	}
	f.stood = f.stood.Add(-againAfter) // some time later
	b.leads.Store(true)
	leader = b
	if code, body := ask("/api/v1alpha1/overview"); code != http.StatusOK || !strings.HasPrefix(body, "b ") {
		t.Errorf("with the other leader again: got %d %s", code, body)
	}
	// It goes, and nobody leads; then the first leads again.
	b.Close()
	a.leads.Store(false)
	leader = a
	if code, body := ask("/api/v1alpha1/overview"); code != http.StatusServiceUnavailable || !strings.Contains(body, "standing by") {
		t.Errorf("without a leader: got %d %s", code, body)
	}
	f.stood = f.stood.Add(-againAfter)
	a.leads.Store(true)
	if code, body := ask("/api/v1alpha1/overview"); code != http.StatusOK || !strings.HasPrefix(body, "a ") {
		t.Errorf("with a leader again: got %d %s", code, body)
	}
}

// TestTheForwarderSaysWhyThereIsNoLeader, and doesn't look for one with each request.
func TestTheForwarderSaysWhyThereIsNoLeader(t *testing.T) {
	opened := 0
	f := &Forwarder{open: func() (*Connection, error) { opened++; return nil, fmt.Errorf("no Lease kube-system/berth") }}
	for range 5 {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1alpha1/overview", nil))
		if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), `{"error":"no Lease kube-system/berth"}`) {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	if opened != 1 || f.Connect(t.Context()) == nil {
		t.Errorf("a leader was looked for %d times", opened)
	}
}
