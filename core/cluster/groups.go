package cluster

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// NodeGroup is what the provider says of a node group.
type NodeGroup struct {
	ID       string
	Min, Max int
	Target   int       // nodes asked for, launched or not
	Template *NodeInfo // what a new node looks like
	Price    float64   // per node and hour
	// LongUnregistered are machines of Target that have had their time to become
	// nodes and can't be removed: they are not to be waited for.
	LongUnregistered int
	// BackedOff says that launches failed lately and none should be tried.
	BackedOff bool
}

// SetGroup records what is known of a group; nil forgets it.
func (s *State) SetGroup(id string, g *NodeGroup) {
	s.record(Change{Op: GroupSet, Node: NoNode, Group: g, OldGroup: s.groups[id], name: id})
}

// Group returns a node group, or nil.
func (s *State) Group(id string) *NodeGroup { return s.groups[id] }

// Groups returns all groups by ID.
func (s *State) Groups() []*NodeGroup {
	out := make([]*NodeGroup, 0, len(s.groups))
	for _, g := range s.groups {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *NodeGroup) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// WorkloadKind is a kind of object that selects or makes pods.
type WorkloadKind string

// The first four are those whose selectors system-default spreading reads, as
// kube-scheduler's helper.DefaultSelector does.
const (
	Service               WorkloadKind = "Service"
	ReplicaSet            WorkloadKind = "ReplicaSet"
	StatefulSet           WorkloadKind = "StatefulSet"
	ReplicationController WorkloadKind = "ReplicationController"
	// DaemonSet puts a pod of its Template on every node that takes it: scale-up
	// leaves room for it on nodes that don't exist yet.
	DaemonSet WorkloadKind = "DaemonSet"
)

// Workload is an object that selects or makes pods. It is immutable.
type Workload struct {
	Kind            WorkloadKind
	Namespace, Name string
	Selector        labels.Selector   // ReplicaSet, StatefulSet
	Set             map[string]string // Service, ReplicationController; nil selects nothing
	Template        *Pod              // DaemonSet
}

func (w *Workload) key() workloadKey { return workloadKey{w.Kind, w.Namespace, w.Name} }

type workloadKey struct {
	kind            WorkloadKind
	namespace, name string
}

type workloads struct {
	byKey map[workloadKey]*Workload
	// services are filed under the first label, by key, that they select by:
	// only those of a pod's own labels can select it.
	services map[filing][]*Workload
}

type filing struct{ namespace, key, value string }

// filedUnder returns where a Service is filed; one that selects nothing isn't.
func filedUnder(w *Workload) (p filing, ok bool) {
	for k, v := range w.Set {
		if !ok || k < p.key {
			p, ok = filing{w.Namespace, k, v}, true
		}
	}
	return p, ok
}

func (w *workloads) init() {
	w.byKey = map[workloadKey]*Workload{}
	w.services = map[filing][]*Workload{}
}

func (w *workloads) set(now, old *Workload) {
	named := cmp.Or(now, old)
	setOrDelete(w.byKey, named.key(), now)
	if named.Kind != Service {
		return
	}
	if old != nil {
		if p, ok := filedUnder(old); ok {
			rest := slices.DeleteFunc(slices.Clone(w.services[p]), func(x *Workload) bool { return x.Name == old.Name })
			if w.services[p] = rest; len(rest) == 0 {
				delete(w.services, p)
			}
		}
	}
	if now != nil {
		if p, ok := filedUnder(now); ok {
			w.services[p] = append(slices.Clip(w.services[p]), now)
		}
	}
}

// SetWorkload adds or replaces a workload.
func (s *State) SetWorkload(w *Workload) {
	s.record(Change{Op: WorkloadSet, Node: NoNode, Workload: w, OldWorkload: s.work.byKey[w.key()]})
}

// RemoveWorkload removes a workload, if it is there.
func (s *State) RemoveWorkload(kind WorkloadKind, namespace, name string) {
	if old := s.work.byKey[workloadKey{kind, namespace, name}]; old != nil {
		s.record(Change{Op: WorkloadSet, Node: NoNode, OldWorkload: old})
	}
}

// Workload returns one workload, or nil.
func (s *State) Workload(kind WorkloadKind, namespace, name string) *Workload {
	return s.work.byKey[workloadKey{kind, namespace, name}]
}

// Selecting calls f with each Service of a namespace that selects pods with
// the labels, in no particular order. It looks at those only whose first label
// is among them.
func (s *State) Selecting(namespace string, labels map[string]string, f func(*Workload)) {
	for k, v := range labels {
		for _, w := range s.work.services[filing{namespace, k, v}] {
			if selects(w.Set, labels) {
				f(w)
			}
		}
	}
}

func selects(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Workloads returns all workloads, by kind, namespace and name.
func (s *State) Workloads() []*Workload {
	out := make([]*Workload, 0, len(s.work.byKey))
	for _, w := range s.work.byKey {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *Workload) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}
