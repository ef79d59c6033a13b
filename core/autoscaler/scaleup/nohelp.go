package scaleup

import (
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// This file finds out for a plan why no group would help the classes whose pods are left over. There
// may be as many classes as pods, and each is evaluated for each group, so
//
//   - some classes are explained in every plan that buys nothing, others in each; from then on the
//     stopwatch is asked after each group, and what isn't explained by then is left to the next plan;
//   - of plain classes only a node outside of the state is asked, and its answer is kept
//     (memory.go);
//   - for the others a node of the group is added to the state for many classes at once.
//
// The slow reference is rejects, for one class and one group.

// explainedTogether is how many classes are explained with one new node of each group.
const explainedTogether = 256

// filteredOut is why a group that could grow doesn't: an expander has forbidden it.
const filteredOut = "expansion options filtered out and no longer considered"

// explain gives the reason why no group would help, for each class that has pods left: for each
// reason, "COUNT reason", how many groups give it, sorted as text. A group that is limited
// gives that reason alone; any other all messages of the first rule that rejects the class.
// NoHelp.Later reports whether a group would take the pods for which its limit passes. Pods
// for which there was no time are Unplanned.
func (b *builder) explain(left []*run) {
	limits := b.limitsReached()
	classes := inTurn(byClass(left), b.req.Number)
	for len(classes) > 0 {
		together := classes[:min(len(classes), explainedTogether)]
		said, ok := b.reasons(together, limits, len(b.plan.NoHelp) > 0)
		if !ok {
			b.plan.Unplanned += count(classes)
			return
		}
		for i, r := range together {
			b.plan.NoHelp = append(b.plan.NoHelp, autoscaler.NoHelp{
				Pods: uids(expander.Pods{r.pods}), Reasons: autoscaler.CountReasons(said[i].counts), Later: said[i].later})
		}
		classes = classes[len(together):]
	}
}

// inTurn returns classes so that each plan begins with others, if they are more than are explained
// together.
func inTurn(classes []*run, plan uint64) []*run {
	parts := (len(classes) + explainedTogether - 1) / explainedTogether
	if parts < 2 {
		return classes
	}
	first := int(plan%uint64(parts)) * explainedTogether
	return slices.Concat(classes[first:], classes[:first])
}

// limitReached is a group with the limit that it has reached, "" for none.
type limitReached struct {
	model *model
	limit string
}

func (b *builder) limitsReached() (out []limitReached) {
	for _, g := range b.State.Groups() {
		x := limitReached{model: b.models[g.ID]}
		if room, limit := b.headroom(g); room <= 0 {
			x.limit = limit
		}
		out = append(out, x)
	}
	return out
}

// said is what the groups say about a class.
type said struct {
	counts map[string]int // of groups, by reason
	later  bool
}

// reasons asks all groups about some classes; ok is false when that may take too long, and does.
func (b *builder) reasons(classes []*run, limits []limitReached, bounded bool) (out []said, ok bool) {
	out = make([]said, len(classes))
	var current []*engine.Class // of classes that aren't plain, as nothing is placed from here on; nil for none
	for i, r := range classes {
		out[i].counts = map[string]int{}
		if e := b.Engine(r.pods[0]); !b.anew && !b.plain(e, r.class) {
			if current == nil {
				current = make([]*engine.Class, len(classes))
			}
			current[i] = e.Current(r.class, r.pods[0])
		}
	}
	for _, x := range limits {
		if x.limit != "" && !passes(x.limit) {
			for i := range out {
				out[i].counts[x.limit]++
			}
			continue
		}
		b.whys(x.model, classes, current, func(i int, why *framework.Reason) { out[i].add(x.limit, why) })
		if bounded && b.planOver() {
			return nil, false
		}
	}
	return out, true
}

// add counts what a group says that is to be asked.
func (s *said) add(limit string, why *framework.Reason) {
	switch {
	case limit != "":
		s.counts[limit]++
		s.later = s.later || why == nil
	case why == nil:
		s.counts[filteredOut]++ // the group was an option, so the expander has forbidden it
	default:
		for _, m := range why.Messages {
			s.counts[m]++
		}
	}
}

// whys calls is with why an empty new node of a group doesn't take each of some classes, nil
// when it does. current has the classes that aren't plain as they are now, nil for plain ones; nil if all are.
func (b *builder) whys(m *model, classes []*run, current []*engine.Class, is func(i int, why *framework.Reason)) {
	probe := cluster.NoNode
	mark := b.State.Mark()
	defer b.State.Rollback(mark)
	for i, r := range classes {
		e := b.Engine(r.pods[0])
		if b.anew {
			is(i, b.rejects(m.group, r.class, r.pods[0]))
			continue
		}
		if current == nil || current[i] == nil {
			is(i, b.whyAlone(m, e, r.class))
			continue
		}
		if probe == cluster.NoNode {
			probe = b.addNode(m, m.group.ID+"/probe")
		}
		b.work.Asked++
		is(i, e.Explain(current[i], probe))
	}
}

// plain reports whether a new node alone has all to say about whether it takes pods of a
// class, as long as it looks the same.
func (b *builder) plain(e *engine.Engine, c *engine.Class) bool {
	return b.plainDaemons && plain(e, c)
}

func plain(e *engine.Engine, c *engine.Class) bool {
	return !e.State().TakesObjects(c.Pod()) && !e.LooksBeyondNode(c)
}

// whyAlone returns why an empty new node of a group doesn't take a plain class, nil when it
// does.
func (b *builder) whyAlone(m *model, e *engine.Engine, c *engine.Class) *framework.Reason {
	a := b.memory.answersFor(c)
	switch n := a.whys[m.slot]; n {
	case 0:
		b.work.Asked++
		why := e.ExplainAlone(c, b.blank(m))
		a.whys[m.slot] = b.memory.numberOf(why)
		return why
	case takesIt:
		return nil
	default:
		return b.memory.whys[n-1]
	}
}
