// Package top is berth top: nodes, node groups and pending pods of a cluster on a terminal, drawn again and again, to
// scroll, sort, filter and group, and to have explained one by one.
//
//	command.go  the command
//	top.go    the loop, and what one screen shows
//	link.go   the way to the leader, by questions and by the stream
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
	"time"

	tea "charm.land/bubbletea/v2"
	xterm "golang.org/x/term"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
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
	program := tea.NewProgram(newModel(ctx, l, t.Interval, first), tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out))
	following, end := context.WithCancel(ctx)
	defer end()
	if !first.still() {
		go l.follow(following, program.Send)
	}
	_, err = program.Run()
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
	nodes, _, err := term.AllNodes(ctx, l)
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
	// at is when the core was asked for the oldest of the tables: answers are shared for a while, so that a table may be
	// older than a change which was told of before it was asked for. Zero if nothing says so.
	at time.Time
}

// still reports whether nothing will change any more: it is of a file.
func (s *snapshot) still() bool { return s.status.Meta.Capabilities.Replay }

// maxPending is how many pending pods are read: more than anybody scrolls through.
const maxPending = 2000

// read asks for a snapshot.
func read(ctx context.Context, from term.Source) (*snapshot, error) {
	s, err := term.ReadStatus(ctx, from)
	if err != nil {
		return nil, err
	}
	out := &snapshot{status: s}
	if out.nodes, out.at, err = term.AllNodes(ctx, from); err != nil {
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
	for _, at := range []time.Time{groups.At, pods.At} {
		if at.Before(out.at) {
			out.at = at
		}
	}
	return out, nil
}
