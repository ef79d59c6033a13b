package gate

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Floor is the share of its newest entry under which a ratio fails. CPU times of one run vary by a tenth
// or two on a busy machine, and both sides' together.
const Floor = 0.7

// news is by what share a figure has to have changed to be worth a line.
const news = 0.1

// Failures says which figures are worse than the history lets them be: a ratio under its floor,
// more allocations than before, a figure that the history doesn't have, and one that it has and
// nobody measured.
func (h History) Failures(measured []Figure) (out []string) {
	for _, f := range measured {
		was, known := h.latest(f)
		switch {
		case !known:
			out = append(out, fmt.Sprintf("the %s isn't in the history: record it (make bench WHAT=gate RECORD=1)", f))
		case f.Kind == Ratio && f.Value < Floor*was.Value:
			out = append(out, fmt.Sprintf("the %s is %.4g, under %.4g, its floor: it was %.4g at %s", f, f.Value, Floor*was.Value, was.Value, was.Commit))
		case f.Kind == Allocs && f.Value > was.Value:
			out = append(out, fmt.Sprintf("the %s are %.4g, more than %.4g, as it was at %s", f, f.Value, was.Value, was.Commit))
		}
	}
	for _, k := range []Kind{Ratio, Allocs} {
		for _, name := range h.Cases(k) {
			if f := (Figure{Kind: k, Case: name}); !has(measured, f) {
				out = append(out, fmt.Sprintf("the %s wasn't measured", f))
			}
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
		if f.Kind == Ratio {
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
// tenth, or is new.
func (h History) Record(measured []Figure, day time.Time, commit string) History {
	out := h[:len(h):len(h)]
	for _, f := range measured {
		if was, known := h.latest(f); !known || math.Abs(f.Value-was.Value) > news*was.Value {
			out = append(out, Entry{f, day, commit})
		}
	}
	return out
}
