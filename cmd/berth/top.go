package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim/report"
)

// This file is berth top: where a live cluster stands, drawn again and again. What must hold: the
// terminal is left as it was, however the command ends.

// topFlags are the flags of berth top.
type topFlags struct {
	reach    reachFlags
	interval time.Duration
	once     bool
}

// minInterval is how often the core is asked at most.
const minInterval = 500 * time.Millisecond

func topCommand() *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show a live view of nodes and pending pods, with reasons and costs",
		Long: `Top shows what berth status does, and each node with its utilization, its cost and why
it is not removed, and refreshes until q or Ctrl-C. Nodes that are being removed come
first, then unready nodes, then removable ones, then the others by utilization, the
least utilized first. Without a terminal it prints everything once.

` + reachText,
		Example: `  kubectl berth top
  berth top --interval 5s
  berth top --once`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.reach.register(cmd.Flags())
	cmd.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "refresh interval")
	cmd.Flags().BoolVar(&f.once, "once", false, "print one screen and exit")
	return cmd
}

func (f *topFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	if f.interval < minInterval {
		return fmt.Errorf("--interval is %s; it must be at least %s", f.interval, minInterval)
	}
	if f.once || !isTerminal(out) {
		return f.printOnce(ctx, out)
	}
	screen, err := openScreen(in, out.(*os.File))
	if err != nil {
		return err
	}
	defer screen.restore()
	return f.show(ctx, screen)
}

// allNodes is how many nodes are asked for where there is no terminal to bound them.
const allNodes = 5000

func (f *topFlags) printOnce(ctx context.Context, out io.Writer) error {
	raw, err := f.reach.ask(ctx, fmt.Sprintf("%s?nodes=%d", statusPath, allNodes))
	if err != nil {
		return err
	}
	s, err := readStatus(raw)
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

func readStatus(raw []byte) (*observe.Status, error) {
	s := &observe.Status{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("reading the response of Berth: %w", err)
	}
	return s, nil
}

// frame is an answer to draw, or why there is none.
type frame struct {
	status *observe.Status
	err    error
}

// show draws until the user or ctx ends it. An answer that fails to come is said in the last line
// of the screen, unless it is the first: another Berth may be taking over just now.
func (f *topFlags) show(ctx context.Context, screen *screen) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys, frames := screen.keys(), make(chan frame)
	go f.fetch(ctx, frames)
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
			if err := screen.draw(f.lines(last, screen.height)); err != nil {
				return fmt.Errorf("drawing: %w", err)
			}
		}
	}
}

// lines returns what the screen shows of a frame.
func (f *topFlags) lines(x frame, height int) []line {
	foot := say(faint, "every %s; q quits", f.interval)
	if x.err != nil {
		foot = say(bad, "no response since %s UTC: %v; q quits", x.status.At.UTC().Format(time.TimeOnly), x.err)
	}
	lines := topLines(x.status, max(height-1, 1))
	for len(lines) < height-1 {
		lines = append(lines, nil)
	}
	return append(lines[:min(len(lines), max(height-1, 0))], foot)
}

// fetch asks for frames until ctx is done, over one connection as long as that holds.
func (f *topFlags) fetch(ctx context.Context, frames chan<- frame) {
	var c *connection
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	ask := func() (*observe.Status, error) {
		if c == nil {
			var err error
			if c, err = f.reach.open(ctx); err != nil {
				return nil, err
			}
		}
		raw, err := c.get(ctx, fmt.Sprintf("%s?nodes=%d", statusPath, maxScreenNodes))
		if err != nil {
			c.close()
			c = nil
			return nil, err
		}
		return readStatus(raw)
	}
	tick := time.NewTicker(f.interval)
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

// ctrlC is what a terminal in raw mode sends for Ctrl-C.
const ctrlC = 3

// screen is a terminal that is drawn on: in raw mode, on its alternate screen, without a cursor.
type screen struct {
	in            *os.File // nil when the input is no terminal
	out           *os.File
	before        *term.State // of in
	width, height int
	palette       palette
}

// openScreen takes a terminal over. Who calls it calls restore.
func openScreen(in io.Reader, out *os.File) (*screen, error) {
	s := &screen{out: out, palette: paletteFor(out)}
	if f, ok := in.(*os.File); ok && isTerminal(f) {
		before, err := term.MakeRaw(int(f.Fd())) //nolint:gosec // file descriptors are small
		if err != nil {
			return nil, fmt.Errorf("putting the terminal into raw mode: %w; use --once", err)
		}
		s.in, s.before = f, before
	}
	s.resized()
	if s.width <= 0 || s.height <= 0 {
		s.restore()
		return nil, errors.New("the size of the terminal is unknown; use --once")
	}
	_, err := fmt.Fprint(out, "\x1b[?1049h\x1b[?25l")
	return s, err
}

// restore leaves the terminal as it was.
func (s *screen) restore() {
	_, _ = fmt.Fprint(s.out, "\x1b[?25h\x1b[?1049l")
	if s.before != nil {
		_ = term.Restore(int(s.in.Fd()), s.before) //nolint:gosec // file descriptors are small
	}
}

// resized reads the size, and reports whether it has changed.
func (s *screen) resized() bool {
	width, height, err := term.GetSize(int(s.out.Fd())) //nolint:gosec // file descriptors are small
	if err != nil || width == s.width && height == s.height {
		return false
	}
	s.width, s.height = width, height
	return true
}

// draw replaces what is shown.
func (s *screen) draw(lines []line) error {
	text := "\x1b[H"
	for i, l := range lines {
		if i > 0 {
			text += "\r\n"
		}
		text += l.text(s.palette, s.width) + "\x1b[K"
	}
	_, err := io.WriteString(s.out, text+"\x1b[J")
	return err
}

// keys delivers what is typed, as long as the process lives: nothing ends a read from a terminal.
func (s *screen) keys() <-chan byte {
	out := make(chan byte)
	if s.in == nil {
		return out
	}
	go func() {
		key := make([]byte, 1)
		for {
			if n, err := s.in.Read(key); err != nil || n == 0 {
				return
			}
			out <- key[0]
		}
	}()
	return out
}
