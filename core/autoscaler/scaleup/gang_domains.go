package scaleup

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// This file says in which domains of the required topologies a gang could be, with nodes that are there,
// coming or bought. A domain is one value of each label: rack 1 of block a isn't rack 1 of block b. In which
// domain a new node will be has to be predicted, label by label:
//
//	the nodes of the group        the template        the group            predicted is
//	have one value                -                   -                    that value
//	have several                  -                   -                    nothing
//	none has the label            has the label       -                    the template's value
//	none has the label            hasn't              is atomic            a domain of the group's own
//	none has the label            hasn't              isn't atomic         nothing
//
// When the newest node that was usable, which may be gone, lacked the label, nothing is predicted
// either: whatever the template promises, new nodes didn't have it. An atomic group (ZeroOrMaxNodeScaling) is what a provider has for nodes that belong together, as
// those of a rack. Of a group for which nothing is predicted no node is bought for such a gang.

// gangDomain is a domain in which a gang could be.
type gangDomain struct {
	value  string   // as cluster.DomainOf names it; "" when no topology is required
	values []string // of the labels, outermost first
	// holds bounds how many members its nodes take; could, with the nodes that may be bought; room how
	// many pods like the members its nodes take.
	holds, could, room int
	// nodes are those that are there or coming, and fill how full they are with all members, by the profile's
	// PlacementScorer; only of domains whose nodes may hold enough members.
	nodes []cluster.NodeIndex
	fill  int64
	// inVain is set when its nodes were tried without a purchase, and gave places to fits of the members only.
	inVain bool
	fits   int
}

// predictedDomain is the value of one label on new nodes of a group.
type predictedDomain struct{ label, value string }

// domainLabels returns the labels that the gangs of a request require topologies of, sorted.
func (b *builder) domainLabels() (out []string) {
	for i := range b.req.Gangs {
		out = append(out, b.req.Gangs[i].Topologies...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// predictDomains predicts the values of labels on new nodes, by group. It costs O(nodes × labels).
func (b *builder) predictDomains(labels []string) map[string][]predictedDomain {
	if len(labels) == 0 {
		return nil
	}
	type at struct{ group, label string }
	seen, differ := map[at]string{}, map[at]bool{}
	b.State.Nodes(func(n *cluster.Node) {
		if n.Group == "" {
			return
		}
		for _, label := range labels {
			value, has := n.Object.Labels[label]
			if !has {
				continue
			}
			x := at{n.Group, label}
			before, known := seen[x]
			seen[x], differ[x] = value, differ[x] || known && before != value
		}
	})
	out := map[string][]predictedDomain{}
	for _, g := range b.State.Groups() {
		for _, label := range labels {
			x := at{g.ID, label}
			value, has := seen[x]
			if !has {
				value, has = g.Template.Object.Labels[label]
			}
			switch {
			case differ[x], seen[x] == "" && lacks(b.req.Conditions[g.ID].Newest, label):
				value = ""
			case !has && atomicGroup(g):
				value = ownDomain(g)
			}
			out[g.ID] = append(out[g.ID], predictedDomain{label, value})
		}
	}
	return out
}

// lacks reports whether there is a node, and it hasn't the label.
func lacks(n *cluster.NodeInfo, label string) bool {
	if n == nil {
		return false
	}
	_, has := n.Object.Labels[label]
	return !has
}

// ownDomain is the value of a label that the nodes of an atomic group will share. No label has such a
// value: it has a slash.
func ownDomain(g *cluster.NodeGroup) string { return g.ID + "/own" }

func atomicGroup(g *cluster.NodeGroup) bool { return g.Options != nil && g.Options.ZeroOrMax }

// inPredictedDomains returns a node with the labels that are predicted. One that is registered may have them
// already, and keeps its own.
func inPredictedDomains(info *cluster.NodeInfo, domains []predictedDomain, registered bool) *cluster.NodeInfo {
	out := info
	for _, d := range domains {
		if value, has := out.Object.Labels[d.label]; has && (registered || value == d.value) || d.value == "" {
			continue
		}
		object := *out.Object
		object.Labels = maps.Clone(object.Labels)
		if object.Labels == nil {
			object.Labels = map[string]string{}
		}
		object.Labels[d.label] = d.value
		out = out.With(&object)
	}
	return out
}

// domainOf returns the domain of some labels that is predicted for new nodes of a group, with known false when a
// label has no predicted value.
func (m *model) domainOf(labels []string) (domain string, known bool) {
	return cluster.DomainOf(m.predicted(), labels)
}

// predicted returns the values that are predicted for new nodes of a group, by label.
func (m *model) predicted() map[string]string {
	out := map[string]string{}
	for _, d := range m.key.domains {
		if d.value != "" {
			out[d.label] = d.value
		}
	}
	return out
}

// domainOfMembers returns in which domain the members of a gang are, "" when they aren't in one.
func (b *builder) domainOfMembers(g *gang) string {
	at := map[string]string{}
	for _, label := range g.Topologies {
		if values := b.State.MemberDomains(g.Key, label); len(values) == 1 {
			at[label] = values[0]
		}
	}
	domain, _ := cluster.DomainOf(at, g.Topologies)
	return domain
}

// anchor keeps members in a domain, as long as it stands: a member without requests is on a node in
// it that takes nobody else. It returns what takes it away.
func (b *builder) anchor(g *gang, d *gangDomain) (weigh func()) {
	if len(g.Topologies) == 0 || slices.ContainsFunc(g.Topologies, func(label string) bool { return len(b.State.MemberDomains(g.Key, label)) > 0 }) {
		return func() {}
	}
	labels := map[string]string{}
	for i, value := range d.values {
		labels[g.Topologies[i]] = value
	}
	const name, uid = "pod-group/anchor", types.UID("pod-group/anchor")
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.Key.Namespace, Name: "anchor", UID: uid}}
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &g.Key.Name}
	at := b.State.SetNode(b.State.Schema.ParseNode(node, ""))
	b.State.PlaceAt(b.State.Schema.ParsePod(pod), at)
	return func() {
		b.State.Remove(uid)
		b.State.RemoveNode(name)
	}
}

// gangDomains returns the domains that could hold enough members, those first that nodes of theirs hold,
// of these the one whose placement score may be the best, as for the scheduler, and then the one with the least
// room. Where none is required there is one of no value. How many of them are tried is the caller's to bound.
func (b *builder) gangDomains(g *gang, pods []*cluster.Pod, need int) []*gangDomain {
	if len(g.Topologies) == 0 {
		return []*gangDomain{{could: len(pods), holds: len(pods)}}
	}
	all := b.boundDomains(g, pods)
	var out []*gangDomain
	for _, d := range all {
		if d.could >= need {
			out = append(out, d)
		} else {
			g.tried(d.value, d.could, "no room for enough members")
		}
	}
	most, members := 1, b.placement(pods)
	for _, d := range out {
		if d.holds >= need {
			d.fill, most = b.fill(members, d), max(most, d.holds)
		}
	}
	slices.SortFunc(out, func(x, y *gangDomain) int {
		return cmp.Or(cmp.Compare(min(y.holds, need), min(x.holds, need)), cmp.Compare(y.bound(most), x.bound(most)), cmp.Compare(x.room, y.room), cmp.Compare(x.value, y.value))
	})
	return out
}

// unboundedPods is more pods than any node takes, and small enough to be added up.
const unboundedPods = 1 << 20

// boundDomains returns all domains that a gang may be in, by value, with what they hold at most, by the
// local rules.
func (b *builder) boundDomains(g *gang, pods []*cluster.Pod) (out []*gangDomain) {
	runs := byClass(b.memberRuns(pods))
	byValue := map[string]*gangDomain{}
	domain := func(value string, valueOf func(i int) string) *gangDomain {
		if byValue[value] == nil {
			byValue[value] = &gangDomain{value: value}
			for i := range g.Topologies {
				byValue[value].values = append(byValue[value].values, valueOf(i))
			}
			out = append(out, byValue[value])
		}
		return byValue[value]
	}
	values, nodes := b.State.DomainsOf(g.Topologies)
	for _, r := range runs {
		e, n := b.Engine(r.pods[0]), len(r.pods)
		can := map[*gangDomain]int{}
		for i, value := range values {
			if len(nodes[i]) == 0 {
				continue // its nodes are gone
			}
			// A node that is coming may be in its group's own domain, whose value has a slash: labels say where one ends.
			labels := b.State.Node(nodes[i][0]).Object.Labels
			d, holds := domain(value, func(k int) string { return labels[g.Topologies[k]] }), b.holds(e, r.class, nodes[i])
			d.nodes = nodes[i]
			can[d] += holds
			d.holds, d.room = d.holds+min(holds, n), d.room+holds
		}
		for _, group := range b.State.Groups() {
			m := b.models[group.ID]
			value, known := m.domainOf(g.Topologies)
			room, _ := b.headroom(group)
			if !known || room <= 0 {
				continue
			}
			b.gangs.work++
			can[domain(value, func(k int) string { return m.predicted()[g.Topologies[k]] })] += min(room, unboundedPods) * e.HoldsAtMost(r.class, b.blank(m), n)
		}
		for d, more := range can { // in any order: each counts for its own domain
			d.could += min(more, n)
		}
	}
	for i, value := range g.In {
		out = slices.DeleteFunc(out, func(d *gangDomain) bool { return value != "" && d.values[i] != value })
	}
	for i, label := range g.Topologies {
		if now := b.State.MemberDomains(g.Key, label); len(now) > 0 {
			out = slices.DeleteFunc(out, func(d *gangDomain) bool { return len(now) > 1 || d.values[i] != now[0] })
		}
	}
	slices.SortFunc(out, func(x, y *gangDomain) int { return cmp.Compare(x.value, y.value) })
	return out
}

// growing returns the groups of which nodes may be bought for a gang, by the domain that is predicted for them.
func (b *builder) growing(g *gang) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	if !b.mayBuyFor(g) {
		return out
	}
	for id, m := range b.models { // in any order: each is in its own domain
		domain, known := m.domainOf(g.Topologies)
		if !known {
			continue
		}
		if out[domain] == nil {
			out[domain] = map[string]bool{}
		}
		out[domain][id] = true
	}
	return out
}

// holds bounds how many pods of a class nodes take.
func (b *builder) holds(e *engine.Engine, c *engine.Class, nodes []cluster.NodeIndex) (n int) {
	b.gangs.work += len(nodes)
	for _, i := range nodes {
		n += e.HoldsAtMost(c, b.State.Node(i), unboundedPods)
	}
	return n
}
