package podgroups

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
)

// This file compares what a plan has for pod groups with what there is when it is carried out. A plan has places for
// members in three ways, each of which may have ended since it was begun:
//
//	the member         is named in            and has no place when
//	keeps its place    GangPlan.InPlace       the place has ended: its node comes no more
//	joins a node       Plan.Joins             the node is gone, the pod that it is to be with has no place, or no
//	                                          node is coming on which no place is kept
//	is on a new node   ScaleUp.Bins           the nodes can't be ordered, which the caller looks at
//
// A member that waits no more has no place in any of them. It may have a node; but where others have got nodes meanwhile,
// they may be in another domain than the rest of the plan, so the next plan is waited for.

// Now is what there is when a plan is carried out.
type Now struct {
	// Waits reports whether a pod has no node yet, nor one that others are to leave for it.
	Waits func(types.UID) bool
	// PlaceIn returns of which node group the node is whose room is kept for a pod; ok is false when none is.
	PlaceIn func(types.UID) (group string, ok bool)
	// GroupOf returns the pod group of a pod as namespace/name; "" when it has none, or is gone.
	GroupOf func(types.UID) string
	// HasNode reports whether the node of a join is what it was, if it was registered.
	HasNode func(*autoscaler.Join) bool
	// Places are those that are kept, and Coming is by node group how many nodes are coming that aren't registered.
	Places []autoscaler.Place
	Coming map[string]int
}

// Planned compares what a plan has for pod groups with what there is. Missing must be called for the pod groups in the
// order of the plan, since members of a later one may join nodes on which an earlier one gets places.
type Planned struct {
	now   Now
	ups   map[string][]autoscaler.ScaleUp // by pod group
	joins map[string][]*autoscaler.Join
	gone  map[string]int       // by pod group: members that are to be on new nodes and wait no more
	on    map[string][]string  // by pod group: those whose new nodes members are to be on
	anew  map[string]bool      // pod groups that are planned anew
	ended map[string]bool      // those of them that were asked about, whose places end with the plan
	given map[types.UID]string // the node groups in which pods get places by the plan, as far as it was looked at
	taken map[string]int       // by node group: coming nodes on which the plan keeps a place that had none
	undo  func()               // for OutOfDate: takes back what the last Missing has noted
}

// NewPlanned looks at what a plan has that isn't for a pod group.
func NewPlanned(plan *autoscaler.Plan, now Now) *Planned {
	p := &Planned{now: now, ups: map[string][]autoscaler.ScaleUp{}, joins: map[string][]*autoscaler.Join{}, gone: map[string]int{},
		on: map[string][]string{}, anew: map[string]bool{}, ended: map[string]bool{}, given: map[types.UID]string{}, taken: map[string]int{}}
	for i := range plan.Gangs {
		p.anew[plan.Gangs[i].Gang] = plan.Gangs[i].Anew
	}
	for i := range plan.ScaleUps {
		if up := &plan.ScaleUps[i]; up.Gang != "" {
			p.ups[up.Gang] = append(p.ups[up.Gang], *up)
			p.noteOn(up)
		}
	}
	for i := range plan.Joins {
		if j := &plan.Joins[i]; j.Gang != "" {
			p.joins[j.Gang] = append(p.joins[j.Gang], j)
		} else {
			p.without(j)
		}
	}
	return p
}

// ScaleUps returns what a plan buys for a pod group.
func (p *Planned) ScaleUps(gang string) []autoscaler.ScaleUp { return p.ups[gang] }

// On returns the pod groups for which the nodes are bought that members of a group are to be on, once for each member.
func (p *Planned) On(gang string) []string { return p.on[gang] }

// Missing returns how many of the members that have a place in the plan have none now. It assumes that the rest of what
// the plan has for this pod group is carried out; call OutOfDate if it isn't.
func (p *Planned) Missing(g *autoscaler.GangPlan) int {
	n, taken := p.gone[g.Gang], maps.Clone(p.taken)
	p.ended[g.Gang] = g.Anew
	p.undo = func() {
		p.taken, p.ended[g.Gang] = taken, g.Anew && g.Placed == 0
		for _, j := range p.joins[g.Gang] {
			for _, uid := range j.Pods {
				delete(p.given, uid)
			}
		}
	}
	for _, uid := range g.InPlace {
		if _, has := p.now.PlaceIn(uid); !has || !p.now.Waits(uid) {
			n++
		}
	}
	for _, j := range p.joins[g.Gang] {
		n += p.without(j)
	}
	return n
}

// OutOfDate records that what the plan has for the pod group of the last call of Missing isn't carried out: its members
// keep the places that they have, unless the plan has none for them.
func (p *Planned) OutOfDate() { p.undo() }

// noteOn notes which members are to be on the new nodes of a pod group.
func (p *Planned) noteOn(up *autoscaler.ScaleUp) {
	for _, uid := range up.Pods {
		switch of := p.now.GroupOf(uid); {
		case of == "":
			p.gone[up.Gang]++
		case !p.now.Waits(uid):
			p.gone[of]++
		case of != up.Gang:
			p.on[of] = append(p.on[of], up.Gang)
		}
	}
}

// without returns how many pods of a join get no place by it, and notes which do.
func (p *Planned) without(j *autoscaler.Join) (n int) {
	room := p.hasRoom(j)
	for _, uid := range j.Pods {
		if room && p.now.Waits(uid) {
			p.given[uid] = j.Group
		} else {
			n++
		}
	}
	return n
}

// hasRoom reports whether the room of a join is there still: on its node, in the place of a pod that stays there, or on a coming
// node on which no place is kept, of which there is one less then.
func (p *Planned) hasRoom(j *autoscaler.Join) bool {
	switch {
	case !p.now.HasNode(j):
		return false
	case j.With != "":
		group, given := p.given[j.With]
		if !given {
			group, given = p.now.PlaceIn(j.With)
			given = given && !p.anew[p.now.GroupOf(j.With)]
		}
		return given && group == j.Group
	case j.Node != "":
		return true
	}
	p.taken[j.Group]++
	return p.taken[j.Group]+p.kept(j.Group) <= p.now.Coming[j.Group]
}

// kept returns on how many coming nodes of a group that aren't registered places are kept that don't end with the plan.
func (p *Planned) kept(group string) (n int) {
	for i := range p.now.Places {
		x := &p.now.Places[i]
		if x.Group == group && x.Node == "" && slices.ContainsFunc(x.Pods, func(uid types.UID) bool { return !p.ended[p.now.GroupOf(uid)] }) {
			n++
		}
	}
	return n
}
