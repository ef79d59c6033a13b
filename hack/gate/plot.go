package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/berthproject/berth/internal/gate"
	"github.com/berthproject/berth/internal/svg"
)

var colors = []string{"#1f6fb4", "#c0392b", "#27813b", "#8e6fb4", "#b8860b", "#444"}

// plot draws the history of the ratios, by days since the first.
func plot(h gate.History) string {
	first, days, most := h[0].Day, 1.0, 1.0
	for _, e := range h {
		days = max(days, e.Day.Sub(first).Hours()/24)
		if e.Kind == gate.Ratio {
			most = max(most, e.Value)
		}
	}
	every := int(math.Ceil(most/500)) * 50
	return svg.Figure(820, 360, func(out *strings.Builder) {
		p := svg.Plot{Out: out, Left: 50, Top: 30, Width: 480, Height: 270, MaxX: days, MaxY: float64(every) * math.Ceil(most*1.05/float64(every)),
			EveryX: int(math.Ceil(days / 10)), EveryY: every,
			Title: "A placement on 5,000 nodes: how many times as long kube-scheduler's algorithm takes", XName: "days since " + first.Format("2 January 2006"), YName: "times"}
		p.Axes()
		for i, name := range h.Cases(gate.Ratio) {
			color := colors[i%len(colors)]
			entries := h.Of(gate.Ratio, name)
			var points strings.Builder
			y := 0.0
			for k, e := range entries { // a figure stays as it is until its next line
				x := p.X(e.Day.Sub(first).Hours() / 24)
				if k > 0 {
					fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
				}
				y = p.Y(e.Value)
				fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
				fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, color)
			}
			fmt.Fprintf(&points, "%.1f,%.1f", p.X(days), y)
			fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", points.String(), color)
			p.Text(550, p.Top+20+float64(i)*18, "start", color, fmt.Sprintf("%s: %.0f", name, entries[len(entries)-1].Value))
		}
	})
}
