package scheduler

// This file places a group that prefers to be in one domain of further topologies (cluster.TopologyLevels).
// There is no second kind of rule for that: the group is placed as one that requires what it prefers. What it
// requires is said by its object, which is another for the attempt, and the old one afterwards.

import (
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// preferred returns how many levels the group prefers.
func (t *transaction) preferred() (n int) {
	for _, l := range t.request.Levels {
		if !l.Required {
			n++
		}
	}
	return n
}

// labelsWith returns the labels that the group requires, and the first of those that it prefers.
func (t *transaction) labelsWith(preferred int) (labels []string) {
	if t.request.Levels == nil && t.request.Topology != "" {
		return []string{t.request.Topology}
	}
	for _, l := range t.request.Levels {
		if !l.Required {
			preferred--
		}
		if l.Required || preferred >= 0 {
			labels = append(labels, l.Label)
		}
	}
	return labels
}

// findPreferred takes enough places in one domain of each required level and of the first preferred ones,
// and reports whether there are. When there aren't, nothing is left of it.
func (t *transaction) findPreferred(preferred int) bool {
	group := t.state.PodGroup(*t.request.Members[0].Pod.Group)
	if group == nil {
		return false
	}
	members, labels, quiet := t.request.Members, t.labels, t.quiet
	mark := t.state.Mark()
	t.labels, t.quiet = t.labelsWith(preferred), true
	t.state.SetObject(cluster.WithRequiredTopologies(group, t.labels))
	t.request.Members = slices.Clone(members)
	classes := map[*engine.Class]*engine.Class{}
	for i := range t.request.Members {
		m := &t.request.Members[i]
		if classes[m.Class] == nil {
			classes[m.Class] = t.engine.Class(m.Pod)
		}
		m.Class = classes[m.Class]
	}
	found := t.findRequired()
	t.request.Members, t.quiet = members, quiet
	t.orderless, t.vain, t.status, t.why, t.first, t.hadPlace = false, nil, "", nil, nil, nil
	if !found {
		t.state.Rollback(mark)
		t.labels, t.places, t.nodes, t.inDomain, t.domain = labels, t.places[:0], nil, nil, ""
		return false
	}
	for i := range t.places {
		t.places[i].Class = members[t.places[i].Member].Class
	}
	failed := t.placeRest(group, preferred)
	t.state.Rollback(mark)
	t.placeAgain()
	t.explain(failed)
	return true
}

// placeAgain puts the members back onto the nodes that were found for them, now that the group's object is the
// old one. The attempt can't be kept instead: whoever follows the journal would see the object change twice, and the queue
// would try the members without a place again at once.
func (t *transaction) placeAgain() {
	for i := range t.places {
		p := &t.places[i]
		p.Choice.Writes = t.engine.PlaceOn(t.request.Members[p.Member].Pod, p.Choice.Node)
	}
	t.inDomain, t.vain = map[*engine.Class]*engine.Class{}, nil
}

// placeRest places members that found no place in the domain of all levels, with one preferred level fewer
// after the other, and returns those that find none at all. The group's object is the old one then.
func (t *transaction) placeRest(group *schedulingv1beta1.PodGroup, preferred int) (failed []int) {
	placed := map[int]bool{}
	for _, p := range t.places {
		placed[p.Member] = true
	}
	for i := range t.request.Members {
		if !placed[i] {
			failed = append(failed, i)
		}
	}
	t.nodes = nil
	for k := preferred - 1; k >= 0; k-- {
		if k > 0 {
			t.state.SetObject(cluster.WithRequiredTopologies(group, t.labelsWith(k)))
		} else {
			t.state.SetObject(group)
		}
		t.inDomain, t.vain = map[*engine.Class]*engine.Class{}, map[*engine.Class]int{}
		failed = slices.DeleteFunc(failed, t.place)
	}
	return failed
}
