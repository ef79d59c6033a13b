package svg

import (
	"fmt"
	"strings"
)

// Color is one that can be told from the others, on light and on dark paper.
type Color int

// The colours. Curves of a plot take them in turn.
const (
	Blue Color = iota
	Red
	Green
	Purple
	Gold
	Grey
	colors
)

// hues are the colours on light and on dark paper. Each has a contrast of at least 4.5 to it.
var hues = [colors][2]string{
	{"#1f6fb4", "#58a6ff"}, {"#c0392b", "#ff7b72"}, {"#27813b", "#3fb950"},
	{"#8250b4", "#bc8cff"}, {"#8a6500", "#d29922"}, {"#555555", "#9da7b1"},
}

// class returns the class of what is drawn in a colour.
func (c Color) class() string { return fmt.Sprintf("c%d", int(c)%int(colors)) }

// style has the colours of figures. The paper is that of the pages that show them.
var style = func() string {
	var light, dark strings.Builder
	for c := range colors {
		fmt.Fprintf(&light, ".%s{color:%s}", c.class(), hues[c][0])
		fmt.Fprintf(&dark, ".%s{color:%s}", c.class(), hues[c][1])
	}
	return ".paper{fill:#fff}.frame{fill:none;stroke:#888}.grid{stroke:#ddd}text{fill:#444}text.title{fill:#000}" + light.String() +
		".line{fill:none;stroke:currentColor;stroke-width:2}.dashed{stroke-dasharray:5 4;stroke-width:1.5}.dot,text.of{fill:currentColor}" +
		"@media(prefers-color-scheme:dark){.paper{fill:#0d1117}.frame{stroke:#6e7681}.grid{stroke:#30363d}text{fill:#b1bac4}text.title{fill:#f0f6fc}" + dark.String() + ".dot,text.of{fill:currentColor}}"
}()

// Point is a pair of values.
type Point struct{ X, Y float64 }

// Curve draws a line through points.
func (p *Plot) Curve(c Color, points []Point) { p.line(c, "line", points) }

// Dashed draws a dashed line through points: a limit, or what others have.
func (p *Plot) Dashed(c Color, points []Point) { p.line(c, "line dashed", points) }

func (p *Plot) line(c Color, class string, points []Point) {
	var out []string
	for _, at := range points {
		out = append(out, fmt.Sprintf("%.1f,%.1f", p.X(at.X), p.Y(at.Y)))
	}
	fmt.Fprintf(p.Out, `<polyline class="%s %s" points="%s"/>`+"\n", class, c.class(), strings.Join(out, " "))
}

// Dots draws points.
func (p *Plot) Dots(c Color, points []Point) {
	for _, at := range points {
		fmt.Fprintf(p.Out, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="3"/>`+"\n", c.class(), p.X(at.X), p.Y(at.Y))
	}
}

// Name writes a text in a colour, at values of the axes.
func (p *Plot) Name(c Color, x, y float64, anchor, text string) {
	p.text(p.X(x), p.Y(y), anchor, "of "+c.class(), text)
}

// Legend writes what a colour is of, in a line beside the plot, from 0 on.
func (p *Plot) Legend(c Color, line int, text string) {
	p.text(p.Left+p.Width+8, p.Top+14+float64(line)*18, "start", "of "+c.class(), text)
}

// Below writes what a colour is of, in a line below the plot, from 0 on.
func (p *Plot) Below(c Color, line int, text string) {
	p.text(p.Left, p.Top+p.Height+50+float64(line)*18, "start", "of "+c.class(), text)
}
