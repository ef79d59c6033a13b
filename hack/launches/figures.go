package main

import (
	"fmt"
	"strings"

	"github.com/berthproject/berth/sim/sweep"
)

// This file draws the figures, as SVG by hand: equal runs give equal files.

// plot is one pair of axes in a figure.
type plot struct {
	out                 *strings.Builder
	left, top           float64 // of the drawing area
	width, height       float64
	maxX, maxY          float64
	title, xName, yName string
	everyX, everyY      int // of the ticks
}

func (p *plot) x(v float64) float64 { return p.left + v/p.maxX*p.width }
func (p *plot) y(v float64) float64 { return p.top + p.height - v/p.maxY*p.height }

// axes draws the frame, the ticks with a grid, and the names.
func (p *plot) axes() {
	fmt.Fprintf(p.out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#888"/>`+"\n", p.left, p.top, p.width, p.height)
	for v := 0; v <= int(p.maxX); v += p.everyX {
		p.text(p.x(float64(v)), p.top+p.height+14, "middle", "#444", fmt.Sprint(v))
	}
	for v := 0; v <= int(p.maxY); v += p.everyY {
		fmt.Fprintf(p.out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", p.left, p.left+p.width, p.y(float64(v)), p.y(float64(v)))
		p.text(p.left-4, p.y(float64(v))+4, "end", "#444", fmt.Sprint(v))
	}
	p.text(p.left, p.top-8, "start", "#000", p.title)
	p.text(p.left+p.width/2, p.top+p.height+28, "middle", "#444", p.xName)
	fmt.Fprintf(p.out, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" fill="#444">%s</text>`+"\n", p.left-30, p.top+p.height/2, p.yName)
}

func (p *plot) text(x, y float64, anchor, color, text string) {
	fmt.Fprintf(p.out, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, color, text)
}

// figure wraps what draw draws.
func figure(width, height int, draw func(*strings.Builder)) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	draw(&out)
	out.WriteString("</svg>\n")
	return out.String()
}

// limitsFigure has a plot for each infrastructure: how long the batch takes under each
// limit, and adaptively.
func limitsFigure(all []outcome) string {
	return figure(820, 280*((len(all)+1)/2), func(out *strings.Builder) {
		for i, o := range all {
			p := plot{out: out, left: 50 + float64(i%2)*410, top: 30 + float64(i/2)*280, width: 340, height: 200,
				maxX: 200, maxY: 80, everyX: 20, everyY: 20, title: o.Title, xName: "fixed limit, nodes", yName: "minutes"}
			p.axes()
			for _, r := range o.fixed {
				if float64(r.Limit) > p.maxX || r.Seconds/60 > p.maxY {
					continue
				}
				color := "#1f6fb4"
				if r.FailedShare() > max(0.02, 1.5*o.adaptive.FailedShare()) {
					color = "#c0392b"
				}
				fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", p.x(float64(r.Limit)), p.y(r.Seconds/60), color)
			}
			y := p.y(o.adaptive.Seconds / 60)
			fmt.Fprintf(out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#27813b" stroke-width="2"/>`+"\n", p.left, p.left+p.width, y, y)
			p.text(p.left+p.width-4, y+14, "end", "#27813b", "adaptive, "+minutes(o.adaptive))
		}
	})
}

// nightFigure has the number of running pods over time.
func nightFigure(night outcome, published, none sweep.Run) string {
	return figure(820, 360, func(out *strings.Builder) {
		p := plot{out: out, left: 50, top: 30, width: 740, height: 270, maxX: 60, maxY: 500, everyX: 5, everyY: 100,
			title: night.Title + ": pods that have started", xName: "minutes", yName: "pods"}
		p.axes()
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
				if s.At.Minutes() > p.maxX {
					break
				}
				fmt.Fprintf(&points, "%.1f,%.1f ", p.x(s.At.Minutes()), p.y(float64(min(s.Running+s.Completed, 500))))
			}
			fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.TrimSpace(points.String()), c.color)
			p.text(p.x(45), p.top+110+float64(k)*16, "end", c.color, c.name+", "+minutes(c.run))
		}
	})
}
