package scheduler

// This file brings those back who were taken off their nodes for a group (podgroup_victims.go), as long as its members
// have places without them leaving.

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// maxRescued is how many victims of a group are looked at once more, whether it finds places without
// them leaving.
const maxRescued = 64

// reprieve has units that were taken off come back as long as the members fit where they are, the most
// important first, and returns those that can't; nil when all can.
func (s *victimSearch) reprieve(units []framework.Unit) *groupVictims {
	units = slices.Clone(units)
	s.engine.Profile().Preempter.Order(units, s.state)
	r := newReprieve(s)
	r.bringBackOf(units)
	return s.victims(r.stay, s.places)
}

// reprieve is what bringing units back takes: on are the places by their nodes, and beyond is set when a
// member's rules look beyond its node.
type reprieve struct {
	*victimSearch
	on     map[cluster.NodeIndex][]int
	beyond bool
	stay   []framework.Unit // that can't come back
}

// newReprieve returns what brings units back while the members are in their places.
func newReprieve(s *victimSearch) *reprieve {
	r := &reprieve{victimSearch: s, on: map[cluster.NodeIndex][]int{}}
	for k, p := range s.places {
		r.on[p.Choice.Node] = append(r.on[p.Choice.Node], k)
		if c := s.classOf(&s.request.Members[p.Member]); !r.beyond && s.engine.LooksBeyondNode(c) {
			r.beyond = !s.engine.CountableMembers(c)
		}
	}
	return r
}

// bringBackOf brings back what can come back of units, in their order. It halves what can't come back
// together, so that it asks O(victims × log units) times.
// Most units can come back, so asking about many at once pays.
func (r *reprieve) bringBackOf(units []framework.Unit) {
	if len(units) == 0 {
		return
	}
	if r.exhausted() {
		r.stay = append(r.stay, units...)
		return
	}
	if !r.lackRoom(units) {
		if r.bringBack(units) && r.membersFit(units) {
			return
		}
		r.takeOff(units)
	}
	if len(units) == 1 {
		r.stay = append(r.stay, units[0])
		return
	}
	r.bringBackOf(units[:len(units)/2])
	r.bringBackOf(units[len(units)/2:])
}

// membersFit reports whether each member fits where it is beside units that have come back.
// Where rules look at one node only, members elsewhere can't be affected.
func (r *reprieve) membersFit(units []framework.Unit) bool {
	if r.beyond {
		return r.membersFitInOrder()
	}
	asked := map[cluster.NodeIndex]bool{}
	for i := range units {
		for _, n := range units[i].Nodes {
			if asked[n] {
				continue
			}
			asked[n] = true
			for _, k := range r.on[n] {
				if !r.memberFits(k) {
					return false
				}
			}
		}
	}
	return true
}

// lackRoom reports whether the nodes of units have no room for their members as well, by the rules that look at one node
// alone: then they can't come back together. Nothing is moved to find that out, which costs the most of a question. Each
// node is asked about its last member, when all others are there. Of a member that takes objects it isn't known.
func (r *reprieve) lackRoom(units []framework.Unit) bool {
	back := map[cluster.NodeIndex][]*cluster.Pod{}
	var nodes []cluster.NodeIndex // with members, in the order of units: each question counts as work
	for i := range units {
		for k, n := range units[i].Nodes {
			if len(r.on[n]) == 0 {
				continue
			}
			if back[n] == nil {
				nodes = append(nodes, n)
			}
			back[n] = append(back[n], units[i].Pods[k])
		}
	}
	for _, n := range nodes {
		last := r.on[n][len(r.on[n])-1]
		m := &r.request.Members[r.places[last].Member]
		if m.Class.Rejected != nil || r.state.TakesObjects(m.Pod) {
			continue
		}
		as := cluster.DetachedNode(r.state.Node(n).NodeInfo)
		for _, p := range r.state.Node(n).Pods {
			if p != m.Pod {
				as.Add(p)
			}
		}
		for _, p := range back[n] {
			as.Add(p)
		}
		if r.work++; r.engine.HoldsAtMost(m.Class, as, 1) == 0 {
			return true
		}
	}
	return false
}

// membersFitInOrder reports whether the members fit where they are when they come there one after the
// other.
// A rule may have let the second member in because the first was there.
func (r *reprieve) membersFitInOrder() bool {
	r.work += len(r.places)
	mark := r.state.Mark()
	defer r.state.Rollback(mark)
	for i := range r.places {
		r.engine.TakeOff(r.request.Members[r.places[i].Member].Pod)
	}
	for i := range r.places {
		p := &r.places[i]
		m := &r.request.Members[p.Member]
		if !r.engine.FitsOn(r.engine.Class(m.Pod), r.state.Node(p.Choice.Node)) {
			return false
		}
		r.engine.PlaceOn(m.Pod, p.Choice.Node)
	}
	return true
}

// memberFits reports whether the member of a place fits there, with all others where they are.
func (r *reprieve) memberFits(k int) bool {
	p := &r.places[k]
	m := &r.request.Members[p.Member]
	r.work++
	mark := r.state.Mark()
	defer r.state.Rollback(mark)
	r.engine.TakeOff(m.Pod)
	return r.engine.FitsOn(r.classOf(m), r.state.Node(p.Choice.Node))
}

// rescue returns victims without those who may stay after all, if the members find places elsewhere.
// Members may be moved for it, unlike in reprieve. When a pod has to leave, those on its node that are like it in all
// that rules read aren't tried. All tries together may do as much work as one exhaustive search: the first take what
// they need, and the others place members in order only.
func (s *victimSearch) rescue(v *groupVictims) *groupVictims {
	left, places, needed := slices.Clone(v.units), v.places, map[alike]bool{}
	s.engine.Profile().Preempter.Order(left, s.state)
	defer func() { s.answers = maxAnswers }()
	for i, tries := 0, 0; i < len(left) && len(left) > 1 && tries < maxRescued && s.takenOff <= maxTakenOff; {
		key, known := s.alike(&left[i])
		if known && needed[key] {
			i++
			continue
		}
		tries++
		rest, before := slices.Delete(slices.Clone(left), i, i+1), s.work
		fits := s.fits(rest)
		s.answers = max(0, s.answers-(s.work-before))
		if !fits {
			needed[key] = known
			i++
			continue
		}
		left, places = rest, slices.Clone(s.places)
	}
	return s.victims(left, places)
}

// alike is what rules read of a pod on a node: as a pod to be placed (its class), and as one that others count.
type alike struct {
	class  *engine.Class
	node   cluster.NodeIndex
	labels string // with the namespace
}

// alike returns the key of a unit; known is false for several pods, and for one that has taken objects such as
// devices, of which two with equal claims may have different ones.
func (s *victimSearch) alike(u *framework.Unit) (key alike, known bool) {
	p := u.Pods[0]
	if len(u.Pods) > 1 || s.state.TakesObjects(p) {
		return key, false
	}
	return alike{s.engine.Class(p), u.Nodes[0], p.Object.Namespace + "/" + labels.Set(p.Object.Labels).String()}, true
}
