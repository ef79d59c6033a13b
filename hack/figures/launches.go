package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/internal/test/svg"
)

// This file plays the infrastructures of examples/launch-control under fixed limits and adaptively.

// outcome is what is known of one infrastructure, played under each fixed limit and adaptively.
type outcome struct {
	infrastructure
	fixed          []oneRun // by limit
	best, adaptive oneRun
}

// limitOf makes a limit of a number of nodes. 0 is no limit, and sweep.Adaptive stands for the limit
// that Berth finds itself.
func limitOf(n int) launching.Limit { return launching.Limit(n) }

// launches makes the table and two pictures. The second shows the first infrastructure only: that is
// the one of which numbers were published.
func launches(ctx context.Context) (*result, error) {
	options := sweepOptions{Folder: filepath.Join("examples", "launch-control")}
	r := &result{head: []string{"infrastructure", "best fixed limit", "it takes", "adaptive takes", "ratio", "allowed", "launches that fail, adaptive"}}
	var all []outcome
	for _, i := range infrastructures() {
		fixed, err := underFixed(ctx, i.Name, options)
		if err != nil {
			return nil, err
		}
		adaptive, err := playUnder(ctx, i.Name, launching.Adaptive, options)
		if err != nil {
			return nil, err
		}
		o := outcome{i, fixed, bestOf(fixed), adaptive}
		all = append(all, o)
		r.rows = append(r.rows, []string{i.Title, fmt.Sprint(int(o.best.Limit)), minutes(&o.best), minutes(&adaptive),
			fmt.Sprintf("%.2f", adaptive.Seconds/o.best.Seconds), fmt.Sprintf("%.2f", i.Allowed), failedOf(&adaptive)})
	}
	none, err := playUnder(ctx, all[0].Name, 0, options)
	if err != nil {
		return nil, err
	}
	published, err := playUnder(ctx, all[0].Name, 70, options)
	if err != nil {
		return nil, err
	}
	r.after = fmt.Sprintf("The night under the limit 70, of which 22 min are published: %s, %d launches fail. Without a limit, of which failures are published: %s, %s fail.",
		minutes(&published), published.Failed, minutes(&none), failedOf(&none))
	r.pictures = []picture{
		{"launch-limits.svg", "How long the batch takes under each limit", limitsPicture(all)},
		{"launch-night.svg", "The calibrated night", overTime(time.Minute, "minutes", 60, plotOver{"Pods that have started", "pods", 500, started, []played{
			{"fixed, 70 (as published): " + minutes(&published), published},
			{fmt.Sprintf("fixed, %d (the best): %s", all[0].best.Limit, minutes(&all[0].best)), all[0].best},
			{"adaptive: " + minutes(&all[0].adaptive), all[0].adaptive},
			{"no limit: " + minutes(&none), none},
		}})},
	}
	return r, nil
}

// limitsPicture has a plot for each infrastructure: how long the batch takes under each limit, and
// adaptively. Points in red are runs in which more launches fail than by chance.
func limitsPicture(all []outcome) string {
	return svg.Figure(820, 280*((len(all)+1)/2), func(out *strings.Builder) {
		for i, o := range all {
			p := svg.Plot{Out: out, Left: 50 + float64(i%2)*410, Top: 30 + float64(i/2)*280, Width: 340, Height: 200,
				MaxX: 200, MaxY: 80, EveryX: 20, EveryY: 20, Title: o.Title, XName: "fixed limit, nodes", YName: "minutes"}
			p.Axes()
			for _, r := range o.fixed {
				if float64(r.Limit) > p.MaxX || r.Seconds/60 > p.MaxY {
					continue
				}
				color := svg.Blue
				if r.FailedShare() > max(0.02, 1.5*o.adaptive.FailedShare()) {
					color = svg.Red
				}
				p.Dots(color, []svg.Point{{X: float64(r.Limit), Y: r.Seconds / 60}})
			}
			y := o.adaptive.Seconds / 60
			p.Curve(svg.Green, []svg.Point{{X: 0, Y: y}, {X: p.MaxX, Y: y}})
			p.Name(svg.Green, 197, y-6, "end", "adaptive, "+minutes(&o.adaptive))
		}
	})
}

func minutes(r *oneRun) string { return fmt.Sprintf("%.1f min", r.Seconds/60) }
