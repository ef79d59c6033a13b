package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// This file specifies how a stream is read.

// TestEvents reads what servers may send.
func TestEvents(t *testing.T) {
	for _, x := range []struct{ name, sent, want string }{
		{"two events", "id: e.1\nevent: overview\ndata: {}\n\nevent: decisions\ndata: []\n\n", "e.1 overview {}|e.1 decisions []"},
		{"comments, and lines of which nothing is known", ": nothing new\n\nretry: 5\nevent: a\ndata: 1\n\n", " a 1"},
		{"data on several lines, without the space", "event:a\ndata:1\ndata: 2\n\n", " a 1\n2"},
		{"with carriage returns", "event: a\r\ndata: 1\r\n\r\n", " a 1"},
		{"cut off within an event", "event: a\ndata: 1\n\nevent: b\ndata: 2", " a 1"},
		{"nothing", "", ""},
	} {
		var got []string
		lines := 0
		err := readEvents(strings.NewReader(x.sent), func() { lines++ }, func(e Event) error {
			got = append(got, fmt.Sprintf("%s %s %s", e.ID, e.Name, e.Data))
			return nil
		})
		if text := strings.Join(got, "|"); text != x.want || !errors.Is(err, io.EOF) || lines < strings.Count(x.sent, "\n") {
			t.Errorf("%s: got %q after %d lines (%v), want %q", x.name, text, lines, err, x.want)
		}
	}
	if err := readEvents(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17)), func() {}, nil); err == nil || err.Error() != "an event has more than 16777216 bytes" {
		t.Errorf("an event without an end: %v", err)
	}
}

// TestStream gets events of a server until it, the reader or the context ends, and goes on after the last event.
func TestStream(t *testing.T) {
	var after []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after = append(after, r.Header.Get("Last-Event-ID"))
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"error":"too many streams are open"}`)
		case "/endless":
			fmt.Fprint(w, "event: a\ndata: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, "id: e.7\nevent: a\ndata: 1\n\n")
		}
	}))
	defer s.Close()
	c := &Connection{http: s.Client(), base: s.URL, to: "Berth", close: func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := errors.New("enough")
	for _, x := range []struct {
		path, says string
		tell       error
		answered   bool
	}{
		{"/events", "the stream of Berth has ended: EOF", nil, false},
		{"/events", "the stream of Berth has ended: enough", stop, false},
		{"/missing", "Berth does not serve /missing: it is an older version of Berth, or another server", nil, false},
		{"/busy", "too many streams are open", nil, true},
		{"/endless", "the stream of Berth has ended: context canceled", nil, false},
	} {
		err := c.Stream(ctx, x.path, "e.6", func(e Event) error {
			if x.path == "/endless" {
				cancel()
			}
			return x.tell
		})
		if err == nil || err.Error() != x.says || Answered(err) != x.answered || x.tell != nil && !errors.Is(err, x.tell) {
			t.Errorf("%s: %v, want %s", x.path, err, x.says)
		}
	}
	if slices.ContainsFunc(after, func(id string) bool { return id != "e.6" }) {
		t.Errorf("the server was told to go on after %q, want e.6", after)
	}
}
