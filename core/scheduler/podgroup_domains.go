package scheduler

// This file chooses the topology domain of a group that requires one and has no member on a node
// (KEP-5732). kube-scheduler tries all domains from scratch. Here, what each could hold is bounded
// first, by the local rules alone, and only those that could hold enough are tried: those first that
// could hold all members, the one with the least room for others before the rest.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// maxDomains is how many domains a decision tries.
const maxDomains = 64

// boundedClasses is how many classes of members bound what a domain holds; members of others count as
// if it held them.
const boundedClasses = 8

// unbounded is more pods than any node takes, and small enough to be added up.
const unbounded = 1 << 20

// domain is a domain of the required topology, or of several.
type domain struct {
	value string // of the label; of several labels a/b/c
	nodes []cluster.NodeIndex
	// holds bounds how many of the members its nodes take, and room how many pods like them. nominated is
	// how many members are nominated to its nodes.
	holds, room, nominated int
}

// findDomain takes enough places in one domain, and reports whether there are.
func (t *transaction) findDomain() bool {
	all := t.domains()
	list := slices.DeleteFunc(slices.Clone(all), func(d domain) bool { return d.holds < t.need })
	slices.SortFunc(list, func(a, b domain) int { return compareDomains(&a, &b, len(t.request.Members)) })
	list = list[:min(len(list), maxDomains)]
	if t.findIn(list, t.tryInOrder) || t.findIn(list, t.searchFurther) {
		return true
	}
	if t.status == "" { // no domain could hold enough
		most := t.request.Placed
		for i := range all {
			most = max(most, all[i].holds)
		}
		t.status = fmt.Sprintf("minCount (%d) cannot be satisfied: no placement has room for more than %d", t.request.MinCount, most)
	}
	t.status = fmt.Sprintf("0/%d placements are available, first placement status: %s", len(all), t.status)
	return false
}

// findIn searches one domain after the other.
func (t *transaction) findIn(list []domain, search func() bool) bool {
	for i := range list {
		if t.exhausted() {
			break
		}
		t.nodes, t.inDomain, t.domain = list[i].nodes, map[*engine.Class]*engine.Class{}, list[i].value
		if search() {
			return true
		}
	}
	return false
}

// compareDomains puts the domain first whose nodes members are nominated to: they were bought for the
// group, or others have left them. Then come those that may hold all members, of these the ones with the
// least room, and then those that may hold the most.
func compareDomains(a, b *domain, members int) int {
	return cmp.Or(cmp.Compare(b.nominated, a.nominated), cmp.Compare(min(b.holds, members), min(a.holds, members)), cmp.Compare(a.room, b.room), cmp.Compare(a.value, b.value))
}

// domainsOf returns the values of the labels that count and the nodes that have them, by value.
func (t *transaction) domainsOf() (values []string, nodes [][]cluster.NodeIndex) {
	if len(t.labels) == 1 {
		return t.state.Topology(t.labels[0]).Domains()
	}
	in := map[string][]cluster.NodeIndex{}
	t.state.Nodes(func(n *cluster.Node) {
		if value, has := t.domainOf(n); has {
			in[value] = append(in[value], n.Index)
		}
	})
	values = slices.Sorted(maps.Keys(in))
	for _, value := range values {
		nodes = append(nodes, in[value])
	}
	return values, nodes
}

// domainOf returns in which domain a node is; has is false when it lacks a label.
func (t *transaction) domainOf(n *cluster.Node) (value string, has bool) {
	for i, label := range t.labels {
		v, has := n.Object.Labels[label]
		if !has {
			return "", false
		}
		if i > 0 {
			value += "/" // which is in no value
		}
		value += v
	}
	return value, true
}

// domains returns the domains of the labels that count by their values. It costs O(nodes × classes).
func (t *transaction) domains() (out []domain) {
	values, nodes := t.domainsOf()
	classes, counts := t.classes()
	nominated := t.nominatedIn()
	for i, value := range values {
		d := domain{value: value, nodes: nodes[i], nominated: nominated[value]}
		for k, c := range classes {
			if k >= boundedClasses {
				d.holds, d.room = d.holds+counts[k], d.room+counts[k]
				continue
			}
			room := 0
			for _, n := range nodes[i] {
				room += t.engine.HoldsAtMost(c, t.state.Node(n), unbounded)
			}
			t.work += len(nodes[i])
			d.holds, d.room = d.holds+min(room, counts[k]), d.room+room
		}
		out = append(out, d)
	}
	return out
}

// nominatedIn returns how many members are nominated to nodes of each domain, by its value; nil when
// none is.
func (t *transaction) nominatedIn() map[string]int {
	if t.nominated == nil {
		return nil
	}
	out := map[string]int{}
	for _, name := range t.nominated {
		if n := t.state.NodeByName(name); n != nil {
			if value, has := t.domainOf(n); has {
				out[value]++
			}
		}
	}
	return out
}

// classes returns the classes of the members in the order of scheduling, and how many are of each.
func (t *transaction) classes() (classes []*engine.Class, counts []int) {
	at := map[*engine.Class]int{}
	for i := range t.request.Members {
		c := t.request.Members[i].Class
		k, known := at[c]
		if !known {
			k = len(classes)
			at[c] = k
			classes, counts = append(classes, c), append(counts, 0)
		}
		counts[k]++
	}
	return classes, counts
}
