package term

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/sim/report"
)

// This file is berth top: where a live cluster stands, drawn again and again. What must hold: the
// terminal is left as it was, however the command ends.

// Top is berth top.
type Top struct {
	Berth    *reach.Flags
	Interval time.Duration // between two questions
}

// Run draws on a terminal until the user or ctx ends it. Without a terminal it prints one screen, as
// Print does.
func (t *Top) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	if !isTerminal(out) {
		return t.Print(ctx, out)
	}
	screen, err := openScreen(in, out.(*os.File))
	if err != nil {
		return err
	}
	defer screen.restore()
	return t.show(ctx, screen)
}

// allNodes is how many nodes are asked for where there is no terminal to bound them.
const allNodes = 5000

// Print prints one screen, with all nodes.
func (t *Top) Print(ctx context.Context, out io.Writer) error {
	raw, err := t.Berth.Ask(ctx, fmt.Sprintf("%s?nodes=%d", observe.StatusPath, allNodes))
	if err != nil {
		return err
	}
	s, err := ReadStatus(raw)
	if err != nil {
		return err
	}
	p := paletteFor(out)
	for _, l := range topLines(s, 0) {
		if _, err := fmt.Fprintln(out, l.text(p, 0)); err != nil {
			return err
		}
	}
	return nil
}

// ReadStatus reads what a Berth has answered about its status.
func ReadStatus(raw []byte) (*observe.Status, error) {
	s := &observe.Status{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("reading the response of Berth: %w", err)
	}
	return s, nil
}

// frame is an answer to draw, or why there is none. A frame with both shows the last answer there was,
// with the error below.
type frame struct {
	status *observe.Status
	err    error
}

// show draws until the user or ctx ends it. An answer that fails to come is said in the last line
// of the screen, unless it is the first: another Berth may be taking over just now.
func (t *Top) show(ctx context.Context, screen *screen) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys, frames := screen.keys(), make(chan frame)
	go t.fetch(ctx, frames)
	sized := time.NewTicker(200 * time.Millisecond)
	defer sized.Stop()
	var last frame
	for {
		select {
		case <-ctx.Done():
			return nil
		case key := <-keys:
			if key == 'q' || key == 'Q' || key == ctrlC {
				return nil
			}
			continue
		case <-sized.C:
			if !screen.resized() {
				continue
			}
		case next := <-frames:
			if next.status == nil {
				if last.status == nil {
					return next.err
				}
				next.status = last.status
			}
			last = next
		}
		if last.status != nil {
			if err := screen.draw(t.lines(last, screen.height)); err != nil {
				return fmt.Errorf("drawing: %w", err)
			}
		}
	}
}

// lines returns what the screen shows of a frame.
func (t *Top) lines(x frame, height int) []line {
	foot := say(faint, "every %s; q quits", t.Interval)
	if x.err != nil {
		foot = say(bad, "no response since %s UTC: %v; q quits", x.status.At.UTC().Format(time.TimeOnly), x.err)
	}
	lines := topLines(x.status, max(height-1, 1))
	for len(lines) < height-1 {
		lines = append(lines, nil)
	}
	return append(lines[:min(len(lines), max(height-1, 0))], foot)
}

// fetch asks for frames until ctx is done, over one connection as long as that holds. After an error the
// next question opens another, which may lead to another Berth: the leader may have changed. A question
// is asked only when the last answer was taken, so that a slow terminal doesn't let them pile up.
func (t *Top) fetch(ctx context.Context, frames chan<- frame) {
	var c *reach.Connection
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	ask := func() (*observe.Status, error) {
		if c == nil {
			var err error
			if c, err = t.Berth.Open(ctx); err != nil {
				return nil, err
			}
		}
		raw, err := c.Get(ctx, fmt.Sprintf("%s?nodes=%d", observe.StatusPath, maxScreenNodes))
		if err != nil {
			c.Close()
			c = nil
			return nil, err
		}
		return ReadStatus(raw)
	}
	tick := time.NewTicker(t.Interval)
	defer tick.Stop()
	for {
		s, err := ask()
		select {
		case frames <- frame{s, err}:
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// maxScreenNodes is more nodes than a screen has lines.
const maxScreenNodes = 200

// What the upper sections have at most, so that nodes are seen on a small screen; one below
// roomyLines has no empty lines.
const (
	roomyLines      = 20
	topPendingLines = 5
	topNowLines     = 6
)

// topLines returns the screen of berth top in so many lines, 0 for any number: nodes get those that
// the rest leaves.
func topLines(s *observe.Status, height int) []line {
	out := headLines(s)
	for _, section := range [][]line{pendingLines(s, topPendingLines), nowLines(s, topNowLines), nil} {
		if height == 0 || height >= roomyLines {
			out = append(out, nil)
		}
		out = append(out, section...)
	}
	nodes := s.NodeLines
	const heading = 2 // lines above the nodes and below them
	if room := height - len(out) - heading; height > 0 && len(nodes) > room {
		nodes = nodes[:max(room, 0)]
	}
	rows := []line{{{"NODE", faint}, {"GROUP", faint}, {"CPU", faint}, {"MEMORY", faint}, {"PODS", faint}, {"$/H", faint}, {"STATE", faint}, {"WHY", faint}}}
	for i := range nodes {
		rows = append(rows, nodeRow(&nodes[i]))
	}
	out = append(out, table(rows)...)
	if more := s.Nodes.Nodes - len(nodes); more > 0 {
		out = append(out, say(faint, "  … and %d more nodes", more))
	}
	return out
}

// nodeRow is a node in one line.
func nodeRow(n *explain.NodeLine) line {
	state, c := stateOfNode(n.State)
	why := report.WhyNode(n.Reason)
	if n.State == explain.NodeLeaving {
		why, _ = report.HowFar(n.Step)
	}
	if n.Pod != "" {
		why += ": " + n.Pod
	}
	switch {
	case !n.Ready:
		state, c = "not ready", bad
	case n.Unschedulable && n.State != explain.NodeLeaving:
		state, c = "cordoned", busy
	}
	return line{{cut(n.Node, 40), plain}, {orDash(cut(n.Group, 20)), faint}, {bar(n.CPU.Share()), loadColour(n.CPU.Share())}, {bar(n.Memory.Share()), loadColour(n.Memory.Share())},
		{fmt.Sprint(n.Pods), plain}, {price(n.Price), plain}, {state, c}, {orDash(why), plain}}
}

// loadColour says how well a node is used.
func loadColour(share float64) colour {
	switch {
	case share > 1:
		return bad
	case share >= 0.5:
		return good
	}
	return busy
}
