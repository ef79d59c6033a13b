package storm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Step is one line of a plan: a misfortune, for how long, and of whom.
type Step struct {
	// Number counts from 1, in the plan and on people's screens.
	Number int
	Kind   string
	Lasts  time.Duration
	// All says that it concerns every Berth's connections; otherwise only those of the leader.
	All bool
	// Share is the share of connections that it concerns, of those misfortunes that concern
	// connections.
	Share float64
}

// String returns the step as a line of a plan: with what its misfortune goes by.
func (s Step) String() string {
	line := fmt.Sprintf("%d. %s", s.Number, s.Kind)
	m := find(s.Kind)
	if m == nil || m.draws == nothing {
		return line
	}
	if line += fmt.Sprintf(" for %.1f s", s.Lasts.Seconds()); m.draws == length {
		return line
	}
	whom, which := "of the leader", "all connections"
	if s.All {
		whom = "of all Berths"
	}
	if s.Share < 1 {
		which = fmt.Sprintf("%.0f %% of the connections", 100*s.Share)
	}
	return fmt.Sprintf("%s, %s %s", line, which, whom)
}

// Plan returns n steps that a seed draws among kinds. Every kind comes before one comes again.
func Plan(seed uint64, n int, kinds []string) []Step {
	r := rand.New(rand.NewPCG(seed, 0x73746f726d))
	var plan []Step
	for len(plan) < n {
		for _, k := range r.Perm(len(kinds)) {
			plan = append(plan, Step{
				Number: len(plan) + 1, Kind: kinds[k], Lasts: time.Duration(30+r.IntN(60)) * 100 * time.Millisecond,
				All: r.IntN(2) == 0, Share: []float64{0.5, 1}[r.IntN(2)],
			})
		}
	}
	return plan[:n]
}

// Kinds returns the kinds of misfortunes of a list with commas, all for "". Some are for storms with
// devices only.
func Kinds(list string, devices bool) ([]string, error) {
	var all []string
	for _, m := range misfortunes() {
		if devices || !m.devices {
			all = append(all, m.kind)
		}
	}
	if list == "" {
		return all, nil
	}
	var out []string
	for kind := range strings.SplitSeq(list, ",") {
		if m := find(kind); m == nil {
			return nil, fmt.Errorf("there is no misfortune %q; there are %s", kind, strings.Join(all, ", "))
		} else if m.devices && !devices {
			return nil, fmt.Errorf("the misfortune %q is for storms with devices: add --devices", kind)
		}
		out = append(out, kind)
	}
	return out, nil
}
