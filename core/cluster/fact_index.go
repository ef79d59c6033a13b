package cluster

import (
	"k8s.io/apimachinery/pkg/labels"
)

// factIndex holds the facts in use, and finds those that a pod counts in without
// asking all of them. Invariant: each fact is in byKey, and in exactly one of
// byOwners, byLabel and other:
//
//   - by the owned term whose owners it counts, which are known when it is new;
//   - by a label that one of its demands requires, so that only pods with that
//     label are asked about it, and only they when it is new (fact_entry.go);
//   - among those that every pod has to be asked about.
//
// Invariant: a fact knows its position in that list (Fact.listed) and in lowest (Fact.atLowest).
// The lists are in no order that means anything, so that a fact is taken out in O(1): a new
// leader and a sweep drop thousands at once.
type factIndex struct {
	byKey    map[string]*Fact
	byOwners map[string]*factEntry
	byLabel  map[label]*factEntry
	keys     map[string]int // how many facts in byLabel require a label of a key; never 0
	other    []*Fact
	lowest   []*Fact                // those that count nodes too
	filters  map[string]*nodeFilter // of the facts, by FactSpec.FilterKey
	state    *State
}

// label is a label with its value.
type label struct{ key, value string }

func (x *factIndex) init(s *State) {
	x.state = s
	x.keys = map[string]int{}
	x.byKey = map[string]*Fact{}
	x.byOwners = map[string]*factEntry{}
	x.byLabel = map[label]*factEntry{}
	x.filters = map[string]*nodeFilter{}
}

// requiredLabel returns a label that the selector requires, if it requires one.
func requiredLabel(sel labels.Selector) (label, bool) {
	reqs, _ := sel.Requirements()
	for _, r := range reqs {
		if vals := r.ValuesUnsorted(); len(vals) == 1 {
			switch r.Operator() {
			case "=", "==", "in":
				return label{r.Key(), vals[0]}, true
			}
		}
	}
	return label{}, false
}

// requiredLabel returns a label that one of the demands requires.
func (f *FactSpec) requiredLabel() (label, bool) {
	for i := range f.Match {
		if l, ok := requiredLabel(f.Match[i].Selector); ok {
			return l, true
		}
	}
	return label{}, false
}

func (x *factIndex) add(f *Fact) {
	x.byKey[f.spec.Key] = f
	x.shareFilter(f)
	if f.spec.Lowest {
		f.atLowest = len(x.lowest)
		x.lowest = append(x.lowest, f)
	}
	if f.spec.Match == nil {
		entryOf(x.byOwners, f.spec.Owners).add(f)
	} else if l, ok := f.spec.requiredLabel(); ok {
		entryOf(x.byLabel, l).add(f)
	} else {
		f.listed = len(x.other)
		x.other = append(x.other, f)
	}
}

func (x *factIndex) remove(f *Fact) {
	delete(x.byKey, f.spec.Key)
	x.unshareFilter(f)
	if f.spec.Lowest {
		last := x.lowest[len(x.lowest)-1]
		last.atLowest = f.atLowest
		x.lowest = withoutAt(x.lowest, f.atLowest)
	}
	if f.spec.Match == nil {
		removeFrom(x.byOwners, f.spec.Owners, f)
	} else if l, ok := f.spec.requiredLabel(); ok {
		removeFrom(x.byLabel, l, f)
		x.unrequireKey(l.key)
	} else {
		x.other[len(x.other)-1].listed = f.listed
		x.other = withoutAt(x.other, f.listed)
	}
}

// removeFrom takes a fact out of an entry. No empty entry is kept.
func removeFrom[K comparable](m map[K]*factEntry, key K, f *Fact) {
	e := m[key]
	e.facts[len(e.facts)-1].listed = f.listed
	if e.facts = withoutAt(e.facts, f.listed); e.empty() {
		delete(m, key)
	}
}

// withoutAt has the last fact of a list take the place of another.
func withoutAt(list []*Fact, at int) []*Fact {
	last := len(list) - 1
	list[at] = list[last]
	list[last] = nil
	return list[:last]
}

// addPod counts a pod on a node in every fact that it counts in (sign is 1), or
// takes it out again (-1).
func (x *factIndex) addPod(n *Node, p *Pod, sign int32) {
	for i := range p.Terms {
		t := &p.Terms[i]
		e := entryOf(x.byOwners, t.OwnerKey)
		for _, f := range e.facts {
			f.addOn(n, sign*t.amount())
		}
		if sign > 0 {
			e.podAdded(n.Index)
			continue
		}
		if e.podRemoved(n.Index) {
			e.recount(x.counter(p, func(p *Pod) int { return owns(p, t.OwnerKey) }))
		}
		if e.empty() {
			delete(x.byOwners, t.OwnerKey)
		}
	}
	if len(x.byKey) == 0 {
		return
	}
	for k, v := range p.Object.Labels { // in any order: the facts are different ones
		of := label{k, v}
		e := x.byLabel[of]
		if e == nil {
			if x.keys[k] == 0 {
				continue
			}
			e = entryOf(x.byLabel, of)
		}
		for _, f := range e.facts {
			f.addMatching(n, p, sign)
		}
		if sign > 0 {
			e.podAdded(n.Index)
			continue
		}
		if e.podRemoved(n.Index) {
			e.recount(x.counter(p, of.has))
		}
		if e.empty() {
			delete(x.byLabel, of)
		}
	}
	for _, f := range x.other {
		f.addMatching(n, p, sign)
	}
}

// addNode counts a node in every fact that counts nodes (sign is 1), or takes it
// out again (-1).
func (x *factIndex) addNode(n *Node, sign int32) {
	for _, f := range x.lowest {
		f.addNode(n, sign)
	}
}
