// Package svg draws the plots of docs/ and of the pages that tools write: equal figures give equal
// files. A plot is drawn in light or dark colours, as whoever looks at it prefers.
//
//	svg.go    a figure, and the axes of a plot
//	curves.go what is drawn between axes
//	page.go   a page of figures and tables
package svg

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Plot is one pair of axes in a figure. They are linear and begin at 0, with a tick at each EveryX
// and EveryY; or logarithmic and begin at MinX and MinY, with a tick at each power of ten.
type Plot struct {
	// Out gets the elements, in the order in which they are drawn: later ones cover earlier ones.
	Out                 *strings.Builder
	Left, Top           float64 // of the drawing area
	Width, Height       float64
	MaxX, MaxY          float64
	Title, XName, YName string
	EveryX, EveryY      float64  // of the ticks; 0 chooses some five
	Labels              []string // of the horizontal axis at 0, 1, 2 …, instead of numbers
	Log                 bool     // both axes are logarithmic
	MinX, MinY          float64  // above 0; read when Log
}

// X returns where a value of the horizontal axis is drawn.
func (p *Plot) X(v float64) float64 { return p.Left + p.share(v, p.MinX, p.MaxX)*p.Width }

// Y returns where a value of the vertical axis is drawn.
func (p *Plot) Y(v float64) float64 { return p.Top + p.Height - p.share(v, p.MinY, p.MaxY)*p.Height }

// share returns how far along its axis a value is, from 0 to 1.
func (p *Plot) share(v, from, to float64) float64 {
	if p.Log {
		return math.Log(v/from) / math.Log(to/from)
	}
	return v / to
}

// Axes draws the frame, the ticks with a grid, and the names.
func (p *Plot) Axes() {
	fmt.Fprintf(p.Out, `<rect class="frame" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", p.Left, p.Top, p.Width, p.Height)
	for _, v := range p.ticks(p.MinX, p.MaxX, p.EveryX) {
		text := tick(v)
		if len(p.Labels) > 0 {
			if v != math.Trunc(v) || int(v) >= len(p.Labels) {
				continue
			}
			text = p.Labels[int(v)]
		}
		p.text(p.X(v), p.Top+p.Height+14, "middle", "", text)
	}
	longest := 0 // tick, in characters
	for _, v := range p.ticks(p.MinY, p.MaxY, p.EveryY) {
		longest = max(longest, len(tick(v)))
		fmt.Fprintf(p.Out, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", p.Left, p.Left+p.Width, p.Y(v), p.Y(v))
		p.text(p.Left-4, p.Y(v)+4, "end", "", tick(v))
	}
	p.text(p.Left, p.Top-8, "start", "title", p.Title)
	p.text(p.Left+p.Width/2, p.Top+p.Height+28, "middle", "", p.XName)
	fmt.Fprintf(p.Out, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", p.Left-max(30, 8+7*float64(longest)), p.Top+p.Height/2, html.EscapeString(p.YName))
}

// ticks returns the values of an axis that get a tick.
func (p *Plot) ticks(from, to, every float64) (out []float64) {
	if p.Log {
		for e := math.Ceil(math.Log10(from) - 1e-9); e <= math.Log10(to)+1e-9; e++ {
			out = append(out, math.Pow(10, e))
		}
		return out
	}
	if every == 0 {
		every = step(to)
	}
	for i := 0.0; i*every <= to*(1+1e-9); i++ {
		out = append(out, i*every)
	}
	return out
}

// step returns 1, 2 or 5 times a power of ten, of which four to nine make a number above 0.
func step(of float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(of)))
	for _, s := range []float64{0.2, 0.5, 1} {
		if of/(s*unit) < 10 {
			return s * unit
		}
	}
	return 2 * unit
}

// Above returns where an axis ends on which a number above 0 is drawn: at the next tick.
func Above(most float64) float64 {
	end := most * 1.02
	for range 2 { // the ticks of an axis are those of its end
		s := step(end)
		end = s * math.Ceil(end/s-1e-9)
	}
	return end
}

// Decades returns the powers of ten around two numbers above 0, ten times apart at least.
func Decades(least, most float64) (from, to float64) {
	from, to = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)))
	if from == to {
		to *= 10
	}
	return from, to
}

// tick returns the text at a tick, without what multiplications have lost.
func tick(v float64) string {
	if v != 0 {
		unit := math.Pow(10, math.Floor(math.Log10(v))-5)
		v = math.Round(v/unit) * unit
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 9, 64), "0"), ".")
}

// text writes a text; anchor is start, middle or end.
func (p *Plot) text(x, y float64, anchor, class, text string) {
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	fmt.Fprintf(p.Out, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, class, html.EscapeString(text))
}

// Figure wraps what draw draws.
func Figure(width, height int, draw func(*strings.Builder)) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<style>%s</style>\n", style)
	fmt.Fprintf(&out, `<rect class="paper" width="%d" height="%d"/>`+"\n", width, height)
	draw(&out)
	out.WriteString("</svg>\n")
	return out.String()
}
