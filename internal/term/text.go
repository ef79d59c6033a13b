// Package term writes the answers of a running Berth as text: its status (status.go), also on one line
// (brief.go), and explanations (explain.go); internal/top draws them again and again. text.go has
// what these are made of.
//
// What must hold:
//   - whatever is on the screen comes from one answer of Berth: nothing is added up from two;
//   - colours say nothing that the words don't: a pipe, $NO_COLOR and a reader who can't tell red from
//     green get the same information;
//   - times are UTC;
//   - a section has a bounded number of lines and says how many it leaves out.
package term

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// This file is text for a terminal: colours where there is one, tables whose columns line up
// though some cells are coloured, and bars.

// colour is the number of a way to write text, as terminals have them; 0 for as it comes.
type colour int

// Colours by what they are for.
const (
	plain  colour = 0
	strong colour = 1  // headings
	faint  colour = 2  // what matters less
	bad    colour = 31 // red
	good   colour = 32 // green
	busy   colour = 33 // yellow
)

// palette writes in colour, or not: its zero value doesn't.
type palette struct{ colours bool }

// paletteFor returns the palette for an output: with colours on a terminal that may have them.
func paletteFor(out io.Writer) palette { return palette{isTerminal(out) && coloursAllowed()} }

// coloursAllowed reports whether a terminal may have colours: unless $NO_COLOR is set (no-color.org)
// or it says that it can't.
func coloursAllowed() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// isTerminal reports whether what is written to out is shown on a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // file descriptors are small
}

// Width returns how many columns the terminal has that shows what is written to out, 0 without one.
func Width(out io.Writer) int {
	if !isTerminal(out) {
		return 0
	}
	width, _, err := term.GetSize(int(out.(*os.File).Fd())) //nolint:gosec // file descriptors are small
	if err != nil {
		return 0
	}
	return width
}

// paint returns a text in a colour. The escapes take no width: whoever lines columns up measures the
// text before it is painted.
func (p palette) paint(c colour, text string) string {
	if !p.colours || c == plain || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}

// cell is a text in one colour. It has no line breaks and no escapes of its own.
type cell struct {
	text   string
	colour colour
}

// line is a row of cells, or text without columns when it has one.
type line []cell

// say returns a line of text.
func say(c colour, format string, args ...any) line { return line{{fmt.Sprintf(format, args...), c}} }

// columnGap is between two columns.
const columnGap = 2

// table returns rows with their columns lined up, indented by two.
func table(rows []line) []line {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	out := make([]line, 0, len(rows))
	for _, row := range rows {
		padded := line{{"  ", plain}}
		for i, c := range row {
			padded = append(padded, c)
			if i < len(row)-1 {
				padded = append(padded, cell{strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+columnGap), plain})
			}
		}
		out = append(out, padded)
	}
	return out
}

// text returns a line with so many letters at most, 0 for any number. A line that is too long ends with
// an ellipsis: it never wraps, which would push others off the screen.
func (l line) text(p palette, width int) string {
	var b strings.Builder
	left := width
	for _, c := range l {
		text := c.text
		if width > 0 {
			text = cut(text, left)
			left -= utf8.RuneCountInString(text)
		}
		b.WriteString(p.paint(c.colour, text))
		if width > 0 && left <= 0 {
			break
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// cut returns the first letters of a text; where it leaves some out, it ends with an ellipsis.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// barWidth is how many letters a bar has.
const barWidth = 12

// bar returns a share as a bar with its number. One above 1, of a node that has too much, is full.
func bar(share float64) string {
	full := int(math.Round(min(max(share, 0), 1) * barWidth))
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full) + fmt.Sprintf(" %3.0f %%", 100*share)
}
