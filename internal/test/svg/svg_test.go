package svg

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// TestFiguresAreXML: names with characters that XML knows are escaped, and values lie within the axes.
func TestFiguresAreXML(t *testing.T) {
	figure := Figure(300, 200, func(out *strings.Builder) {
		p := Plot{Out: out, Left: 50, Top: 30, Width: 200, Height: 100, MaxX: 2, MaxY: Above(7), Title: "a < b & c", XName: "x", YName: "<y>", Labels: []string{"one", "<two>", "three"}, EveryX: 1}
		p.Axes()
		p.Curve(Blue, []Point{{0, 0}, {2, 7}})
		p.Dashed(Red, []Point{{0, 5}, {2, 5}})
		p.Dots(Grey+1, []Point{{1, 3}}) // colours begin anew after the last
		p.Legend(Green, 0, "d > e")
	})
	d := xml.NewDecoder(strings.NewReader(figure))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, figure)
		}
	}
	for _, want := range []string{"a &lt; b &amp; c", "&lt;two&gt;", `points="50.0,130.0 250.0,42.5"`, `<circle class="dot c0" cx="150.0" cy="92.5" r="3"/>`, "prefers-color-scheme:dark"} {
		if !strings.Contains(figure, want) {
			t.Errorf("the figure lacks %s:\n%s", want, figure)
		}
	}
}

// TestTicks: an axis has four to ten of them, and ends with one.
func TestTicks(t *testing.T) {
	p := Plot{}
	for most := 0.0007; most < 1e7; most *= 1.37 {
		end := Above(most)
		ticks := p.ticks(0, end, 0)
		if n := len(ticks); n < 4 || n > 11 || ticks[n-1] < end*(1-1e-9) {
			t.Errorf("an axis to %g, for %g, has the ticks %v", end, most, ticks)
		}
		if end < most || end > 1.6*most {
			t.Errorf("%g is drawn on an axis that ends at %g", most, end)
		}
	}
}

// TestAPageEscapesTexts, but not the figures in it.
func TestAPageEscapesTexts(t *testing.T) {
	got, err := Page("<title>", "<text>", []Section{{Title: "<part>", Head: []string{"<head>"}, Rows: [][]string{{"<cell>"}}, Figures: []string{"<svg></svg>"}}})
	if err != nil || !strings.Contains(got, "<svg></svg>") {
		t.Fatalf("%v, %s", err, got)
	}
	for _, text := range []string{"<text>", "<part>", "<head>", "<cell>"} {
		if strings.Contains(got, text) {
			t.Errorf("%s isn't escaped:\n%s", text, got)
		}
	}
}
