package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// event is one of a stream.
type event struct{ id, name, data string }

// serve serves an API until the test ends, and its streams with it.
func serve(t *testing.T, a http.Handler) *httptest.Server {
	server := httptest.NewServer(a)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// follow opens a stream and returns its events, until the test ends.
func follow(t *testing.T, server *httptest.Server, last string) <-chan event {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+api.Prefix+"stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("got %s, %s", resp.Status, got)
	}
	out := make(chan event, 100)
	go func() {
		defer close(out)
		e := event{}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					out <- e
				}
				e = event{}
			}
		}
	}()
	return out
}

// TestStream follows a cluster: first the overview, then decisions as they come, and those that a viewer has
// missed; the end when another leads.
func TestStream(t *testing.T) {
	x := newExample(t)
	o := x.options()
	var leading atomic.Bool
	leading.Store(true)
	meta := o.Meta
	o.Meta = func() v1alpha1.Meta { m := meta(); m.Leading, m.Leader = leading.Load(), "berth-b_1"; return m }
	server := serve(t, api.New(o))
	decide := func(from, to uint64) {
		for seq := from; seq <= to; seq++ {
			x.history.Step(time.Time{}, 0, nil, &step.Ready{Decisions: []step.Decision{{Seq: seq, Kind: step.Placed, Pod: "default/p"}}})
		}
	}
	events := follow(t, server, "")
	if e := <-events; e.name != "overview" || e.id != "1p3k.43" || !strings.Contains(e.data, `"placed":16`) {
		t.Fatalf("the first event is %+v", e)
	}
	decide(44, 45)
	streamed := func(e event) (d v1alpha1.StreamedDecisions) {
		t.Helper()
		if err := json.Unmarshal([]byte(e.data), &d); err != nil || e.name != "decisions" || len(d.Items) == 0 {
			t.Fatalf("got %+v, want decisions", e)
		}
		return d
	}
	e := <-events
	if d := streamed(e); len(d.Items) != 2 || d.Items[0].Seq != 44 || d.Dropped != 0 || d.Reset {
		t.Errorf("got %+v", d)
	}
	decide(46, 400)
	// Somebody who comes back has what is newest, and is told how much is left out.
	if d := streamed(<-follow(t, server, e.id)); len(d.Items) != 200 || d.Items[199].Seq != 400 || d.Dropped != 155 || d.Reset {
		t.Errorf("coming back: got %d to %d, %d dropped", len(d.Items), d.Items[len(d.Items)-1].Seq, d.Dropped)
	}
	// Somebody who has followed another leader begins anew.
	for _, id := range []string{"other.7", "1p3k.900", "nonsense"} {
		d := v1alpha1.StreamedDecisions{}
		if e := <-follow(t, server, id); e.name != "decisions" || json.Unmarshal([]byte(e.data), &d) != nil || !d.Reset || len(d.Items) > 0 {
			t.Errorf("after %s: got %+v", id, e)
		}
	}
	leading.Store(false)
	for e = range events {
	}
	if e.name != "end" || !strings.Contains(e.data, "berth-b_1") {
		t.Errorf("the last event is %+v", e)
	}
}

// TestStreamsAreBounded: one viewer has few of them.
func TestStreamsAreBounded(t *testing.T) {
	server := serve(t, api.New(newExample(t).options()))
	for range 8 {
		<-follow(t, server, "")
	}
	resp, err := server.Client().Get(server.URL + api.Prefix + "stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the ninth stream: got %s", resp.Status)
	}
	if code, body := get(server.Config.Handler, "overview"); code != http.StatusOK {
		t.Errorf("overview: got %d %s", code, body)
	}
}

// stalled is a viewer's connection that takes nothing: each write ends by its deadline.
type stalled struct {
	http.ResponseWriter
	deadline time.Time
	wrote    int
}

// SetWriteDeadline is called by http.ResponseController.
func (s *stalled) SetWriteDeadline(at time.Time) error { s.deadline = at; return nil }

// Write implements io.Writer.
func (s *stalled) Write(b []byte) (int, error) {
	if s.wrote++; s.deadline.IsZero() {
		return 0, fmt.Errorf("written without a deadline")
	}
	return 0, &net.OpError{Op: "write", Err: context.DeadlineExceeded}
}

// full is a viewer's connection that takes nothing until it is released.
type full struct {
	http.ResponseWriter
	writing, taken chan struct{}
}

// Write implements io.Writer.
func (f *full) Write(b []byte) (int, error) {
	if string(b) == "\n" { // what ends an answer
		return 1, nil
	}
	f.writing <- struct{}{}
	<-f.taken
	return len(b), nil
}

// TestAnswersThatNobodyReadsAreBounded: many viewers who read nothing take a bounded memory, and the others
// are answered once it is free.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	a := api.New(newExample(t).options())
	writing, taken := make(chan struct{}), make(chan struct{})
	_, answer := get(a, "schema")
	many := 64<<20/len(answer) + 10
	var viewers sync.WaitGroup
	for range many {
		viewers.Go(func() {
			w := &full{httptest.NewRecorder(), writing, taken}
			a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"schema", nil))
		})
	}
	for range many {
		<-writing
	}
	if code, body := get(a, "schema"); code != http.StatusServiceUnavailable {
		t.Errorf("while %d answers wait: got %d %.60s", many, code, body)
	}
	close(taken)
	viewers.Wait()
	if code, _ := get(a, "schema"); code != http.StatusOK {
		t.Errorf("later: got %d", code)
	}
}

// TestAStalledViewerIsCutOff at the first write that he doesn't take in time, and costs nobody a stream.
func TestAStalledViewerIsCutOff(t *testing.T) {
	a := api.New(newExample(t).options())
	for range 100 { // more than there may be at a time
		w := &stalled{ResponseWriter: httptest.NewRecorder()}
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"stream", nil))
		if left := time.Until(w.deadline); w.wrote != 1 || w.deadline.IsZero() || left > 11*time.Second {
			t.Fatalf("there were %d writes, by %s; want one, with 10 s to take it", w.wrote, w.deadline)
		}
	}
}
