package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	xterm "golang.org/x/term"

	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// This file specifies berth top with the example answers of the API (edge/api/testdata): what keys do, that every
// screen fits, what a terminal is sent, and that another leader is followed.

// example answers as the API of the example cluster.
type example struct{}

// files are the answers by path.
var files = map[string]string{"overview": "overview", "meta": "meta", "nodes": "nodes", "groups": "groups", "pods": "pods-pending", "nodes/db-0001": "node-stays", "groups/spot": "group", "pods/team-b/huge-0": "pod-waits"}

// Get implements term.Source.
func (example) Get(_ context.Context, path string) ([]byte, error) {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, api.Prefix), "?")
	file, ok := files[path]
	if !ok {
		return nil, fmt.Errorf("%s not found", path)
	}
	return os.ReadFile(filepath.Join("..", "..", "edge", "api", "testdata", file+".json"))
}

func open(context.Context) (term.Source, func(), error) { return example{}, func() {}, nil }

// newExample returns a model of the example cluster on a screen.
func newExample(t *testing.T, width, height int) *model {
	t.Helper()
	s, err := read(t.Context(), example{})
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t.Context(), example{}, 2*time.Second, s)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

// press types keys, and does what they ask for.
func press(m *model, keys ...string) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k}
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "end":
			msg = tea.KeyPressMsg{Code: tea.KeyEnd}
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		default:
			msg.Code = []rune(k)[0]
		}
		if _, cmd := m.Update(msg); cmd != nil {
			m.Update(cmd())
		}
	}
}

// screen returns what a model shows, without colours.
func screen(m *model) string { return ansi.Strip(strings.Join(m.lines(), "\n")) }

// TestKeys does with each key what the help says.
func TestKeys(t *testing.T) {
	for _, x := range []struct {
		name string
		keys []string
		has  []string
		not  []string
	}{
		{"nodes first", nil, []string{"[1 Nodes 13]", "NODE", "CPU", "GPU", "db-0001", "q quits"}, nil},
		{"node groups", []string{"2"}, []string{"[2 Node groups", "TARGET", "spot"}, []string{"db-0001"}},
		{"pending pods by tab", []string{"tab", "tab"}, []string{"[3 Pending pods", "team-b/huge-0", "Insufficient cpu"}, nil},
		{"a filter", []string{"/", "d", "b", "-", "enter"}, []string{"/db-", "db-0001"}, []string{"web-0001"}},
		{"a filter taken away", []string{"/", "d", "b", "-", "enter", "esc"}, []string{"web-0001"}, []string{"  /db-"}},
		{"sorted", []string{"s"}, []string{"sort NODE", "NODE*"}, nil},
		{"sorted the other way", []string{"s", "S"}, []string{"reversed"}, nil},
		{"grouped", []string{"g"}, []string{"by group", "group db: "}, nil},
		{"a node explained", []string{"/", "d", "b", "-", "0", "0", "0", "1", "enter", "enter"}, []string{"node db-0001", "node group", "esc back"}, []string{"web-0001  "}},
		{"back from an explanation", []string{"/", "d", "b", "-", "0", "0", "0", "1", "enter", "enter", "esc"}, []string{"[1 Nodes"}, nil},
		{"a pod explained", []string{"3", "/", "h", "u", "g", "e", "enter", "enter"}, []string{"pod team-b/huge-0 is pending", "New nodes:"}, nil},
		{"a node group explained", []string{"2", "/", "s", "p", "o", "t", "enter", "enter"}, []string{"node group spot: target size"}, nil},
		{"help", []string{"?"}, []string{"explain the node"}, nil},
		{"paused", []string{"p"}, []string{"paused"}, nil},
		{"nothing left", []string{"/", "~", "enter", "enter", "down", "end"}, []string{"nothing to show"}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			m := newExample(t, 100, 40)
			press(m, x.keys...)
			got := screen(m)
			for _, want := range x.has {
				if !strings.Contains(got, want) {
					t.Errorf("after %v the screen lacks %q:\n%s", x.keys, want, got)
				}
			}
			for _, other := range x.not {
				if strings.Contains(got, other) {
					t.Errorf("after %v the screen has %q:\n%s", x.keys, other, got)
				}
			}
		})
	}
}

// TestTheCursorStaysOnItsNode when nodes come, go and change places, and is always on the screen.
func TestTheCursorStaysOnItsNode(t *testing.T) {
	m := newExample(t, 80, 12)
	press(m, "down", "down", "down")
	was := m.cursor[nodesTab]
	for i, j := 0, len(m.shown.nodes)-1; i < j; i, j = i+1, j-1 {
		m.shown.nodes[i], m.shown.nodes[j] = m.shown.nodes[j], m.shown.nodes[i]
	}
	if got := screen(m); m.cursor[nodesTab] != was || !strings.Contains(got, was) {
		t.Errorf("the cursor was on %s and is on %s:\n%s", was, m.cursor[nodesTab], got)
	}
	press(m, "end")
	if _, rows := m.rows(); !strings.Contains(screen(m), rows[len(rows)-1].name) {
		t.Errorf("the last node isn't on the screen:\n%s", screen(m))
	}
}

// TestEveryScreenFits: no screen is longer or wider than the terminal, and its last line says how to leave.
func TestEveryScreenFits(t *testing.T) {
	for _, keys := range [][]string{nil, {"2"}, {"3"}, {"g"}, {"?"}, {"enter"}} {
		for _, width := range []int{1, 20, 40, 80, 100, 140, 200, 400} {
			for height := 1; height < 60; height++ {
				m := newExample(t, width, height)
				press(m, keys...)
				m.failed = errors.New("the port-forward: lost")
				lines := m.lines()
				if last := ansi.Strip(lines[len(lines)-1]); len(lines) != height || width >= 20 && !strings.HasPrefix(last, "q quits") && len(keys) == 0 {
					t.Fatalf("%v on %d lines of %d: %d lines, of which the last is %q", keys, height, width, len(lines), last)
				}
				for _, l := range lines {
					if n := ansi.StringWidth(l); n > width {
						t.Fatalf("%v on %d columns: a line has %d: %q", keys, width, n, l)
					}
				}
			}
		}
	}
}

// TestNamesAreCutInTheirMiddle: they differ at their ends.
func TestNamesAreCutInTheirMiddle(t *testing.T) {
	for width, want := range map[int]string{30: "gke-prod-pool-4f1c2b8a-x7kq", 12: "gke-pr…-x7kq", 2: "g…", 1: "…", 0: ""} {
		if got := middle("gke-prod-pool-4f1c2b8a-x7kq", width); got != want {
			t.Errorf("in %d letters it is %q, want %q", width, got, want)
		}
	}
	for width := range 20 { // letters that are two columns wide
		if got := middle(strings.Repeat("箱", 15), width); ansi.StringWidth(got) > width {
			t.Errorf("in %d columns it is %q", width, got)
		}
	}
}

// TestWhatFailsIsSaid below the last answer.
func TestWhatFailsIsSaid(t *testing.T) {
	m := newExample(t, 120, 30)
	m.Update(answered{failed: errors.New("no leader: the Lease has expired")})
	if got := screen(m); !strings.Contains(got, "db-0001") || !strings.Contains(got, "no response since 00:08:20 UTC: no leader: the Lease has expired") {
		t.Errorf("the screen is\n%s", got)
	}
	s, _ := read(t.Context(), example{})
	m.Update(answered{shown: s})
	if got := screen(m); strings.Contains(got, "no response") {
		t.Errorf("after an answer the screen is\n%s", got)
	}
}

// dying answers so many times, and then no more.
type dying struct{ left int }

// Get implements term.Source.
func (d *dying) Get(ctx context.Context, path string) ([]byte, error) {
	if d.left--; d.left < 0 {
		return nil, errors.New("the port-forward: lost")
	}
	return example{}.Get(ctx, path)
}

// TestAnotherLeaderIsFollowed when the first goes, in the middle of a screen.
func TestAnotherLeaderIsFollowed(t *testing.T) {
	opened, ended := 0, 0
	l := &link{open: func(context.Context) (term.Source, func(), error) {
		opened++
		return &dying{left: 6}, func() { ended++ }, nil
	}}
	for range 4 { // of 5 questions each
		if _, err := read(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if l.close(); opened != 4 || ended != opened {
		t.Errorf("%d connections were opened and %d ended, want 4", opened, ended)
	}
	nobody := &link{open: func(context.Context) (term.Source, func(), error) { return nil, nil, errors.New("no leader") }}
	if _, err := read(t.Context(), nobody); err == nil || err.Error() != "no leader" {
		t.Errorf("without a leader: %v", err)
	}
}

// streaming answers as the API of the example cluster, and streams what it is told to.
type streaming struct {
	example
	mu     sync.Mutex
	asked  int
	begun  chan struct{} // has an entry for each stream that has begun
	events chan reach.Event
	broken chan error // ends the stream
}

func newStreaming() *streaming {
	return &streaming{begun: make(chan struct{}, 10), events: make(chan reach.Event), broken: make(chan error)}
}

// Get implements term.Source.
func (s *streaming) Get(ctx context.Context, path string) ([]byte, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	return s.example.Get(ctx, path)
}

// Stream implements term.Streamer.
func (s *streaming) Stream(ctx context.Context, _, _ string, tell func(reach.Event) error) error {
	s.begun <- struct{}{}
	for {
		select {
		case e := <-s.events:
			if err := tell(e); err != nil {
				return err
			}
		case err := <-s.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestTheStreamIsFollowed over an outage and to another leader, and ends with the command.
func TestTheStreamIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, opened := newStreaming(), 0
		l := &link{open: func(context.Context) (term.Source, func(), error) {
			if opened++; opened == 2 {
				return nil, nil, errors.New("no leader")
			}
			return s, func() {}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		messages, ended := make(chan tea.Msg, 10), make(chan struct{})
		go func() {
			defer close(ended)
			l.follow(ctx, func(msg tea.Msg) { messages <- msg })
		}()
		<-s.begun
		s.events <- reach.Event{Name: "overview", Data: []byte(`{"seq": 7}`)}
		if m, ok := (<-messages).(changed); !ok || m.overview.Seq != 7 {
			t.Errorf("after an event: %v, want the overview", m)
		}
		s.broken <- errors.New("the port-forward: lost")
		for range 2 { // the stream, and then nobody who leads
			if m, ok := (<-messages).(lost); !ok {
				t.Errorf("after an outage: %v, want lost", m)
			}
		}
		<-s.begun
		s.events <- reach.Event{Name: "decisions", Data: []byte(`{}`)}
		s.events <- reach.Event{Name: "end", Data: []byte(`{"error": "this instance ends"}`)}
		if m, ok := (<-messages).(lost); !ok || opened != 3 {
			t.Errorf("after the end of an instance: %v by %d connections, want lost, and 3", m, opened)
		}
		<-s.begun
		cancel()
		<-ended
	})
}

// TestNothingIsAskedWhileNothingChanges: tables are read when the stream has told of a change, when it is lost, or after
// a while; and never of a file.
func TestNothingIsAskedWhileNothingChanges(t *testing.T) {
	m := newExample(t, 100, 30)
	o := m.shown.status.Overview
	o.Pods.Pending = 4711
	steps := []struct {
		name string
		msg  tea.Msg
		asks bool
	}{
		{"without a stream", nil, true},
		{"a change", changed{&o}, true},
		{"nothing since", nil, false},
		{"the stream is lost", lost{}, true},
		{"and still is", nil, true},
	}
	for _, x := range steps {
		if x.msg != nil {
			m.Update(x.msg)
		}
		if m.wants() != x.asks {
			t.Errorf("%s: the tables are read: %t, want %t", x.name, m.wants(), x.asks)
		}
		m.Update(due{})
	}
	if got := screen(m); !strings.Contains(got, "Pending pods 4711") {
		t.Errorf("the overview of the stream isn't shown:\n%s", got)
	}
	if m.Update(changed{&o}); !strings.Contains(screen(m), "live") {
		t.Errorf("the last line doesn't say that changes come by themselves:\n%s", screen(m))
	}
	m.asked = time.Now().Add(-quietFor)
	if m.stale = false; !m.wants() {
		t.Errorf("after %s the ages on the screen are old, and nothing is read", quietFor)
	}
	m.shown.status.Meta.Capabilities.Replay = true
	if m.wants() || !strings.Contains(screen(m), "a file") {
		t.Errorf("a file is read again and again:\n%s", screen(m))
	}
}

// TestTablesAreReadAgainWhileTheyAreOlder than the overview that the stream has brought: their answers are shared with
// other viewers for some seconds, and may be from before the change.
func TestTablesAreReadAgainWhileTheyAreOlder(t *testing.T) {
	m := newExample(t, 100, 30)
	before := m.shown.at
	if before.IsZero() {
		t.Fatal("the tables have no time")
	}
	o := m.shown.status.Overview
	o.At, o.Pods.Pending = before.Add(time.Second), 4711
	m.Update(changed{&o})
	m.Update(due{})
	cached, err := read(t.Context(), example{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Update(answered{shown: cached}); !m.wants() {
		t.Error("the tables are from before the change, and aren't read again")
	}
	if got := screen(m); !strings.Contains(got, "Pending pods 4711") {
		t.Errorf("an older overview is shown than there was:\n%s", got)
	}
	m.Update(due{})
	fresh, err := read(t.Context(), example{})
	if err != nil {
		t.Fatal(err)
	}
	fresh.at, fresh.status.Overview.At, fresh.status.Overview.Pods.Pending = o.At, o.At, 4712
	if m.Update(answered{shown: fresh}); m.wants() || !strings.Contains(screen(m), "Pending pods 4712") {
		t.Errorf("the tables are as new as the change, and are read again, or not shown:\n%s", screen(m))
	}
	// Another leader's clock may be behind: what it answers is shown.
	m.Update(lost{})
	m.Update(due{})
	if m.Update(answered{shown: cached}); strings.Contains(screen(m), "Pending pods 471") {
		t.Errorf("the answer of another leader isn't shown:\n%s", screen(m))
	}
}

// terminal collects what a program writes to a terminal.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (x *terminal) has(want string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Contains(x.text.String(), want)
}

// TestTerminal runs the command on a pseudo-terminal: it draws on the alternate screen, takes keys, and leaves the
// terminal as it was; without colours under NO_COLOR.
func TestTerminal(t *testing.T) {
	for _, noColor := range []string{"", "1"} {
		t.Setenv("TERM", "xterm-256color")
		t.Setenv("NO_COLOR", noColor)
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
			t.Fatal(err)
		}
		before, err := xterm.GetState(int(tty.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		seen := &terminal{}
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := master.Read(buf)
				seen.mu.Lock()
				seen.text.Write(buf[:n])
				seen.mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
		ended := make(chan error, 1)
		go func() { ended <- (&Top{Open: open, Interval: time.Second}).Run(t.Context(), tty, tty) }()
		shows := func(want string) {
			t.Helper()
			for deadline := time.Now().Add(time.Minute); !seen.has(want); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("the terminal never shows %q; it got %q", want, seen.text.String())
				}
			}
		}
		shows("Nodes 13")
		shows("\x1b[?1049h")
		_, _ = io.WriteString(master, "2")
		shows("TARGET")
		_, _ = io.WriteString(master, "q")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		shows("\x1b[?1049l")
		after, err := xterm.GetState(int(tty.Fd()))
		if err != nil || fmt.Sprint(*after) != fmt.Sprint(*before) {
			t.Errorf("the terminal is left as %v, want %v (%v)", after, before, err)
		}
		for _, colour := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m"} {
			if noColor != "" && seen.has(colour) {
				t.Errorf("with NO_COLOR it writes %q", colour)
			}
		}
		_ = tty.Close()
		_ = master.Close()
	}
}

// TestWithoutATerminal prints everything once.
func TestWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	if err := (&Top{Open: open}).Run(t.Context(), strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "db-0001") || strings.Contains(got, "\x1b") {
		t.Errorf("it prints\n%s", got)
	}
}
