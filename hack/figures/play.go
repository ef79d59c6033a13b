package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/internal/test/svg"
	"github.com/berthproject/berth/sim"
)

// This file plays scenarios, and draws what they sampled over time.

// played is a run of a scenario, with its samples over virtual time.
type played struct {
	name string // in the picture
	oneRun
}

// play plays a scenario of examples/ under a limit of launches.
func play(ctx context.Context, name, file string, limit launching.Limit) (played, error) {
	r, err := playUnder(ctx, filepath.Base(file), limit, sweepOptions{Folder: filepath.Join("examples", filepath.Dir(file))})
	return played{name, r}, err
}

// The values of samples that are drawn, each in the unit of its plot: pods, GB/s, money, nodes.
func started(s *sim.Sample) float64 { return float64(s.Running + s.Completed) }
func written(s *sim.Sample) float64 { return s.WriteRate / 1e9 }
func running(s *sim.Sample) float64 { return float64(s.Running) }
func cost(s *sim.Sample) float64    { return s.Cost }
func nodes(s *sim.Sample) float64   { return float64(s.Ready + s.Draining) }

// over returns values over time: until a time, in the unit of the axis. A value holds until the
// next sample, so a change is two points at one time: the curve has steps and no slopes.
func (p *played) over(unit time.Duration, until float64, value func(*sim.Sample) float64) (out []svg.Point) {
	held := 0.0
	for i := range p.Samples {
		at, v := float64(p.Samples[i].At)/float64(unit), value(&p.Samples[i])
		if at > until {
			break
		}
		if v != held {
			out = append(out, svg.Point{X: at, Y: held})
		}
		if v != held || i == 0 {
			out = append(out, svg.Point{X: at, Y: v})
		}
		held = v
	}
	return append(out, svg.Point{X: until, Y: held})
}

// plotOver is a plot of values over time.
type plotOver struct {
	title, yName string
	most         float64 // of the vertical axis; 0 for that of the curves
	value        func(*sim.Sample) float64
	of           []played
}

// overTime draws plots side by side, with a legend for the curves of the first, which have the
// same colours in all.
func overTime(unit time.Duration, unitName string, until float64, plots ...plotOver) string {
	const width, height, gap = 330, 240, 80
	return svg.Figure(gap+len(plots)*(width+gap), height+70+18*len(plots[0].of), func(out *strings.Builder) {
		for k, x := range plots {
			curves, most := make([][]svg.Point, len(x.of)), x.most
			for i := range x.of {
				curves[i] = x.of[i].over(unit, until, x.value)
				for _, at := range curves[i] {
					most = max(most, at.Y)
				}
			}
			p := svg.Plot{Out: out, Left: 60 + float64(k)*(width+gap), Top: 30, Width: width, Height: height, MaxX: until, MaxY: svg.Above(most),
				Title: x.title, XName: unitName, YName: x.yName}
			p.Axes()
			for i, points := range curves {
				p.Curve(svg.Color(i), points)
				if k == 0 {
					p.Below(svg.Color(i), i, x.of[i].name)
				}
			}
		}
	})
}

// span returns seconds as people read them.
func span(seconds float64) string {
	d := time.Duration(seconds) * time.Second
	if d < time.Hour {
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// failedOf says how many launches failed.
func failedOf(r *oneRun) string {
	return fmt.Sprintf("%s of %s", thousands(r.Failed), thousands(r.Launched+r.Failed))
}
