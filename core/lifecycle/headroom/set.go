package headroom

import (
	"container/heap"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
)

// This file holds the stand-ins of an object such that each can be found by what it requests,
// whether it waits, and where it has its room, and be dropped, without a walk over the others:
// a request may have 50,000.

// standIn is a stand-in in its set.
type standIn struct {
	pod          *cluster.Pod
	set          *set
	number       int // among all that the set ever had: the older, the lower
	older, newer *standIn
	node         string // where the room is kept, "" while the stand-in waits
	at           int    // its index in the line that it is in
}

// waits reports whether no room is kept for a stand-in.
func (x *standIn) waits() bool { return x.node == "" }

// line is a heap (container/heap) of stand-ins of one set, the oldest first. Each is in one:
// in that of those that wait, or in that of its node.
type line []*standIn

// Len implements heap.Interface.
func (l line) Len() int { return len(l) }

// Less implements heap.Interface.
func (l line) Less(i, j int) bool { return l[i].number < l[j].number }

// Swap implements heap.Interface.
func (l line) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = i, j
}

// Push implements heap.Interface.
func (l *line) Push(x any) {
	s := x.(*standIn)
	s.at = len(*l)
	*l = append(*l, s)
}

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return x
}

// first returns the oldest stand-in of a line, nil when there is none. The line may be nil.
func (l *line) first() *standIn {
	if l == nil || len(*l) == 0 {
		return nil
	}
	return (*l)[0]
}

// set is stand-ins that are alike.
type set struct {
	shape   *v1.Pod      // what each of them is like, but for names
	pattern *cluster.Pod // what they are instances of; nil before the first is made
	number  int          // among the sets of its object
	made    int          // how many were ever made: no number is given twice
	count   int

	oldest, newest *standIn
	waiting        line
	held           map[string]*line // by the node on which room is kept; no line is empty
}

// grow adds a stand-in to a set of an object. It waits.
func (a *ask) grow(schema *cluster.Schema, s *set) *standIn {
	prefix := "capacity-buffer-"
	if a.kind == cluster.ProvisioningRequestKind {
		prefix = "provisioning-request-"
	}
	if s.pattern == nil {
		shape := *s.shape
		controls := true
		kind, _, _ := strings.Cut(a.String(), " ")
		shape.OwnerReferences = []metav1.OwnerReference{{APIVersion: autoscalingapi.Group + "/v1", Kind: kind, Name: a.name, UID: a.uid, Controller: &controls}}
		s.pattern = schema.ParsePod(&shape)
		s.pattern.StandIn = cluster.HeadroomID(a.uid)
	}
	s.made++
	pod := s.pattern.InstanceWith(fmt.Sprintf("%s%s-%d-%d", prefix, a.name, s.number, s.made), types.UID(fmt.Sprintf("headroom/%s/%d/%d", a.uid, s.number, s.made)))
	x := &standIn{pod: pod, set: s, number: s.made, older: s.newest}
	if s.newest != nil {
		s.newest.newer = x
	} else {
		s.oldest = x
	}
	s.newest = x
	s.count++
	heap.Push(&s.waiting, x)
	return x
}

// move has room kept for a stand-in on a node, or, for "", has it wait.
func (x *standIn) move(node string) {
	x.leave()
	x.node = node
	s := x.set
	if node == "" {
		heap.Push(&s.waiting, x)
		return
	}
	if s.held == nil {
		s.held = map[string]*line{}
	}
	if s.held[node] == nil {
		s.held[node] = &line{}
	}
	heap.Push(s.held[node], x)
}

// leave takes a stand-in from the line that it is in.
func (x *standIn) leave() {
	s := x.set
	if x.waits() {
		heap.Remove(&s.waiting, x.at)
		return
	}
	l := s.held[x.node]
	if heap.Remove(l, x.at); l.Len() == 0 {
		delete(s.held, x.node)
	}
}

// remove takes a stand-in from its set.
func (x *standIn) remove() {
	x.leave()
	s := x.set
	s.count--
	if x.older != nil {
		x.older.newer = x.newer
	} else {
		s.oldest = x.newer
	}
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		s.newest = x.older
	}
}

// requests reports whether the stand-ins of a set request what a pod does. One without stand-ins
// may have no pattern.
func (s *set) requests(pod *cluster.Pod) bool {
	return s.pattern != nil && s.pattern.NonZero == pod.NonZero
}

// podsOf returns the stand-ins of sets, the oldest of each first.
func podsOf(sets []*set) (out []*cluster.Pod) {
	total := 0
	for _, s := range sets {
		total += s.count
	}
	out = make([]*cluster.Pod, 0, total)
	for _, s := range sets {
		for x := s.oldest; x != nil; x = x.newer {
			out = append(out, x.pod)
		}
	}
	return out
}
