package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/berthproject/berth/internal/term"
)

// styles are how tones look: in the terminal's own colours, which suit its background.
// Tones are meanings, by which the tables are written.
var styles = map[tone]lipgloss.Style{
	plain: lipgloss.NewStyle(), faint: lipgloss.NewStyle().Faint(true), strong: lipgloss.NewStyle().Bold(true), bad: lipgloss.NewStyle().Foreground(lipgloss.Red),
	good: lipgloss.NewStyle().Foreground(lipgloss.Green), busy: lipgloss.NewStyle().Foreground(lipgloss.Yellow), chosen: lipgloss.NewStyle().Reverse(true),
}

// paint returns a text in a tone.
func paint(s string, t tone) string {
	if t == plain || s == "" {
		return s
	}
	return styles[t].Render(s)
}

// roomy is the height of a terminal from which the head has all its lines.
const roomy = 12

// head returns the lines above the table.
// On a low terminal rows are worth more than a summary.
func (m *model) head() []string {
	var out []string
	lines := term.HeadLines(m.shown.status)
	if m.height < roomy {
		lines = lines[:min(1, len(lines))]
	}
	for i, l := range lines {
		t := plain
		if i == 0 {
			t = strong
		}
		out = append(out, paint(ansi.Truncate(l, m.width, "…"), t))
	}
	return append(out, m.tabLine())
}

// tabLine names the tabs, and how the one is looked at that is shown.
// It is part of the head, so that a filter or an order that hides rows is never overlooked.
func (m *model) tabLine() string {
	counts := [tabs]int{len(m.shown.nodes), len(m.shown.groups), m.shown.status.Pods.Pending}
	var parts []string
	for i, name := range tabNames {
		part := fmt.Sprintf("%d %s %d", i+1, name, counts[i])
		if i == m.tab {
			part = paint("["+part+"]", strong)
		}
		parts = append(parts, part)
	}
	v, t := m.views[m.tab], m.shown.tableOf(m.tab, m.width)
	if v.sort >= 0 {
		parts = append(parts, "sort "+t.columns[v.sort].title)
	}
	if v.reversed {
		parts = append(parts, "reversed")
	}
	if v.group >= 0 {
		parts = append(parts, "by "+t.groups[v.group])
	}
	if v.filter != "" || m.filtering {
		filter := "/" + v.filter
		if m.filtering {
			filter += "_"
		}
		parts = append(parts, paint(filter, busy))
	}
	return ansi.Truncate(strings.Join(parts, "  "), m.width, "…")
}

// body returns how many rows fit on the screen.
// It must agree with head: both count the same lines.
func (m *model) body() int {
	used := 2 // the heading of the table, and the last line
	if m.height < roomy {
		used += 2
	} else {
		used += len(term.HeadLines(m.shown.status)) + 1
	}
	return max(m.height-used, 1)
}

// View implements tea.Model.
// The alternative screen gives the terminal back as it was.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	return v
}

// lines returns the screen: as many lines as the terminal has at most, none wider than it.
func (m *model) lines() []string {
	var out []string
	switch {
	case m.help:
		out = helpLines
	case m.detail != nil:
		out = m.detailLines()
	default:
		out = append(m.head(), m.tableLines()...)
	}
	// A copy: helpLines must not be changed.
	out = append([]string{}, out[:min(len(out), max(m.height-1, 0))]...)
	for len(out) < m.height-1 {
		out = append(out, "")
	}
	out = append(out, m.foot())
	for i := range out {
		out[i] = ansi.Truncate(out[i], m.width, "…")
	}
	return out
}

// foot is the last line: how to leave, or why there is no answer.
// An error comes first: what is above may be old.
func (m *model) foot() string {
	switch {
	case m.failed != nil:
		return paint(fmt.Sprintf("q quits; no response since %s UTC: %s", m.shown.status.At.UTC().Format(time.TimeOnly), term.Printable(m.failed)), bad)
	case m.filtering:
		return paint("type a filter; enter keeps it, esc clears it", faint)
	case m.detail != nil:
		return paint("q quits  esc back  ↑↓ scroll", faint)
	case m.help:
		return paint("any key goes back, q quits", faint)
	case m.paused:
		return paint("q quits; paused: p goes on", busy)
	}
	return paint("q quits  ? help  "+m.pace()+"  enter explain  / filter  s sort  g group  tab next  p pause  ↑↓ move", faint)
}

// pace says when the screen changes.
func (m *model) pace() string {
	switch {
	case m.shown.still():
		return "a file"
	case m.streaming:
		return "live"
	}
	return "every " + m.interval.String()
}

// helpLines say what keys do.
// They fit on a screen of 80 columns.
var helpLines = []string{
	"1 2 3, tab    nodes, node groups, pending pods",
	"↑ ↓ j k       move; page up and down, home and end too",
	"enter         explain the node, the node group or the pod under the cursor",
	"esc           back; take the filter away",
	"/             filter by any text of a row",
	"s, S          sort by the next column; reverse the order",
	"g             group by the next kind: nodes by node group, zone, type or state",
	"p             pause",
	"q, ctrl+c     quit",
	"",
	"Nodes come in this order unless sorted: on their way out, not ready, removable,",
	"then by utilization. CPU, MEM and GPU are what pods request.",
}

// tableLines returns the rows that fit, with their heading. The cursor is always among them.
// The first row that is shown moves no more than it has to.
func (m *model) tableLines() []string {
	t, rows := m.rows()
	body := m.body()
	at, top := m.at(rows), &m.top[m.tab]
	*top = min(max(*top, at-body+1), at)
	// Rows may have become fewer since.
	*top = min(*top, max(len(rows)-body, 0))
	shown := rows[*top:min(len(rows), *top+body)]
	// Widths are of the rows that are shown, so they may change while one scrolls.
	widths := t.widths(shown, m.width)
	var titles []cell
	for i, c := range t.columns {
		title := c.title
		if i == m.views[m.tab].sort {
			title += "*"
			widths[i] = max(widths[i], min(len(title), widths[i]+1))
		}
		titles = append(titles, toned(title, faint))
	}
	out := []string{t.line(titles, widths, false)}
	for i, r := range shown {
		under := *top+i == at
		if r.heading {
			s := ansi.Truncate(r.cells[0].text, m.width, "…")
			if under {
				out = append(out, paint(s, chosen))
			} else {
				out = append(out, paint(s, strong))
			}
			continue
		}
		out = append(out, t.line(r.cells, widths, under))
	}
	if len(rows) == 0 {
		out = append(out, paint("nothing to show", faint))
	}
	return out
}

// line returns a row in the widths of the columns.
// A column without room has width 0 and is left out. Texts that are too long lose their
// middle: names differ at both ends.
func (t *table) line(cells []cell, widths []int, under bool) string {
	var b strings.Builder
	for i, c := range cells {
		if widths[i] == 0 {
			continue
		}
		s := middle(c.text, widths[i])
		pad := strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(s)))
		if t.columns[i].right {
			s, pad = pad+s, ""
		}
		// The gap has the cursor's tone, too, so that the bar has no holes.
		if b.Len() > 0 {
			b.WriteString(paint(strings.Repeat(" ", gap), toneUnder(plain, under)))
		}
		b.WriteString(paint(s, toneUnder(c.tone, under)) + paint(pad, toneUnder(plain, under)))
	}
	return b.String()
}

// toneUnder returns the tone of a text, which the cursor may be on.
func toneUnder(t tone, under bool) tone {
	if under {
		return chosen
	}
	return t
}

// detailLines returns what fits of an explanation.
// It isn't cut at the bottom: lines does that.
func (m *model) detailLines() []string {
	d := m.detail
	out := []string{paint(fmt.Sprintf("%s %s", d.kind, d.name), strong)}
	if d.failed != nil {
		out = append(out, paint(term.Printable(d.failed), bad))
	}
	// An explanation that was read again may be shorter.
	d.top = min(d.top, max(len(d.lines)-1, 0))
	return append(out, d.lines[d.top:]...)
}
