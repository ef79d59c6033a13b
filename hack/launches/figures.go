package main

import (
	"fmt"
	"strings"

	"github.com/berthproject/berth/internal/svg"
	"github.com/berthproject/berth/sim/sweep"
)

// This file draws the figures, as SVG by hand: equal runs give equal files.

// limitsFigure has a plot for each infrastructure: how long the batch takes under each
// limit, and adaptively.
func limitsFigure(all []outcome) string {
	return svg.Figure(820, 280*((len(all)+1)/2), func(out *strings.Builder) {
		for i, o := range all {
			p := svg.Plot{Out: out, Left: 50 + float64(i%2)*410, Top: 30 + float64(i/2)*280, Width: 340, Height: 200,
				MaxX: 200, MaxY: 80, EveryX: 20, EveryY: 20, Title: o.Title, XName: "fixed limit, nodes", YName: "minutes"}
			p.Axes()
			for _, r := range o.fixed {
				if float64(r.Limit) > p.MaxX || r.Seconds/60 > p.MaxY {
					continue
				}
				color := "#1f6fb4"
				if r.FailedShare() > max(0.02, 1.5*o.adaptive.FailedShare()) {
					color = "#c0392b"
				}
				fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", p.X(float64(r.Limit)), p.Y(r.Seconds/60), color)
			}
			y := p.Y(o.adaptive.Seconds / 60)
			fmt.Fprintf(out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#27813b" stroke-width="2"/>`+"\n", p.Left, p.Left+p.Width, y, y)
			p.Text(p.Left+p.Width-4, y+14, "end", "#27813b", "adaptive, "+minutes(o.adaptive))
		}
	})
}

// nightFigure has the number of running pods over time.
func nightFigure(night outcome, published, none sweep.Run) string {
	return svg.Figure(820, 360, func(out *strings.Builder) {
		p := svg.Plot{Out: out, Left: 50, Top: 30, Width: 740, Height: 270, MaxX: 60, MaxY: 500, EveryX: 5, EveryY: 100,
			Title: night.Title + ": pods that have started", XName: "minutes", YName: "pods"}
		p.Axes()
		for k, c := range []struct {
			run         sweep.Run
			name, color string
		}{
			{night.adaptive, "adaptive", "#27813b"},
			{night.best, fmt.Sprintf("fixed, %d (the best)", night.best.Limit), "#1f6fb4"},
			{published, "fixed, 70 (as published)", "#8e6fb4"},
			{none, "no limit", "#c0392b"},
		} {
			var points strings.Builder
			for _, s := range c.run.Samples {
				if s.At.Minutes() > p.MaxX {
					break
				}
				fmt.Fprintf(&points, "%.1f,%.1f ", p.X(s.At.Minutes()), p.Y(float64(min(s.Running+s.Completed, 500))))
			}
			fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.TrimSpace(points.String()), c.color)
			p.Text(p.X(45), p.Top+110+float64(k)*16, "end", c.color, c.name+", "+minutes(c.run))
		}
	})
}
