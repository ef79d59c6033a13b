package cluster

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Dump writes the state slot by slot, for people and for tests that compare
// two states. Two states with equal dumps answer everything equally.
func (s *State) Dump(w io.Writer) {
	fmt.Fprintf(w, "free %v\n", s.free)
	for i, n := range s.nodes {
		if n == nil {
			continue
		}
		fmt.Fprintf(w, "node %d %s labels=%v taints=%v cordoned=%v allocatable=%v/%d requested=%v nonzero=%v workload=%d terminating=%d\n", i, n.Name,
			n.Object.Labels, n.Object.Spec.Taints, n.Object.Spec.Unschedulable, n.Allocatable, n.AllowedPods, n.Requested, n.NonZero, n.Workload, n.Terminating)
		for k, p := range n.Pods {
			fmt.Fprintf(w, "  %d %s %s\n", k, p.Name(), p.UID)
		}
		ports := slices.Clone(n.Ports)
		slices.SortFunc(ports, func(a, b HostPort) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		fmt.Fprintf(w, "  ports %v\n", ports)
		for _, p := range n.Nominated {
			fmt.Fprintf(w, "  awaits %s\n", p.Name())
		}
		if s.objects.devices.Content(int32(i)) != 0 {
			fmt.Fprintf(w, "  devices %x\n", s.objects.devices.Digest(int32(i)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.orphans)) {
		for _, p := range s.orphans[name] {
			fmt.Fprintf(w, "orphan of %s: %s\n", name, p.Name())
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(s.ready)) {
		fmt.Fprintf(w, "ready %s\n", uid)
	}
	s.dumpNominations(w)
	for _, h := range s.Headrooms() {
		fmt.Fprintf(w, "headroom %s for pods of %s by %v %v %v\n", h.ID, h.Namespace, h.Controller, h.Labels, h.Annotations)
		if h.Group != nil {
			fmt.Fprintf(w, "headroom %s is room for %+v\n", h.ID, *h.Group)
		}
	}
	for _, x := range s.Workloads() {
		fmt.Fprintf(w, "%s %s/%s %v %v %v\n", x.Kind, x.Namespace, x.Name, x.Set, x.Selector, x.Replicas)
	}
	for _, g := range s.Groups() {
		fmt.Fprintf(w, "group %s %d..%d target %d\n", g.ID, g.Min, g.Max, g.Target)
	}
	for _, o := range s.Objects() {
		fmt.Fprintf(w, "object %d %s/%s %p\n", KindOf(o), o.GetNamespace(), o.GetName(), o)
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.members), PodGroupKey.Compare) {
		fmt.Fprintf(w, "members of %s on %v\n", k, s.members[k].nodes)
	}
	for _, name := range slices.Sorted(maps.Keys(s.images.nodes)) {
		fmt.Fprintf(w, "image %s on %d\n", name, s.images.nodes[name])
	}
	for _, f := range s.Facts() {
		fmt.Fprintf(w, "fact %q %s\n", f.Key(), f.text())
	}
}

// dumpNominations writes who is nominated, with the claims that only they bring.
func (s *State) dumpNominations(w io.Writer) {
	for _, n := range s.Nominations() {
		fmt.Fprintf(w, "nominated %s to %s (%d) with a place: %t\n", n.Pod.Name(), n.Name, n.Node, n.Place)
		for _, c := range n.Pod.Devices {
			fmt.Fprintf(w, "nominated %s claims %s: %+v\n", n.Pod.Name(), c.Name, c.Spec)
		}
	}
	s.dumpOrder(w)
}

// dumpOrder writes the nominated pods of each node that has several, in the order of their nominations; also of
// those that may come.
func (s *State) dumpOrder(w io.Writer) {
	var names []string
	pods := map[string][]*Pod{}
	for _, n := range s.Nominations() {
		if pods[n.Name] == nil {
			names = append(names, n.Name)
		}
		pods[n.Name] = append(pods[n.Name], n.Pod)
	}
	for _, name := range names {
		if len(pods[name]) < 2 {
			continue
		}
		s.SortNominated(pods[name])
		fmt.Fprintf(w, "node %s in turn:", name)
		for _, p := range pods[name] {
			fmt.Fprintf(w, " %s", p.UID)
		}
		fmt.Fprintln(w)
	}
}

// text lists the counts by domain.
func (f *Fact) text() string {
	cells := slices.Clone(f.cells[:f.nonzero])
	slices.SortFunc(cells, func(a, b factCell) int { return int(a.domain - b.domain) })
	var b strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&b, " %d:%d", c.domain, c.count)
	}
	if f.spec.Lowest {
		count, domains := f.Lowest()
		fmt.Fprintf(&b, " lowest %d of %d", count, domains)
	}
	return b.String()
}

// Equal reports whether two facts hold the same counts.
func (f *Fact) Equal(o *Fact) bool { return f.text() == o.text() }
