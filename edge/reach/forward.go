package reach

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/berthproject/berth/edge/api"
)

// This file forwards GETs of the API to the leader, with the user's own credentials. What must hold: of a
// request nothing but its path, its query and the headers below goes there, and no credential comes back.

// forwardedHeaders are those of a request, and answeredHeaders those of an answer.
var (
	forwardedHeaders = []string{"Accept", "Last-Event-ID"}
	answeredHeaders  = []string{"Content-Type", "Retry-After"}
)

// Forwarder is an http.Handler. When the leader is gone, or another, it finds the new one: the page that asks goes
// on where it was.
type Forwarder struct {
	// open finds the leader. Its connections outlive requests.
	open func() (*Connection, error)

	mu     sync.Mutex
	conn   *Connection // nil before the first
	opened time.Time   // when conn was, or could not be
	failed error       // why there is no conn
	stood  time.Time   // when the leader was last looked for and an instance was found that stands by
}

// againAfter is how long after a connection could not be opened, or led to an instance that stands by, another is tried.
const againAfter = 2 * time.Second

// Forwarder returns a forwarder to the Berth that the flags name, until ctx ends.
func (f *Flags) Forwarder(ctx context.Context) *Forwarder {
	return &Forwarder{open: func() (*Connection, error) { return f.Open(ctx) }}
}

// Close ends its connection.
func (f *Forwarder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		f.conn.Close()
		f.conn = nil
	}
}

// Connect opens the connection and asks who answers, so that an error is told before anybody asks. An instance that
// stands by answers, too: the page waits for the leader. After an error that NoLeader reports the forwarder can be used
// all the same: each request looks for the leader anew.
func (f *Forwarder) Connect(ctx context.Context) error {
	c, err := f.connection(nil)
	if err != nil {
		return err
	}
	if _, err = c.Get(ctx, api.Prefix+"meta"); err != nil {
		f.drop(c) // the next attempt looks for the leader anew
	}
	return err
}

// drop ends a connection, if it is still the one that is used.
func (f *Forwarder) drop(c *Connection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn == c {
		c.Close()
		f.conn = nil
	}
}

// connection returns the connection, another one than broken.
func (f *Forwarder) connection(broken *Connection) (*Connection, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil && f.conn != broken {
		return f.conn, nil
	}
	if f.failed != nil && time.Since(f.opened) < againAfter {
		return nil, f.failed
	}
	if f.conn != nil {
		f.conn.Close()
		f.conn = nil
	}
	f.conn, f.failed = f.open()
	f.opened = time.Now()
	return f.conn, f.failed
}

// looksAgain reports whether the leader is looked for when the instance of a connection stands by: not when that came to such an
// instance just before. Whoever waits for a leader asks who answers again and again, and each look is a connection more.
func (f *Forwarder) looksAgain(c *Connection) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conn != c || time.Since(f.stood) >= againAfter
}

// foundStandby records that the leader was looked for, and that an instance was found that stands by.
func (f *Forwarder) foundStandby() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stood = time.Now()
}

// ServeHTTP implements http.Handler.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var broken *Connection
	var err error
	for range 2 { // the leader, and the one that leads after it
		var c *Connection
		if c, err = f.connection(broken); err != nil {
			break
		}
		var resp *http.Response
		if resp, err = c.forward(r); err != nil {
			err, broken = c.unanswered(err), c
			if r.Context().Err() != nil {
				return
			}
			continue
		}
		switch standsBy := resp.Header.Get(api.StandbyHeader) != ""; {
		case standsBy && broken != nil:
			f.foundStandby()
		case standsBy && f.looksAgain(c):
			_ = resp.Body.Close()
			broken = c
			continue
		}
		c.answer(w, resp, r.URL.Path)
		return
	}
	if err == nil {
		err = errors.New("no instance leads; try again")
	}
	refuse(w, http.StatusBadGateway, err)
}

// forward sends a request.
func (c *Connection) forward(r *http.Request) (*http.Response, error) {
	out, err := http.NewRequestWithContext(r.Context(), http.MethodGet, c.base+r.URL.EscapedPath(), nil)
	if err != nil {
		return nil, err
	}
	out.URL.RawQuery = r.URL.RawQuery
	for _, name := range forwardedHeaders {
		if v := r.Header.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	return c.http.Do(out)
}

// answer passes an answer on as it comes. One of a server that isn't the API gets the words that the
// command line has for it.
func (c *Connection) answer(w http.ResponseWriter, resp *http.Response, path string) {
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		refuse(w, resp.StatusCode, c.refused(resp.StatusCode, path))
		return
	case resp.StatusCode == http.StatusNotFound && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"):
		refuse(w, http.StatusNotFound, c.refusal(resp, path, nil))
		return
	}
	for _, name := range answeredHeaders {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(flushing{w, http.NewResponseController(w)}, resp.Body)
}

// flushing flushes what is written, so that events don't wait for more.
type flushing struct {
	io.Writer
	to *http.ResponseController
}

// Write implements io.Writer.
func (f flushing) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	if err == nil {
		err = f.to.Flush()
	}
	return n, err
}

// refuse answers with an error, as the API does.
func refuse(w http.ResponseWriter, code int, err error) {
	body, _ := json.Marshal(map[string]string{"error": err.Error()})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n'))
}
