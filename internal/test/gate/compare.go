package gate

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// news is by what share a figure has to have changed to be worth a line.
const news = 0.1

// Failures says which figures are worse than the history lets them be: those of held kinds beyond
// their bound, figures that the history doesn't have, and those that it has and nobody measured.
func (h History) Failures(measured []Figure) (out []string) {
	for _, f := range measured {
		r, _ := f.Kind.rule()
		was, known := h.latest(f)
		switch {
		case !r.held:
		case !known:
			out = append(out, fmt.Sprintf("the %s isn't in the history: record it (make bench WHAT=gate RECORD=1)", f))
		case r.beyond(f.Value, was.Value) && r.lessIsWorse:
			out = append(out, fmt.Sprintf("the %s is %.6g, under %.6g, its floor: it was %.6g at %s", f, f.Value, r.worst(was.Value), was.Value, was.Commit))
		case r.beyond(f.Value, was.Value):
			out = append(out, fmt.Sprintf("the %s are %.6g, more than %.6g, as it was at %s", f, f.Value, was.Value, was.Commit))
		}
	}
	for _, r := range rules {
		for _, name := range h.Cases(r.kind) {
			if f := (Figure{Kind: r.kind, Case: name}); r.held && !has(measured, f) {
				out = append(out, fmt.Sprintf("the %s wasn't measured", f))
			}
		}
	}
	return out
}

// Slower says which figures of kinds that aren't held are beyond their bound.
func (h History) Slower(measured []Figure) (out []string) {
	for _, f := range measured {
		r, _ := f.Kind.rule()
		if was, known := h.latest(f); known && !r.held && r.beyond(f.Value, was.Value) {
			out = append(out, fmt.Sprintf("the %s is %.4g, beyond %.4g: it was %.4g at %s", f, f.Value, r.worst(was.Value), was.Value, was.Commit))
		}
	}
	return out
}

// Worse returns of each figure of two runs the worse value: what is recorded, so that a figure's
// floor isn't that of a lucky run. The figures must be the same in both, in one order.
func Worse(a, b []Figure) ([]Figure, error) {
	if len(a) != len(b) {
		return nil, fmt.Errorf("one run measured %d figures, the other %d", len(a), len(b))
	}
	out := slices.Clone(a)
	for i, f := range b {
		if !f.same(a[i]) {
			return nil, fmt.Errorf("one run measured the %s where the other measured the %s", a[i], f)
		}
		if r, _ := f.Kind.rule(); r.lessIsWorse {
			out[i].Value = min(a[i].Value, f.Value)
		} else {
			out[i].Value = max(a[i].Value, f.Value)
		}
	}
	return out, nil
}

func has(all []Figure, f Figure) bool {
	for _, x := range all {
		if x.same(f) {
			return true
		}
	}
	return false
}

// Record returns the history with a line more for each figure that has changed by more than a
// tenth, would fail, or is new.
func (h History) Record(measured []Figure, day time.Time, commit string) History {
	out := h[:len(h):len(h)]
	for _, f := range measured {
		r, _ := f.Kind.rule()
		was, known := h.latest(f)
		if !known || math.Abs(f.Value-was.Value) > news*was.Value || r.held && r.beyond(f.Value, was.Value) {
			out = append(out, Entry{f, day, commit})
		}
	}
	return out
}
