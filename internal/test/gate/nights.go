package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/internal/test/svg"
)

// This file has what figures were at each commit that a night has measured: another history, with a
// line for each figure and commit. The first history has what figures are held to. The two differ so
// that a slow night doesn't lower a floor.

// Night returns the history with what was measured at a commit, in place of what it has of that
// commit.
func (h History) Night(measured []Figure, day time.Time, commit string) History {
	out := slices.DeleteFunc(slices.Clone(h), func(e Entry) bool { return e.Commit == commit })
	for _, f := range measured {
		out = append(out, Entry{f, day, commit})
	}
	return out
}

// commits returns the commits that a history has, the oldest first.
func (h History) commits() (out []string) {
	byDay := slices.Clone(h)
	slices.SortStableFunc(byDay, func(a, b Entry) int { return a.Day.Compare(b.Day) })
	for _, e := range byDay {
		if !slices.Contains(out, e.Commit) {
			out = append(out, e.Commit)
		}
	}
	return out
}

// axis is the horizontal one of all plots: a tick for each commit.
type axis struct {
	commits []string
	labels  []string // of the ticks: as many as there is room for
}

// axisOf returns the axis of what nights have measured, with at most so many labels. The newest commit
// always has one.
func axisOf(nights History, most int) axis {
	a := axis{commits: nights.commits()}
	every := (len(a.commits) + most - 1) / max(most, 1)
	for i, c := range a.commits {
		if (len(a.commits)-1-i)%max(every, 1) != 0 {
			c = ""
		}
		a.labels = append(a.labels, c)
	}
	return a
}

// end returns where the axis ends. With one commit it has room for the next.
func (a axis) end() float64 { return float64(max(len(a.commits)-1, 1)) }

// points returns the values of a figure by commit.
func (a axis) points(entries History) (out []svg.Point) {
	for _, e := range entries {
		if x := slices.Index(a.commits, e.Commit); x >= 0 {
			out = append(out, svg.Point{X: float64(x), Y: e.Value})
		}
	}
	slices.SortFunc(out, func(a, b svg.Point) int { return int(a.X - b.X) })
	return out
}

// Plot returns a plot of one figure by commits, with what it may be at worst as a dashed line. Values
// beyond that are red.
func Plot(floors, nights History, f Figure) string {
	return svg.Figure(340, 220, func(out *strings.Builder) {
		a := axisOf(nights, 4)
		points := a.points(nights.Of(f.Kind, f.Case))
		r, _ := f.Kind.rule()
		was, known := floors.latest(f)
		most := 0.0
		for _, p := range points {
			most = max(most, p.Y)
		}
		if known {
			most = max(most, r.worst(was.Value))
		}
		if most == 0 {
			most = 1
		}
		p := svg.Plot{Out: out, Left: 60, Top: 30, Width: 260, Height: 140, MaxX: a.end(), MaxY: svg.Above(most),
			EveryX: 1, Labels: a.labels, Title: f.Case, YName: string(f.Kind)}
		p.Axes()
		p.Curve(svg.Blue, points)
		for _, at := range points {
			color := svg.Blue
			if known && r.beyond(at.Y, was.Value) {
				color = svg.Red
			}
			p.Dots(color, []svg.Point{at})
		}
		if known {
			p.Dashed(svg.Grey, []svg.Point{{X: 0, Y: r.worst(was.Value)}, {X: p.MaxX, Y: r.worst(was.Value)}})
		}
	})
}

// RatiosPlot returns the plot of all ratios by commits, each with its floor.
func RatiosPlot(floors, nights History) string {
	return svg.Figure(820, 360, func(out *strings.Builder) {
		a := axisOf(nights, 8)
		most := 1.0
		for _, e := range nights.OfKinds(Ratio) {
			most = max(most, e.Value)
		}
		p := svg.Plot{Out: out, Left: 60, Top: 30, Width: 480, Height: 270, MaxX: a.end(), MaxY: svg.Above(most), EveryX: 1, Labels: a.labels,
			Title: "A placement on 5,000 nodes: how many times as long kube-scheduler's algorithm takes", XName: "commits that were measured; dashed: the floors", YName: "times"}
		p.Axes()
		for i, name := range nights.Cases(Ratio) {
			color := svg.Color(i)
			points := a.points(nights.Of(Ratio, name))
			p.Curve(color, points)
			p.Dots(color, points)
			text := name
			if len(points) > 0 {
				text = fmt.Sprintf("%s: %.0f", name, points[len(points)-1].Y)
			}
			p.Legend(color, i, text)
			if was, ok := floors.latest(Figure{Kind: Ratio, Case: name}); ok {
				p.Dashed(color, []svg.Point{{X: 0, Y: Floor * was.Value}, {X: p.MaxX, Y: Floor * was.Value}})
			}
		}
	})
}

// titles are those of the sections of a page.
var titles = map[Kind]string{
	Ratio:     "How many times as long kube-scheduler's algorithm takes for a placement",
	Rate:      "Pods a second on the dev cluster",
	CPU:       "CPU time of the scheduler for each of them",
	PlanTime:  "Time of a plan or a scan",
	PassTime:  "Time of a pass of scale-down",
	Nodes:     "Nodes that a plan buys",
	Removable: "Nodes that a pass finds removable",
	Allocs:    "Allocations of a placement, a plan or a pass",
}

// Page returns a page with a plot for each figure.
func Page(floors, nights History) (string, error) {
	var sections []svg.Section
	for _, r := range rules {
		s := svg.Section{Title: titles[r.kind]}
		if !r.held {
			s.Text = "Times of a machine, which another machine or other work on it moves: read how the cases move against each other."
		}
		for _, name := range nights.Cases(r.kind) {
			s.Figures = append(s.Figures, Plot(floors, nights, Figure{Kind: r.kind, Case: name}))
		}
		if len(s.Figures) > 0 {
			sections = append(sections, s)
		}
	}
	return svg.Page("Performance by commit", "Dashed lines are what a figure may be at worst, by docs/performance-history.tsv. What is beyond is red.", sections)
}
