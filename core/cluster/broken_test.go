package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// This file checks the indices of nodes, pods and topologies; broken_facts_test.go those of facts and
// terms, broken_objects_test.go those of other objects and of what pods want of them.

// Broken checks the invariants that the heads of the files state, by working out
// from the nodes, pods and objects what every index has to be. It returns what
// doesn't hold.
func (s *State) Broken() []string {
	b := &broken{s: s}
	b.nodes()
	b.pods()
	b.topologies()
	b.facts()
	b.terms()
	b.objects()
	b.claims()
	b.nominations()
	b.headrooms()
	b.workloads()
	b.images()
	return b.list
}

type broken struct {
	s    *State
	list []string
}

// check notes that something is what it isn't to be.
func (b *broken) check(ok bool, format string, args ...any) {
	if !ok {
		b.list = append(b.list, fmt.Sprintf(format, args...))
	}
}

// same notes a difference between two values that print alike when they are
// equal.
func (b *broken) same(what string, got, want any) {
	b.check(fmt.Sprint(got) == fmt.Sprint(want), "%s is %v, want %v", what, got, want)
}

func (b *broken) nodes() {
	s := b.s
	byName, live := map[string]NodeIndex{}, 0
	providers, unready, byGroup := map[string]int{}, map[NodeIndex]bool{}, map[string]int{}
	created := make([]int64, len(s.index.created))
	for i := range created {
		created[i] = neverCreated
	}
	var free []NodeIndex
	for i, n := range s.nodes {
		if n == nil {
			free = append(free, NodeIndex(i))
			continue
		}
		live++
		byName[n.Name] = NodeIndex(i)
		if id := n.Object.Spec.ProviderID; id != "" {
			providers[id]++
		}
		if !n.Ready() {
			unready[NodeIndex(i)] = true
		}
		byGroup[n.Group]++
		created[i] = n.Object.CreationTimestamp.Unix()
		b.same("the index of "+n.Name, n.Index, i)
		b.check(reflect.DeepEqual(n.NodeBasics, n.NodeInfo.NodeBasics), "the basics of %s aren't those of its info", n.Name)
		requested, nonZero, ports := Resources{}, [2]int64{}, []HostPort{}
		for _, p := range n.Pods {
			requested.Add(&p.Request, 1)
			nonZero[0], nonZero[1] = nonZero[0]+p.NonZero[0], nonZero[1]+p.NonZero[1]
			ports = append(ports, p.Ports...)
		}
		b.same("what is requested on "+n.Name, n.Requested, requested)
		b.same("what is requested with defaults on "+n.Name, n.NonZero, nonZero)
		b.same("the ports taken on "+n.Name, sortedText(n.Ports), sortedText(ports))
	}
	b.same("the index of nodes by name", s.byName, byName)
	b.same("the index of provider IDs", s.index.providers, providers)
	b.same("the index of nodes that aren't ready", s.index.unready, unready)
	b.same("the sizes of groups", s.index.byGroup, byGroup)
	b.same("the CSI drivers of groups", s.drivers, b.drivers())
	b.same("when nodes were created", s.index.created, created)
	b.same("the number of nodes", s.live, live)
	b.same("the free indices", slices.Sorted(slices.Values(s.free)), free)
}

func (b *broken) drivers() groupDrivers {
	out := groupDrivers{}
	b.s.Nodes(func(n *Node) {
		csi := b.s.CSINode(n.Name)
		if csi == nil || n.Group == "" {
			return
		}
		for _, d := range csi.Spec.Drivers {
			key, limit := groupDriver{n.Group, d.Name}, int32(-1)
			if d.Allocatable != nil && d.Allocatable.Count != nil {
				limit = *d.Allocatable.Count
			}
			if out[key] == nil {
				out[key] = map[int32]int{}
			}
			out[key][limit]++
		}
	})
	return out
}

func (b *broken) pods() {
	s := b.s
	pods, priorities := map[types.UID]NodeIndex{}, map[int32]int{}
	note := func(p *Pod, at NodeIndex) {
		_, twice := pods[p.UID]
		b.check(!twice, "pod %s is there twice", p.UID)
		pods[p.UID] = at
	}
	for i, n := range s.nodes {
		if n != nil {
			for _, p := range n.Pods {
				note(p, NodeIndex(i))
				priorities[p.Priority]++
			}
		}
	}
	for name, list := range s.orphans {
		b.check(len(list) > 0, "an empty list of the orphans of %s", name)
		_, known := s.byName[name]
		b.check(!known, "%s is known and has orphans", name)
		for _, p := range list {
			note(p, NoNode)
		}
	}
	b.same("the index of pods", s.pods, pods)
	b.same("the priorities", s.priorities, priorities)
}

func (b *broken) topologies() {
	for _, t := range b.s.topo.list {
		if t.Key == PerNode {
			continue
		}
		members, shared := map[Domain][]NodeIndex{}, 0
		for i, n := range b.s.nodes {
			if n == nil {
				b.check(i >= len(t.domainOf) || t.domainOf[i] == NoDomain, "a free index has a domain of %q", t.Key)
				continue
			}
			want := NoDomain
			key, orEmpty := strings.CutSuffix(t.Key, orEmpty)
			if value, ok := n.Object.Labels[key]; ok || orEmpty {
				want = t.ids[value]
				members[want] = append(members[want], NodeIndex(i))
			}
			b.same("the domain of "+n.Name+" of "+t.Key, t.domainOf[i], want)
		}
		b.same("the number of values of "+t.Key, len(t.ids), len(members))
		b.same("the number of domains of "+t.Key, len(t.ids)+len(t.free), len(t.members))
		for _, d := range t.free {
			b.check(len(members[d]) == 0, "domain %d of %s is free and has nodes", d, t.Key)
		}
		for d, list := range t.members {
			b.same(fmt.Sprintf("the members of domain %d of %s", d, t.Key), slices.Sorted(slices.Values(list)), members[Domain(d)])
			only := NoNode
			if len(list) == 1 {
				only = list[0]
			}
			b.same(fmt.Sprintf("the only member of domain %d of %s", d, t.Key), t.only[d], only)
			if len(list) > 1 {
				shared++
			}
		}
		b.same("the number of domains of "+t.Key+" with several nodes", t.shared, shared)
	}
}

func sortedText[T any](list []T) []string {
	var out []string
	for _, x := range list {
		out = append(out, fmt.Sprint(x))
	}
	slices.Sort(out)
	return out
}
