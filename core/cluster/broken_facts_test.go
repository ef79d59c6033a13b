package cluster

import (
	"fmt"
	"maps"
	"slices"
)

func (b *broken) facts() {
	x := &b.s.facts
	listed := map[*Fact]int{}
	for _, f := range x.other {
		listed[f]++
	}
	for key, e := range x.byOwners {
		b.check(!e.empty(), "nobody has the term %s, which is known", key)
		for _, f := range e.facts {
			listed[f]++
		}
	}
	for of, e := range x.byLabel {
		b.check(!e.empty(), "nobody has the label %v, which is known", of)
		for _, f := range e.facts {
			listed[f]++
		}
	}
	b.entries()
	filters := map[string]int{}
	for _, f := range x.byKey {
		if f.filter != nil && f.spec.FilterKey != "" {
			filters[f.spec.FilterKey]++
			b.check(x.filters[f.spec.FilterKey] == f.filter, "fact %s doesn't share its filter", f.spec.Key)
		}
	}
	b.same("the number of filters", len(x.filters), len(filters))
	for key, f := range x.filters {
		b.same("the number of facts of filter "+key, f.facts, filters[key])
	}
	for key, f := range x.byKey {
		b.same("the key of fact "+key, f.spec.Key, key)
		b.same("the number of lists with fact "+key, listed[f], 1)
		b.same("whether fact "+key+" is told of nodes", slices.Contains(x.lowest, f), f.spec.Lowest)
		delete(listed, f)
		b.check(f.users > 0, "fact %s is kept for nobody", key)
		afresh := b.s.CountAfresh(f.spec)
		b.same("fact "+key, f.text(), afresh.text())
		b.same("the number of cells of "+key, len(f.cells), len(afresh.cells))
		b.same("the number of positions of cells of "+key, len(f.at), len(f.cells))
		for i, c := range f.cells {
			d := c.domain
			at, ok := f.at[d]
			b.check(ok && int(at) == i, "the cell of domain %d of %s is %d and isn't known as that", d, key, i)
			b.same("whether a cell of "+key+" has a count", c.count != 0, i < f.nonzero)
			b.same("what is told of a domain of "+key, f.Count(d), c.count)
			b.check(c.count != 0 || c.nodes != 0, "an empty cell of %s", key)
		}
		for d, count := range f.dense {
			_, known := f.at[Domain(d)]
			b.check(count == 0 || known, "%s counts %d in domain %d, of which it knows nothing", key, count, d)
		}
		b.same("the counts of the domains of "+key, f.low.at, afresh.low.at)
	}
	b.check(len(listed) == 0, "facts are listed that aren't kept")
	for _, f := range x.lowest {
		b.check(x.byKey[f.spec.Key] == f, "fact %s is told of nodes and isn't kept", f.spec.Key)
	}
}

// entries counts the pods with each label of a key that facts require, and with each owned term.
func (b *broken) entries() {
	x := &b.s.facts
	keys, labels, owners := map[string]int{}, map[label]map[NodeIndex]int{}, map[string]map[NodeIndex]int{}
	for _, f := range x.byKey {
		if l, ok := f.spec.requiredLabel(); ok {
			keys[l.key]++
		}
	}
	b.same("how many facts require a label of a key", x.keys, keys)
	b.s.Nodes(func(n *Node) {
		for _, p := range n.Pods {
			for k, v := range p.Object.Labels {
				if keys[k] > 0 {
					countOn(labels, label{k, v}, n.Index)
				}
			}
			for _, t := range p.Terms {
				countOn(owners, t.OwnerKey, n.Index)
			}
		}
	})
	checkEntries(b, x.byLabel, labels)
	checkEntries(b, x.byOwners, owners)
}

func countOn[K comparable](on map[K]map[NodeIndex]int, of K, n NodeIndex) {
	if on[of] == nil {
		on[of] = map[NodeIndex]int{}
	}
	on[of][n]++
}

// checkEntries compares entries with how many pods are on which nodes.
func checkEntries[K comparable](b *broken, entries map[K]*factEntry, on map[K]map[NodeIndex]int) {
	for of, e := range entries {
		pods, unknown := 0, maps.Clone(on[of])
		for _, count := range unknown {
			pods += count
		}
		b.same(fmt.Sprint("the number of pods with ", of), e.pods, pods)
		b.check(len(e.nodes) <= 2*e.pods+staleNodes, "%d nodes are kept for %d pods with %v", len(e.nodes), e.pods, of)
		for _, n := range e.nodes {
			if _, ok := unknown[n]; ok { // it may be of a pod that is gone
				unknown[n]--
			}
		}
		for n, left := range unknown {
			b.check(left <= 0, "node %d has %d pods with %v more than is known", n, left, of)
		}
		delete(on, of)
	}
	b.same("what isn't known", on, map[K]map[NodeIndex]int{})
}

func (b *broken) terms() {
	x := &b.s.terms
	listed := map[*Term]int{}
	for _, t := range x.other {
		listed[t]++
	}
	for _, list := range x.byLabel {
		for _, t := range list {
			listed[t]++
		}
	}
	last := -1
	for _, t := range x.list {
		b.check(last < t.Position && t.Position < x.met, "a term at %d comes after one at %d, of %d", t.Position, last, x.met)
		last = t.Position
		b.same("the number of lists with a term", listed[t], 1)
		b.check(x.byKey[t.OwnerKey] == t, "a term isn't known by its key")
	}
	b.same("the number of terms", len(x.byKey), len(x.list))
	b.check(slices.IsSorted(x.keys), "label keys aren't sorted: %v", x.keys)
	for _, n := range b.s.nodes {
		if n == nil {
			continue
		}
		for _, p := range append(slices.Clone(n.Pods), n.Nominated...) {
			for i := range p.Terms {
				b.check(x.byKey[p.Terms[i].OwnerKey] != nil, "a term of %s isn't known", p.UID)
				reqs, _ := p.Terms[i].Selector.Requirements()
				for _, r := range reqs {
					b.check(slices.Contains(x.keys, r.Key()), "label key %s isn't known", r.Key())
				}
			}
		}
	}
}
