// Package svg draws the plots of docs/.
package svg

import (
	"fmt"
	"strings"
)

// Plot is one pair of axes in a figure.
type Plot struct {
	Out                 *strings.Builder
	Left, Top           float64 // of the drawing area
	Width, Height       float64
	MaxX, MaxY          float64
	Title, XName, YName string
	EveryX, EveryY      int // of the ticks
}

// X returns where a value of the horizontal axis is drawn.
func (p *Plot) X(v float64) float64 { return p.Left + v/p.MaxX*p.Width }

// Y returns where a value of the vertical axis is drawn.
func (p *Plot) Y(v float64) float64 { return p.Top + p.Height - v/p.MaxY*p.Height }

// Axes draws the frame, the ticks with a grid, and the names.
func (p *Plot) Axes() {
	fmt.Fprintf(p.Out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#888"/>`+"\n", p.Left, p.Top, p.Width, p.Height)
	for v := 0; v <= int(p.MaxX); v += p.EveryX {
		p.Text(p.X(float64(v)), p.Top+p.Height+14, "middle", "#444", fmt.Sprint(v))
	}
	for v := 0; v <= int(p.MaxY); v += p.EveryY {
		fmt.Fprintf(p.Out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", p.Left, p.Left+p.Width, p.Y(float64(v)), p.Y(float64(v)))
		p.Text(p.Left-4, p.Y(float64(v))+4, "end", "#444", fmt.Sprint(v))
	}
	p.Text(p.Left, p.Top-8, "start", "#000", p.Title)
	p.Text(p.Left+p.Width/2, p.Top+p.Height+28, "middle", "#444", p.XName)
	fmt.Fprintf(p.Out, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" fill="#444">%s</text>`+"\n", p.Left-30, p.Top+p.Height/2, p.YName)
}

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
