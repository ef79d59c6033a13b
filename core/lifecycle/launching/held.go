package launching

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/lifecycle"
)

// This file remembers that a plan was kept from ordering nodes, until there is room. With
// fixed limits nothing is remembered: the next plan is that of the next scan.

// waiting is what waits for room. Its zero value waits for none.
type waiting struct {
	full    []string  // groups that had no room when a plan left pods without a node
	changed bool      // since then something has happened that may have made room
	opens   time.Time // when there may be room though nothing happens; zero for never
}

func (w *waiting) wake() time.Time {
	if len(w.full) == 0 {
		return time.Time{}
	}
	return w.opens
}

// NodesHeldBack records that a plan found pods in need of nodes: those of the groups that have no room
// now are waited for. It costs O(groups).
func (m *Machine) NodesHeldBack(now time.Time, groups []string, coming Coming) {
	if !m.adaptive() {
		return
	}
	m.waiting = waiting{}
	for _, id := range groups {
		if m.Room(now, id, coming) > 0 {
			continue
		}
		m.waiting.full = append(m.waiting.full, id)
		m.scopes(id, func(s *scope) {
			s.held = now
			_, until := s.recent(now)
			m.waiting.opens = lifecycle.Earliest(m.waiting.opens, until)
		})
	}
}

// PlanRequested records that a plan is asked for: it will find what room there is.
func (m *Machine) PlanRequested() { m.waiting = waiting{} }

// MayHaveRoom reports whether something has happened since NodesHeldBack, or the time has come, after
// which a group may have room that had none: then HasRoom is worth its cost.
func (m *Machine) MayHaveRoom(now time.Time) bool {
	w := &m.waiting
	return len(w.full) > 0 && (w.changed || !w.opens.IsZero() && !now.Before(w.opens))
}

// HasRoom reports whether a group has room that had none, and then waits no more. Else it
// waits for the next change.
func (m *Machine) HasRoom(now time.Time, coming Coming) bool {
	full := slices.Clone(m.waiting.full)
	for _, id := range full {
		if m.Room(now, id, coming) > 0 {
			m.waiting = waiting{}
			return true
		}
	}
	m.NodesHeldBack(now, full, coming)
	return false
}
