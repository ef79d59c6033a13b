// Package top is berth top: nodes, node groups and pending pods of a cluster on a terminal, drawn again and again, to
// scroll, sort, filter and group, and to have explained one by one.
//
//	top.go    the command's loop, and the way to the leader
//	model.go  what the keys do
//	table.go  rows and columns: widths, sorting, filtering, grouping
//	tabs.go   the tables of nodes, node groups and pending pods
//	view.go   the screen
//
// What must hold:
//   - the terminal is left as it was, however the command ends;
//   - no screen is wider or longer than the terminal, and the last line says how to leave;
//   - colours say nothing that the words don't, and there are none with $NO_COLOR;
//   - when an answer fails to come, the last one stays, with the error below it: another Berth may be taking over.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	xterm "golang.org/x/term"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// Top is berth top.
type Top struct {
	// Open returns what answers, and what ends that.
	Open     func(ctx context.Context) (term.Source, func(), error)
	Interval time.Duration // between two answers
}

// Run draws on a terminal until the user or ctx ends it. Without a terminal it prints one screen, as Print does.
func (t *Top) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	screen, ok := out.(*os.File)
	if !ok || !xterm.IsTerminal(int(screen.Fd())) { //nolint:gosec // file descriptors are small
		return t.Print(ctx, out)
	}
	l := &link{open: t.Open}
	defer l.close()
	first, err := read(ctx, l)
	if err != nil {
		return err
	}
	m := newModel(ctx, l, t.Interval, first)
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out)).Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil
	}
	return err
}

// Print prints one screen, with all nodes.
func (t *Top) Print(ctx context.Context, out io.Writer) error {
	l := &link{open: t.Open}
	defer l.close()
	s, err := term.ReadStatus(ctx, l)
	if err != nil {
		return err
	}
	nodes, err := term.AllNodes(ctx, l)
	if err != nil {
		return err
	}
	return term.PrintTop(out, s, nodes)
}

// snapshot is what one screen shows.
type snapshot struct {
	status *term.Status
	nodes  []v1alpha1.Node
	groups []v1alpha1.Group
	pods   []v1alpha1.Pod
}

// maxPending is how many pending pods are read: more than anybody scrolls through.
const maxPending = 2000

// read asks for a snapshot.
func read(ctx context.Context, from term.Source) (*snapshot, error) {
	s, err := term.ReadStatus(ctx, from)
	if err != nil {
		return nil, err
	}
	out := &snapshot{status: s}
	if out.nodes, err = term.AllNodes(ctx, from); err != nil {
		return nil, err
	}
	groups, err := term.Read[v1alpha1.GroupList](ctx, from, "groups")
	if err != nil {
		return nil, err
	}
	pods, err := term.Read[v1alpha1.PodList](ctx, from, fmt.Sprintf("pods?state=pending&limit=%d", maxPending))
	if err != nil {
		return nil, err
	}
	out.groups, out.pods = groups.Items, pods.Items
	return out, nil
}

// link is the way to the leader, which may change. It is a term.Source.
type link struct {
	open func(ctx context.Context) (term.Source, func(), error)

	mu   sync.Mutex // held while it asks: one question at a time
	from term.Source
	end  func()
}

// Get implements term.Source. When a connection that has worked doesn't any more, or leads to an instance that stands
// by, it asks once more over a new one.
func (l *link) Get(ctx context.Context, path string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		worked := l.from != nil
		if !worked {
			var err error
			if l.from, l.end, err = l.open(ctx); err != nil {
				l.from = nil
				return nil, err
			}
		}
		raw, err := l.from.Get(ctx, path)
		if err == nil || reach.Answered(err) {
			return raw, err
		}
		l.drop()
		if !worked || ctx.Err() != nil {
			return nil, err
		}
	}
}

// drop ends the connection.
func (l *link) drop() {
	if l.from != nil {
		l.end()
		l.from = nil
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}
