package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/svg"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has the time of one plan by the number of pods that wait.

// peerTimes are times of Cluster Autoscaler's estimate, in seconds by the number of pods.
type peerTimes struct {
	published, measured []svg.Point
}

// peers has, for each of testkit.PublishedPlanCases, what was published of an older version on other
// hardware, for one group, and what was measured of its estimator in August 2026's version, for two
// groups on a machine like that of docs/performance.md. So the published dots are a reminder of the
// order of magnitude, and only the dashed lines compare like with like: even they leave out all of
// Cluster Autoscaler's loop but the estimator, while Berth's time is that of a whole plan.
var peers = map[string]peerTimes{
	"plain, 1 per node":         {[]svg.Point{{X: 22000, Y: 400}}, []svg.Point{{X: 1000, Y: 0.27}, {X: 5000, Y: 3.8}, {X: 10000, Y: 16.6}, {X: 22000, Y: 82}}},
	"node affinity, 1 per node": {[]svg.Point{{X: 18000, Y: 700}}, []svg.Point{{X: 1000, Y: 0.28}, {X: 5000, Y: 3.9}, {X: 10000, Y: 16.0}, {X: 22000, Y: 79}}},
	"plain, 8 per node":         {nil, []svg.Point{{X: 22000, Y: 8.1}}},
}

// sizes are the numbers of pods of the curve.
var sizes = []int{1000, 2000, 5000, 10000, 14000, 18000, 22000}

// timed is a case with Berth's times.
type timed struct {
	testkit.PlanCase
	peerTimes
	own []svg.Point // seconds by pods
}

// curve measures each case at each size.
func curve(ctx context.Context) (*result, error) {
	r := &result{head: []string{"pods", "case", "Cluster Autoscaler, published", "its estimator, measured", "Berth, a whole plan", "nodes", "per pod"}}
	var all []timed
	for _, c := range testkit.PublishedPlanCases() {
		t := timed{PlanCase: c, peerTimes: peers[c.Name]}
		for _, pods := range sizes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			c.Pods = pods
			seconds, nodes, err := planTime(c)
			if err != nil {
				return nil, err
			}
			t.own = append(t.own, svg.Point{X: float64(pods), Y: seconds})
			r.rows = append(r.rows, []string{thousands(pods), c.Name, timeAt(t.published, pods), timeAt(t.measured, pods),
				fmt.Sprintf("%.3f s", seconds), thousands(nodes), fmt.Sprintf("%.1f µs", seconds/float64(pods)*1e6)})
		}
		all = append(all, t)
	}
	r.after = "Berth's times are CPU time of the process, the least of three plans, each by a planner that has made none before."
	r.pictures = []picture{{"curve.svg", "Time of a plan by the number of pods", curvePicture(all)}}
	return r, nil
}

// planTime returns the CPU time of a plan, the least of three, and how many nodes it buys. It is an
// error when the plan doesn't have a node for each pod. Garbage is collected before each plan, and
// each has a planner of its own, so that none profits from the one before.
func planTime(c testkit.PlanCase) (seconds float64, nodes int, err error) {
	schema := cluster.NewSchema()
	pending := c.Pending(schema)
	for try := range 3 {
		p, err := planner.New(c.Cluster(schema), []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{}, nil)
		if err != nil {
			return 0, 0, err
		}
		if err := p.CatchUp(); err != nil {
			return 0, 0, err
		}
		runtime.GC()
		before := cpu()
		plan := p.Plan(autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0), Pending: pending})
		took := (cpu() - before).Seconds()
		if try == 0 || took < seconds {
			seconds = took
		}
		planned := plan.Covered
		nodes = 0
		for _, up := range plan.ScaleUps {
			planned += len(up.Pods)
			nodes += up.Nodes
		}
		if planned != len(pending) {
			return 0, 0, fmt.Errorf("%s: %d of %d pods have a node in the plan", c.Name, planned, len(pending))
		}
	}
	return seconds, nodes, nil
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it can't fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timeAt returns the time at a number of pods, as text; a dash for none.
func timeAt(points []svg.Point, pods int) string {
	for _, p := range points {
		if int(p.X) == pods {
			return fmt.Sprintf("%g s", p.Y)
		}
	}
	return "–"
}

// curvePicture draws whole times, and those of a pod, by the number of pods. Both axes are
// logarithmic: a straight line of slope 1 is time in proportion, and quadratic growth is twice as
// steep.
func curvePicture(all []timed) string {
	return svg.Figure(1080, 330, func(out *strings.Builder) {
		whole := svg.Plot{Out: out, Left: 70, Top: 30, Width: 280, Height: 250, Log: true, MinX: 1000, MaxX: 100000, MinY: 0.0001, MaxY: 1000,
			Title: "One plan", XName: "pods that wait", YName: "seconds"}
		pod := whole
		pod.Left, pod.MinY, pod.MaxY, pod.Title, pod.YName = 430, 0.1, 100000, "… for each pod", "µs"
		whole.Axes()
		pod.Axes()
		line := 0
		legend := func(c svg.Color, text string) { pod.Legend(c, line, text); line++ }
		for i, t := range all {
			for _, curve := range []struct {
				points []svg.Point
				color  svg.Color
				draw   func(*svg.Plot, svg.Color, []svg.Point)
				name   string
			}{
				{t.published, svg.Color(i), (*svg.Plot).Dots, "dot: Cluster Autoscaler, published: " + t.Name},
				{t.measured, svg.Color(i), func(p *svg.Plot, c svg.Color, points []svg.Point) {
					p.Dashed(c, points)
					p.Dots(c, points)
				}, "dashed: its estimator: " + t.Name},
				{t.own, svg.Color(i), (*svg.Plot).Curve, "line: Berth: " + t.Name},
			} {
				if len(curve.points) == 0 {
					continue
				}
				curve.draw(&whole, curve.color, curve.points)
				curve.draw(&pod, curve.color, each(curve.points))
				legend(curve.color, curve.name)
			}
		}
	})
}

// each returns µs a pod, of seconds in all.
func each(points []svg.Point) (out []svg.Point) {
	for _, p := range points {
		out = append(out, svg.Point{X: p.X, Y: p.Y / p.X * 1e6})
	}
	return out
}

// thousands returns a whole number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
