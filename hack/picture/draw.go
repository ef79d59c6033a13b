package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// theme has the colours of a picture. Each has a contrast of at least 4.5 to the background.
type theme struct {
	background, border, text, dim string
	columns                       [4]string // of a row: its time, pods, nodes and money
}

var themes = map[string]theme{
	"light": {"#ffffff", "#d1d9e0", "#1f2328", "#656d76", [4]string{"#656d76", "#0969da", "#1a7f37", "#9a6700"}},
	"dark":  {"#0d1117", "#3d444d", "#e6edf3", "#8b949e", [4]string{"#8b949e", "#58a6ff", "#3fb950", "#d29922"}},
}

// Sizes in pixels.
const (
	character  = 7.8 // width of one; each word is fitted to it, so that columns stand in any font
	lineHeight = 18
	margin     = 20
	titleBar   = 36
)

// draw returns a picture of lines on a terminal.
func draw(lines []string, t theme) string {
	longest := 0
	for _, line := range lines {
		longest = max(longest, utf8.RuneCountInString(line))
	}
	width, height := 2*margin+int(character*float64(longest))+1, titleBar+2*margin+lineHeight*(len(lines)-1)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>What make demo prints</title>\n"+`<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, t.background, t.border)
	fmt.Fprintf(&b, `<path d="M0 %d H%d" stroke="%s"/>`+"\n", titleBar, width, t.border)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="5" fill="%s"/>`+"\n", margin+18*i, titleBar/2, t.border)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="%s">$ make demo</text>`+"\n", width/2, titleBar/2+4, t.dim)
	for i, line := range lines {
		for _, w := range wordsOf(line, t) {
			n := utf8.RuneCountInString(w.text)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" fill="%s">%s</text>`+"\n",
				margin+character*float64(w.at), titleBar+margin+lineHeight*i+4, character*float64(n), w.color, html.EscapeString(w.text))
		}
	}
	return b.String() + "</svg>\n"
}

// word is a word of a line, in its place.
type word struct {
	at          int // characters from the left
	text, color string
}

var zero = regexp.MustCompile(`^0(\.0+)?$`)

// wordsOf returns the words of a line with their colours: in a row of the table each column has its
// own, and nothing stands out that is zero.
func wordsOf(line string, t theme) (out []word) {
	isRow, column := row.MatchString(line), 0
	isHead := !isRow && strings.Contains(line, "│")
	runes := []rune(line)
	for from := 0; from < len(runes); from++ {
		to := from
		for to < len(runes) && runes[to] != ' ' {
			to++
		}
		if to == from {
			continue
		}
		w := word{from, string(runes[from:to]), t.text}
		switch {
		case w.text == "│":
			w.color = t.border
			column++
		case isHead, isRow && zero.MatchString(w.text):
			w.color = t.dim
		case isRow:
			w.color = t.columns[min(column, len(t.columns)-1)]
		}
		out = append(out, w)
		from = to
	}
	return out
}
