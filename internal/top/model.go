package top

import (
	"bytes"
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/term"
)

// model is what the screen shows, and what the user has chosen. It implements tea.Model.
// Bubble Tea calls Update and View from one goroutine, so nothing here has a lock. What
// takes time is a command, which runs elsewhere and sends a message.
type model struct {
	ctx      context.Context
	from     term.Source
	interval time.Duration

	width, height int
	shown         *snapshot
	failed        error // why the latest answer didn't come; nil when it did
	paused        bool
	// streaming says that changes come by themselves, and stale that one has come since the tables were read.
	// A stream brings the overview; tables are asked for.
	streaming, stale bool
	asked            time.Time // when the tables were read
	// told is the time of the newest overview of the stream, by the clock of the leader that sends it: tables from before
	// lack what it tells of. Zero without a stream.
	told time.Time

	tab   int
	views [tabs]view
	// cursor is the key of the row under the cursor, and top the first row that is shown.
	// A key, not an index, so that the cursor stays with its row when others come and go.
	cursor [tabs]string
	top    [tabs]int

	// filtering says that what is typed is the filter.
	filtering bool
	help      bool
	// detail is what one object's explanation is of; nil for the table.
	// It is read again like the tables while it is open.
	detail *detail
}

// detail is an explanation of one object.
type detail struct {
	kind, name string
	lines      []string
	failed     error
	top        int
}

// The messages.
// answered and explained are answers to ask and explain; due says that the interval is
// over.
type (
	answered struct {
		shown  *snapshot
		failed error
	}
	explained struct {
		kind, name string
		text       string
		failed     error
	}
	due struct{}
)

// The size is corrected by the first message of the terminal. first must not be nil.
func newModel(ctx context.Context, from term.Source, interval time.Duration, first *snapshot) *model {
	m := &model{ctx: ctx, from: from, interval: interval, shown: first, width: 80, height: 24}
	for i := range m.views {
		// -1 is the order of the rows, and no groups.
		m.views[i] = view{sort: -1, group: -1}
	}
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.wait() }

// wait sends due after the interval. It is called once for each due, so that intervals
// don't pile up.
func (m *model) wait() tea.Cmd {
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return due{} })
}

// ask reads the next snapshot.
// It must not change the model: it runs in another goroutine.
func (m *model) ask() tea.Cmd {
	return func() tea.Msg {
		s, err := read(m.ctx, m.from)
		return answered{s, err}
	}
}

// explain reads an explanation.
// Its text is the same as that of berth explain.
func (m *model) explain(kind, name string) tea.Cmd {
	return func() tea.Msg {
		var out bytes.Buffer
		t, err := term.TopicOf("berth", []string{kind, name}, func() (string, error) { return "default", nil })
		if err == nil {
			err = t.Explain(m.ctx, &out, m.from, term.NewOutput(term.Text))
		}
		return explained{kind, name, out.String(), err}
	}
}

// Update implements tea.Model. A question is asked only when the last one was answered.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case changed:
		// While paused the screen stays as it is; stale has the tables read when it goes
		// on.
		m.told = msg.overview.At
		if m.streaming, m.stale = true, true; !m.paused {
			m.shown = m.shown.with(msg.overview) // the tables may still lack an answer: failed stays
		}
	case lost:
		m.streaming, m.told = false, time.Time{} // the next leader may have another clock
	case due:
		// The next look comes with the next interval.
		if m.paused || !m.wants() {
			return m, m.wait()
		}
		m.stale, m.asked = false, time.Now()
		if d := m.detail; d != nil {
			return m, tea.Batch(m.ask(), m.explain(d.kind, d.name))
		}
		return m, m.ask()
	case answered:
		if m.failed = msg.failed; msg.shown != nil {
			// After a failure the last snapshot stays on the screen, with the error in the
			// last line.
			m.take(msg.shown)
		}
		return m, m.wait()
	case explained:
		// The answer may be for an object that was closed meanwhile.
		if d := m.detail; d != nil && d.kind == msg.kind && d.name == msg.name {
			if d.failed = msg.failed; msg.failed == nil {
				d.lines = strings.Split(strings.TrimRight(msg.text, "\n"), "\n")
			}
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// quietFor is after how long the tables are read again although nothing is said to have changed: ages grow.
const quietFor = 15 * time.Second

// wants reports whether the tables are to be read again: when something has changed, or may have without a stream.
// A file doesn't change, and isn't read again.
func (m *model) wants() bool {
	return !m.shown.still() && (!m.streaming || m.stale || m.failed != nil || time.Since(m.asked) >= quietFor)
}

// take shows a snapshot. What of it was asked of the core before the newest overview that the stream has brought is older
// than the head of the screen: that overview stays, and the tables are read once more.
func (m *model) take(s *snapshot) {
	if shown := &m.shown.status.Overview; !m.told.IsZero() && s.status.Overview.At.Before(shown.At) {
		s = s.with(shown)
	}
	m.shown = s
	m.stale = m.stale || s.at.Before(m.told) && !s.at.IsZero()
}

// with returns the snapshot with another overview.
// The tables stay as they were read.
func (s *snapshot) with(o *v1alpha1.Overview) *snapshot {
	out := *s
	out.status = &term.Status{Overview: *o, Meta: s.status.Meta}
	return &out
}

// key does what a key is for.
// The order matters: ctrl+c always quits, and while a filter is typed letters aren't
// commands.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.filtering {
		m.typed(msg)
		return nil
	}
	if m.help {
		m.help = false
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "?", "h":
		m.help = true
	case "p":
		m.paused = !m.paused
	case "esc", "backspace", "left":
		m.back()
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup", "ctrl+b":
		m.move(-m.body())
	case "pgdown", "ctrl+f", "space":
		m.move(m.body())
	// Far beyond any table; move keeps within it.
	case "home":
		m.move(-1 << 30)
	case "end", "G":
		m.move(1 << 30)
	case "enter", "right":
		return m.open()
	default:
		m.choose(name)
	}
	return nil
}

// choose changes which table is shown, and how.
// These keys do nothing while an explanation is open.
func (m *model) choose(name string) {
	if m.detail != nil {
		return
	}
	v, t := &m.views[m.tab], m.shown.tableOf(m.tab, m.width)
	switch name {
	case "1", "2", "3":
		m.tab = int(name[0] - '1')
	case "tab":
		m.tab = (m.tab + 1) % tabs
	case "s": // through the columns, to the order of the rows
		if v.sort++; v.sort >= len(t.columns) {
			v.sort = -1
		}
	case "S":
		v.reversed = !v.reversed
	case "g":
		if v.group++; v.group >= len(t.groups) {
			v.group = -1
		}
	case "/":
		m.filtering = true
	}
}

// typed changes the filter.
// Filters are in lower case, as what they are compared with.
func (m *model) typed(msg tea.KeyPressMsg) {
	v := &m.views[m.tab]
	switch msg.String() {
	case "enter":
		m.filtering = false
	case "esc":
		m.filtering, v.filter = false, ""
	case "backspace":
		// A letter may have several bytes.
		if letters := []rune(v.filter); len(letters) > 0 {
			v.filter = string(letters[:len(letters)-1])
		}
	default:
		v.filter += strings.ToLower(msg.Key().Text)
	}
}

// back leaves the explanation, or takes the filter away.
func (m *model) back() {
	if m.detail != nil {
		m.detail = nil
		return
	}
	m.views[m.tab].filter = ""
}

// rows returns the rows of the tab.
func (m *model) rows() (*table, []row) {
	t := m.shown.tableOf(m.tab, m.width)
	return t, t.look(m.views[m.tab])
}

// at returns the index of the row under the cursor: the first when it is gone.
func (m *model) at(rows []row) int {
	for i := range rows {
		if rows[i].key == m.cursor[m.tab] {
			return i
		}
	}
	return 0
}

// move moves the cursor, or scrolls an explanation.
// by is in rows, negative for up.
func (m *model) move(by int) {
	if d := m.detail; d != nil {
		d.top = min(max(d.top+by, 0), max(len(d.lines)-m.body(), 0))
		return
	}
	_, rows := m.rows()
	if len(rows) > 0 {
		m.cursor[m.tab] = rows[min(max(m.at(rows)+by, 0), len(rows)-1)].key
	}
}

// open explains the row under the cursor; a heading that can't be explained becomes the filter.
func (m *model) open() tea.Cmd {
	if m.detail != nil {
		return nil
	}
	_, rows := m.rows()
	if len(rows) == 0 {
		return nil
	}
	r := rows[m.at(rows)]
	// A group's heading becomes the filter: its rows are what the user wants to see.
	if r.kind == "" {
		m.views[m.tab].filter = strings.ToLower(r.name)
		m.views[m.tab].group = -1
		return nil
	}
	// Shown at once, so that the key is seen to work while the answer is under way.
	m.detail = &detail{kind: r.kind, name: r.name, lines: []string{"…"}}
	return m.explain(r.kind, r.name)
}
