package scaledown

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
)

// This file lets a pass reuse the outcome of the last one without looking at any node. It may
// when the last pass has left the world as it found it, by nothing that lasts for one pass only,
// and since then
//
//   - nothing has changed in the cluster, and the request asks for the same (version);
//   - no time is over until which something was said (until);
//   - the nodes that were to be simulated again, since their time is over, were simulated in
//     this very world: they would find what they found then.

// outcome is that of a pass which the next may come to again.
type outcome struct {
	// version is that of the simulator after the pass: the outcome holds for no other.
	version uint64
	// removals and kept are handed out again as they are; plans share them and don't change them.
	removals []*autoscaler.Removal
	kept     []autoscaler.Kept
	until    time.Time // by the API server's time; zero for ever
	stuck    []*stuck  // those of the nodes that stay since a pod has nowhere to go
	recheck  time.Time // when the first of these was simulated
}

// stuck is a node one of whose pods had nowhere to go. Since is when it was simulated, or would
// have been with the same outcome.
type stuck struct {
	autoscaler.Kept
	version uint64 // in which it was simulated
}

// asked is what of a request the outcome of a pass depends on.
type asked struct {
	// Each field is compared by value: all of it may come from new objects though nothing changed.
	rules autoscaler.RemovalRules
	// waits is Readiness.StartupTime, after which an unready node counts as late.
	waits   time.Duration
	leaving map[string]int
	totals  []autoscaler.Total
}

// same reports whether two requests ask for the same, except for their times.
func (a *asked) same(b *asked) bool {
	return a.rules == b.rules && a.waits == b.waits && maps.Equal(a.leaving, b.leaving) && slices.Equal(a.totals, b.totals)
}

func askedBy(req *autoscaler.Request) asked {
	return asked{req.ScaleDown.Rules, req.Readiness.StartupTime, req.ScaleDown.Leaving, req.Limits.Totals}
}

// plain reports whether a pass has no pods to place beside those of candidates, and no nodes that
// are to be replaced. What there is of either lasts for one pass.
func plain(req *autoscaler.Request, plan *autoscaler.Plan) bool {
	return len(req.ScaleDown.Displaced) == 0 && len(plan.Fitting) == 0 && req.ScaleDown.Replacing == nil
}

// repeats reports whether a pass would come to the outcome of the last. Where it may not, what was
// found in the last pass counts as found in another world. So it does after a pass whose outcome
// wasn't kept: nobody knows then until when what it said holds.
func (s *Simulator) repeats(req *autoscaler.Request, plan *autoscaler.Plan) bool {
	now := askedBy(req)
	if !s.asked.same(&now) || !plain(req, plan) || s.last == nil || outlived(s.last.until, req.ServerNow) {
		s.asked = now
		s.version++
	}
	return !s.rebuilt && s.last != nil && s.last.version == s.version && !slices.ContainsFunc(s.due(req), func(k *stuck) bool { return k.version != s.version })
}

// due returns the nodes that are to be simulated again, of those that were stuck in the last pass.
func (s *Simulator) due(req *autoscaler.Request) (out []*stuck) {
	if s.last == nil || len(s.last.stuck) == 0 || req.Now.Sub(s.last.recheck) < s.asked.rules.RecheckAfter {
		return nil
	}
	for _, k := range s.last.stuck {
		if req.Now.Sub(k.Since) >= s.asked.rules.RecheckAfter {
			out = append(out, k)
		}
	}
	return out
}

// repeat returns the outcome of the last pass as that of a pass now. The lists aren't changed any
// more: nobody has to look at one twice.
func (s *Simulator) repeat(req *autoscaler.Request) ([]*autoscaler.Removal, []autoscaler.Kept) {
	if due := s.due(req); due != nil {
		s.last.kept = slices.Clone(s.last.kept)
		for _, k := range due {
			k.Since = req.Now
			at, _ := slices.BinarySearchFunc(s.last.kept, k.Node, func(x autoscaler.Kept, node string) int { return strings.Compare(x.Node, node) })
			s.last.kept[at].Since = req.Now
		}
		s.last.noteRecheck()
	}
	return s.last.removals, s.last.kept
}

// remember keeps the outcome of a pass if the next may come to it. before is the version in which
// the pass began.
func (s *Simulator) remember(p *pass, plan *autoscaler.Plan, before uint64) {
	s.last = nil
	if !plain(p.req, plan) {
		s.version++
	}
	if s.version != before || len(s.skipped) > 0 {
		return
	}
	s.last = &outcome{version: s.version, removals: plan.Removals, kept: plan.Kept, until: p.until}
	for _, k := range s.noPlace { // in any order
		if n := s.world.NodeByName(k.Node); n != nil && p.kept[n.Index] == &k.Kept {
			s.last.stuck = append(s.last.stuck, k)
		}
	}
	s.last.noteRecheck()
}

// noteRecheck finds when the first of the stuck nodes was simulated.
func (o *outcome) noteRecheck() {
	o.recheck = time.Time{}
	for _, k := range o.stuck {
		o.recheck = earlier(o.recheck, k.Since)
	}
}
