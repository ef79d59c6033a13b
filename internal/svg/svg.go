// Package svg draws the plots of docs/.
package svg

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Plot is one pair of axes in a figure. They are linear and begin at 0, with a tick at each EveryX
// and EveryY; or logarithmic and begin at MinX and MinY, with a tick at each power of ten.
type Plot struct {
	Out                 *strings.Builder
	Left, Top           float64 // of the drawing area
	Width, Height       float64
	MaxX, MaxY          float64
	Title, XName, YName string
	EveryX, EveryY      int     // of the ticks
	Log                 bool    // both axes are logarithmic
	MinX, MinY          float64 // above 0; read when Log
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
	fmt.Fprintf(p.Out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#888"/>`+"\n", p.Left, p.Top, p.Width, p.Height)
	for _, v := range p.ticks(p.MinX, p.MaxX, p.EveryX) {
		p.Text(p.X(v), p.Top+p.Height+14, "middle", "#444", tick(v))
	}
	longest := 0 // tick, in characters
	for _, v := range p.ticks(p.MinY, p.MaxY, p.EveryY) {
		longest = max(longest, len(tick(v)))
		fmt.Fprintf(p.Out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", p.Left, p.Left+p.Width, p.Y(v), p.Y(v))
		p.Text(p.Left-4, p.Y(v)+4, "end", "#444", tick(v))
	}
	p.Text(p.Left, p.Top-8, "start", "#000", p.Title)
	p.Text(p.Left+p.Width/2, p.Top+p.Height+28, "middle", "#444", p.XName)
	fmt.Fprintf(p.Out, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" fill="#444">%s</text>`+"\n", p.Left-max(30, 8+7*float64(longest)), p.Top+p.Height/2, p.YName)
}

// ticks returns the values of an axis that get a tick.
func (p *Plot) ticks(from, to float64, every int) (out []float64) {
	if p.Log {
		for e := math.Ceil(math.Log10(from) - 1e-9); e <= math.Log10(to)+1e-9; e++ {
			out = append(out, math.Pow(10, e))
		}
		return out
	}
	for v := 0; v <= int(to); v += every {
		out = append(out, float64(v))
	}
	return out
}

// tick returns the text at a tick.
func tick(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Text writes a text; anchor is start, middle or end.
func (p *Plot) Text(x, y float64, anchor, color, text string) {
	fmt.Fprintf(p.Out, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, color, text)
}

// Figure wraps what draw draws.
func Figure(width, height int, draw func(*strings.Builder)) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	draw(&out)
	out.WriteString("</svg>\n")
	return out.String()
}
