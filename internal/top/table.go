package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// tone is what a text means; the screen has a style for each.
type tone int

const (
	plain tone = iota
	faint
	strong
	bad
	good
	busy
	chosen // the row under the cursor
)

// cell is a text in a row. Numbers sort by num, others by text.
// The tone is of the text; under the cursor it is another one.
type cell struct {
	text   string
	tone   tone
	num    float64
	number bool
}

// text returns a cell that sorts by its text.
func text(s string) cell { return cell{text: s} }

// toned returns such a cell in a tone.
func toned(s string, t tone) cell { return cell{text: s, tone: t} }

// numbered returns a cell that sorts by a number, whatever its text says.
func numbered(s string, n float64) cell { return cell{text: s, num: n, number: true} }

// column is a column of a table.
// Its width follows the texts of the rows that are shown.
type column struct {
	title string
	// from is the width of the terminal from which it is shown.
	from int
	// least and most bound its width; one with most 0 takes what is left.
	least, most int
	right       bool
}

// row is a line of a table: an object, or the heading of a group of rows.
type row struct {
	key   string // the same in the next snapshot
	cells []cell
	// kind and name are what is explained of it, "" for nothing.
	kind, name string
	// groups are the values by which it can be grouped, in the order of table.groups.
	groups  []string
	heading bool
}

// table is what a tab shows.
type table struct {
	columns []column
	groups  []string // what rows can be grouped by
	rows    []row
}

// view is how a table is looked at.
// It outlives snapshots; indices are of columns and groups, which a tab's tables have in
// common.
type view struct {
	sort     int // index of a column, -1 for the order of the rows
	reversed bool
	group    int    // index of a group, -1 for none
	filter   string // lower case
}

// look returns the rows that a view has, with headings where they are grouped.
// Rows of the table aren't changed.
func (t *table) look(v view) []row {
	var out []row
	for _, r := range t.rows {
		// Also by what rows are grouped by, which may not be shown.
		if v.filter == "" || slices.ContainsFunc(append(texts(r.cells), r.groups...), func(s string) bool { return strings.Contains(strings.ToLower(s), v.filter) }) {
			out = append(out, r)
		}
	}
	if v.sort >= 0 && v.sort < len(t.columns) {
		slices.SortStableFunc(out, func(a, b row) int { return compare(a.cells[v.sort], b.cells[v.sort]) })
	}
	if v.reversed {
		slices.Reverse(out)
	}
	if v.group < 0 || v.group >= len(t.groups) {
		return out
	}
	// Within a group rows stay in their order.
	slices.SortStableFunc(out, func(a, b row) int { return strings.Compare(a.groups[v.group], b.groups[v.group]) })
	return t.headed(out, v.group)
}

// headed puts a heading before each group of rows.
func (t *table) headed(rows []row, group int) (out []row) {
	for i := 0; i < len(rows); {
		name, n := rows[i].groups[group], i
		for n < len(rows) && rows[n].groups[group] == name {
			n++
		}
		title := t.groups[group] + " " + cmp.Or(name, "(none)")
		h := row{key: "heading " + title, heading: true, name: name, cells: []cell{toned(title+": "+count(n-i), strong)}}
		// Node groups can be explained; zones and types can't.
		if t.groups[group] == "group" && name != "" {
			h.kind = "group"
		}
		out = append(append(out, h), rows[i:n]...)
		i = n
	}
	return out
}

// compare orders two cells of a column.
func compare(a, b cell) int {
	if a.number && b.number {
		return cmp.Compare(a.num, b.num)
	}
	return strings.Compare(a.text, b.text)
}

// texts returns what can be searched.
func texts(cells []cell) []string {
	out := make([]string, len(cells))
	for i := range cells {
		out[i] = cells[i].text
	}
	return out
}

// widths returns the width of each column on a terminal; 0 for one that isn't shown. Columns from the right are left
// out when all don't fit, but never the first.
// The title is never cut by most.
func (t *table) widths(rows []row, width int) []int {
	out := make([]int, len(t.columns))
	for i, c := range t.columns {
		if i > 0 && width < c.from {
			continue
		}
		out[i] = max(c.least, ansi.StringWidth(c.title))
		for _, r := range rows {
			if !r.heading {
				out[i] = max(out[i], ansi.StringWidth(r.cells[i].text))
			}
		}
		if c.most > 0 {
			out[i] = min(out[i], max(c.most, ansi.StringWidth(c.title)))
		}
	}
	// The first column gives way first, then the last is left out, and so on.
	for over := total(out) - width; over > 0; over = total(out) - width {
		if least := t.columns[0].least; out[0] > least {
			out[0] = max(out[0]-over, least)
			continue
		}
		i := len(out) - 1
		for i > 0 && out[i] == 0 {
			i--
		}
		if i == 0 {
			out[0] = max(width, 1)
			break
		}
		if least := max(t.columns[i].least, ansi.StringWidth(t.columns[i].title)); t.columns[i].most == 0 && out[i]-over >= least {
			out[i] -= over
		} else {
			out[i] = 0
		}
	}
	return out
}

// gap is between two columns.
const gap = 2

// total returns how wide columns are together.
func total(widths []int) (n int) {
	for i, w := range widths {
		if w > 0 && i > 0 {
			n += gap
		}
		n += w
	}
	return n
}

// middle returns a text with so many letters at most. What is left out is in its middle: names differ at their ends.
// Wide letters take two columns.
func middle(s string, width int) string {
	if ansi.StringWidth(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	head := width / 2
	tail := width - head - 1
	end := ansi.TruncateLeft(s, ansi.StringWidth(s)-tail, "")
	if ansi.StringWidth(end) > tail { // half of a wide letter isn't cut off
		end = ansi.TruncateLeft(s, ansi.StringWidth(s)-tail+1, "")
	}
	return ansi.Truncate(s, head, "") + "…" + end
}
