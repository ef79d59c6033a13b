package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/berthproject/berth/internal/test/svg"
)

// curve is a figure in a plot; factor turns its unit in parts into the plot's.
type curve struct {
	key, name string
	factor    float64
}

// plots are those of the figure, two in each row.
var plots = []struct {
	title, unit string
	curves      []curve
}{
	{"For each pod", "µs", []curve{
		{"engine one", "placement, one class", 1},
		{"engine many", "placement, many classes", 1},
		{"core pod", "core, in turn", 1},
		{"together fill", "core, in a row", 1},
		{"simulator pod", "simulator", 1},
	}},
	{"In all", "seconds", []curve{
		{"core total", "core", 1},
		{"scale-up plan", "scale-up", 1},
		{"scale-down first", "scale-down", 1},
		{"simulator total", "simulator", 1},
	}},
	{"One question", "ms", []curve{
		{"engine first", "first pod of a shape", 1},
		{"together idle", "scan, nothing changed", 1},
		{"together changed", "scan, 1 % changed", 1000},
		{"scale-down next", "scale-down, 1 % changed", 1000},
	}},
	{"Most memory", "MiB", []curve{
		{"core peak", "core", 1024},
		{"together peak", "scheduler and autoscaler", 1024},
		{"scale-up peak", "scale-up", 1024},
		{"scale-down peak", "scale-down", 1024},
		{"simulator peak", "simulator", 1024},
	}},
}

// plot draws the curves, as SVG: equal figures give equal files.
func (g *growth) plot() string {
	const width, height = 240, 200
	return svg.Figure(1040, 290*((len(plots)+1)/2), func(out *strings.Builder) {
		for i, x := range plots {
			p := svg.Plot{Out: out, Left: 60 + float64(i%2)*520, Top: 30 + float64(i/2)*290, Width: width, Height: height, Log: true,
				Title: x.title, XName: "nodes", YName: x.unit}
			p.MinX, p.MaxX = svg.Decades(float64(g.nodes[0]), float64(g.nodes[len(g.nodes)-1]))
			least, most := math.Inf(1), 0.0
			for _, c := range x.curves {
				for _, n := range g.nodes {
					if v := g.values[c.key][n] * c.factor; v > 0 {
						least, most = min(least, v), max(most, v)
					}
				}
			}
			if most == 0 {
				continue
			}
			p.MinY, p.MaxY = svg.Decades(least, most)
			p.Axes()
			for k, c := range x.curves {
				g.curve(&p, c, svg.Color(k))
			}
		}
	})
}

// curve draws a curve and, beside the plot, its name with the exponent.
func (g *growth) curve(p *svg.Plot, c curve, color svg.Color) {
	var points []svg.Point
	for _, n := range g.nodes {
		if v := g.values[c.key][n] * c.factor; v > 0 {
			points = append(points, svg.Point{X: float64(n), Y: v})
		}
	}
	p.Dots(color, points)
	p.Curve(color, points)
	name := c.name
	if l, ok := fit(g.values[c.key]); ok {
		name += fmt.Sprintf(": %.2f", l.exponent)
	}
	p.Legend(color, int(color), name)
}
