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
	byKey    map[workloadKey]*Workload
	services map[string][]*Workload // by namespace, sorted by name
}

func (w *workloads) init() {
	w.byKey = map[workloadKey]*Workload{}
	w.services = map[string][]*Workload{}
}

func (w *workloads) set(now, old *Workload) {
	named := cmp.Or(now, old)
	setOrDelete(w.byKey, named.key(), now)
	if named.Kind != Service {
		return
	}
	list := w.services[named.Namespace]
	at, found := slices.BinarySearchFunc(list, named.Name, func(x *Workload, name string) int { return strings.Compare(x.Name, name) })
	switch {
	case found && now == nil:
		list = slices.Delete(list, at, at+1)
	case found:
		list[at] = now
	case now != nil:
		list = slices.Insert(list, at, now)
	}
	w.services[named.Namespace] = list
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

// Services returns the Services of a namespace, by name.
func (s *State) Services(namespace string) []*Workload { return s.work.services[namespace] }

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
