package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster/migration"
)

// EvaluatedFrom and EvaluatedTo are where in a Node lies what is read of every node that is
// evaluated.
const (
	EvaluatedFrom = unsafe.Offsetof(Node{}.Pods) + unsafe.Sizeof(uintptr(0)) // the length of Pods
	EvaluatedTo   = unsafe.Offsetof(Node{}.NodeBasics) + unsafe.Offsetof(NodeBasics{}.hasZone)
)

// PodRequests is podRequests.
func PodRequests(p *v1.Pod, running bool) v1.ResourceList { return podRequests(p, running) }

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
	providers, unready := map[string]int{}, map[NodeIndex]bool{}
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
	b.same("the number of nodes", s.live, live)
	b.same("the free indices", slices.Sorted(slices.Values(s.free)), free)
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
				b.check(i >= len(t.of) || t.of[i] == NoDomain, "a free index has a domain of %q", t.Key)
				continue
			}
			want := NoDomain
			key, orEmpty := strings.CutSuffix(t.Key, orEmpty)
			if value, ok := n.Object.Labels[key]; ok || orEmpty {
				want = t.ids[value]
				members[want] = append(members[want], NodeIndex(i))
			}
			b.same("the domain of "+n.Name+" of "+t.Key, t.of[i], want)
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

// objects works every index out from the objects themselves.
func (b *broken) objects() {
	s := b.s
	claimsByVolume, volumesByClaim, freeVolumes := map[string][]string{}, map[ClaimKey][]string{}, map[freeVolume][]string{}
	handles, disks := map[string]int{}, 0
	byNode, byVolume := map[string][]string{}, map[string][]string{}
	budgets, capacities := map[string][]string{}, map[string][]string{}
	for key, o := range s.objects.byKey {
		b.same("the key of an object", keyOf(o), key)
		name := o.GetNamespace() + "/" + o.GetName()
		switch o := o.(type) {
		case *v1.PersistentVolumeClaim:
			if o.Spec.VolumeName != "" {
				claimsByVolume[o.Spec.VolumeName] = append(claimsByVolume[o.Spec.VolumeName], name)
			}
		case *v1.PersistentVolume:
			if ref := o.Spec.ClaimRef; ref != nil {
				k := ClaimKey{ref.Namespace, ref.Name}
				volumesByClaim[k] = append(volumesByClaim[k], name)
			} else {
				k := freeVolume{VolumeClass(o), pinnedHost(o)}
				freeVolumes[k] = append(freeVolumes[k], name)
			}
			if source := migration.Source(o); source != nil && source.Driver != "" && source.VolumeHandle != "" {
				handles[source.Driver+"/"+source.VolumeHandle]++
				disks++
				b.same("the disk of "+name, s.objects.disks[o], newDisk(source.Driver, source.VolumeHandle))
			}
		case *storagev1.VolumeAttachment:
			byNode[o.Spec.NodeName] = append(byNode[o.Spec.NodeName], name)
			if v := o.Spec.Source.PersistentVolumeName; v != nil {
				byVolume[*v] = append(byVolume[*v], name)
			}
		case *policyv1.PodDisruptionBudget:
			budgets[o.Namespace] = append(budgets[o.Namespace], name)
		case *storagev1.CSIStorageCapacity:
			capacities[o.StorageClassName] = append(capacities[o.StorageClassName], name)
		}
	}
	x := &s.objects
	b.same("claims by volume", names(x.claimsByVolume), sortedByName(claimsByVolume))
	b.same("volumes by claim", names(x.volumesByClaim), sortedByName(volumesByClaim))
	b.same("free volumes", names(x.freeVolumes), sortedByName(freeVolumes))
	b.same("handles", x.handles, handles)
	b.same("the number of disks of volumes", len(x.disks), disks)
	b.same("attachments by node", names(x.attachmentsByNode), sortedByName(byNode))
	b.same("attachments by volume", names(x.attachmentsByVolume), sortedByName(byVolume))
	b.same("budgets", names(x.budgets), sortedByName(budgets))
	b.same("capacities", names(x.capacities), sortedByName(capacities))
}

// claims works out who uses which claim.
func (b *broken) claims() {
	nodes, pods, inline := map[ClaimKey][]NodeIndex{}, map[ClaimKey]int{}, map[string]int{}
	for i, n := range b.s.nodes {
		if n == nil {
			continue
		}
		for _, p := range n.Pods {
			for _, d := range p.Disks {
				inline[d.Name]++
			}
			for _, c := range p.Claims {
				k := ClaimKey{p.Object.Namespace, c.Name}
				nodes[k] = append(nodes[k], NodeIndex(i))
				if !c.Ephemeral {
					pods[k]++
				}
			}
		}
	}
	b.same("the number of claims in use", len(b.s.objects.claimNodes), len(nodes))
	for k, list := range b.s.objects.claimNodes {
		b.same(fmt.Sprint("the nodes of ", k), slices.Sorted(slices.Values(list)), nodes[k])
	}
	b.same("the pods that name claims", b.s.objects.claimPods, pods)
	b.same("the disks of pods on nodes", b.s.objects.inline, inline)
}

func (b *broken) nominations() {
	s := b.s
	byPod, claims, users, inline := map[types.UID]bool{}, map[ClaimKey]int{}, map[ClaimKey]int{}, map[string]int{}
	byNode := map[NodeIndex][]string{}
	for _, n := range s.Nominations() {
		b.check(!byPod[n.Pod.UID], "%s is nominated twice", n.Pod.UID)
		byPod[n.Pod.UID] = true
		b.check(s.nominated.byPod[n.Pod.UID] == n, "the nomination of %s isn't known by its pod", n.Pod.UID)
		_, placed := s.pods[n.Pod.UID]
		b.check(!placed, "%s is nominated and placed", n.Pod.UID)
		at := NoNode
		if i, ok := s.byName[n.Name]; ok {
			at = i
			byNode[i] = append(byNode[i], string(n.Pod.UID))
		}
		b.same(fmt.Sprint("the node of the nomination of ", n.Pod.UID), n.Node, at)
		for _, d := range n.Pod.Disks {
			inline[d.Name]++
		}
		for _, c := range n.Pod.Claims {
			k := ClaimKey{n.Pod.Object.Namespace, c.Name}
			users[k]++
			if !c.Ephemeral {
				claims[k]++
			}
		}
	}
	b.same("the number of nominated pods", len(s.nominated.byPod), len(byPod))
	b.same("the claims of nominated pods", s.nominated.users, users)
	b.same("the disks of nominated pods", s.nominated.inline, inline)
	b.same("the claims that nominated pods name", s.nominated.claims, claims)
	for i, n := range s.nodes {
		if n != nil {
			var uids []string
			for _, p := range n.Nominated {
				uids = append(uids, string(p.UID))
			}
			b.same("the pods nominated to "+n.Name, uids, slices.Sorted(slices.Values(byNode[NodeIndex(i)])))
		}
	}
}

// headrooms works out which headrooms a namespace has.
func (b *broken) headrooms() {
	x := &b.s.headrooms
	byNamespace := map[string][]string{}
	for id, h := range x.byID {
		b.same("the ID of a headroom", h.ID, id)
		byNamespace[h.Namespace] = append(byNamespace[h.Namespace], string(id))
	}
	b.same("the number of namespaces with headrooms", len(x.byNamespace), len(byNamespace))
	for namespace, list := range x.byNamespace {
		var got []string
		for _, h := range list {
			got = append(got, string(h.ID))
			b.check(x.byID[h.ID] == h, "headroom %s of %s is an old one", h.ID, namespace)
		}
		b.same("the headrooms of "+namespace, got, slices.Sorted(slices.Values(byNamespace[namespace])))
	}
}

func (b *broken) workloads() {
	services := map[serviceKey][]string{}
	for key, w := range b.s.work.byKey {
		b.same("the key of a workload", w.key(), key)
		if k, ok := firstLabel(w); ok && w.Kind == Service {
			services[k] = append(services[k], w.Name)
		}
	}
	b.same("the number of labels by which Services select first", len(b.s.work.services), len(services))
	for k, list := range b.s.work.services {
		var got []string
		for _, w := range list {
			got = append(got, w.Name)
			b.check(b.s.work.byKey[w.key()] == w, "Service %s/%s is an old one", w.Namespace, w.Name)
		}
		b.same(fmt.Sprint("the Services by ", k), slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(services[k])))
	}
}

func (b *broken) images() {
	nodes := map[string]int{}
	for _, n := range b.s.nodes {
		if n != nil {
			for _, i := range n.Images {
				nodes[i.Name]++
			}
		}
	}
	b.same("the nodes with images", b.s.images.nodes, nodes)
}

func sortedText[T any](list []T) []string {
	var out []string
	for _, x := range list {
		out = append(out, fmt.Sprint(x))
	}
	slices.Sort(out)
	return out
}

// names returns the names in lists as they stand.
func names[K comparable, O Object](lists map[K][]O) map[K][]string {
	out := map[K][]string{}
	for k, list := range lists {
		out[k] = []string{}
		for _, o := range list {
			out[k] = append(out[k], o.GetNamespace()+"/"+o.GetName())
		}
	}
	return out
}

// sortedByName sorts lists of namespace/name by name, then by namespace.
func sortedByName[K comparable](lists map[K][]string) map[K][]string {
	for k := range maps.Keys(lists) {
		slices.SortFunc(lists[k], func(x, y string) int {
			a, b, _ := strings.Cut(x, "/")
			c, d, _ := strings.Cut(y, "/")
			return cmp.Or(strings.Compare(b, d), strings.Compare(a, c))
		})
	}
	return lists
}
