package reach

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// This file reads server-sent events (html.spec.whatwg.org, "Server-sent events"), as far as Berth sends them.

// silentFor is how long a stream may bring nothing before it counts as lost: Berth sends a comment every 15 seconds,
// so three of them are missing then.
const silentFor = 45 * time.Second

// errSilent says that a stream was given up.
var errSilent = fmt.Errorf("nothing has come for %s", silentFor)

// Event is an event of a stream.
type Event struct {
	ID, Name string
	Data     []byte // valid until the next event
}

// Stream gets a path and calls tell with each event, until the stream or ctx ends, or tell returns an error. after is
// the ID of the last event that the caller has had, "" for none. It never returns nil: a stream that ends by itself is
// an error, too, after which the caller may come back, perhaps to another instance.
func (c *Connection) Stream(ctx context.Context, path, after string, tell func(Event) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	silent := time.AfterFunc(silentFor, func() { end(errSilent) })
	defer silent.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := c.http.Do(req)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return c.unanswered(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return c.refusal(resp, path, body)
	}
	err = readEvents(resp.Body, func() { silent.Reset(silentFor) }, tell)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("the stream of %s has ended: %w", c.to, err)
}

// readEvents calls alive for each line, and tell for each event. Its error is never nil: io.EOF at the end.
func readEvents(r io.Reader, alive func(), tell func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAnswer)
	var e Event
	for lines.Scan() {
		alive()
		line := lines.Bytes()
		if len(line) == 0 { // the end of an event
			if e.Name != "" || len(e.Data) > 0 {
				if err := tell(e); err != nil {
					return err
				}
			}
			e = Event{ID: e.ID, Data: e.Data[:0]}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			e.ID = string(value)
		case "event":
			e.Name = string(value)
		case "data":
			if len(e.Data) > 0 {
				e.Data = append(e.Data, '\n')
			}
			if e.Data = append(e.Data, value...); len(e.Data) > maxAnswer {
				return fmt.Errorf("an event has more than %d bytes", maxAnswer)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}
