package cluster

// This file holds headrooms: which room on the nodes is kept free, and for which pods.
// The room itself is kept by stand-ins, pods that are in no API. Each is nominated to a
// node and so counts for filters against pods of equal or lower priority; but not against
// the pods that its headroom admits, for they are whom the room is kept for.
//
// Which live headrooms admit a pod is part of its class. It must hold that
//
//   - headrooms.byNamespace has each live headroom once, sorted by ID, those for pods of any namespace
//     under ""; no empty list is kept;
//   - whenever another headroom admits a pod than before, SignatureVersion has grown.

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HeadroomID names a headroom: by the UID of the object that asks for it.
type HeadroomID string

// Headroom is room that is kept free for some pods of a namespace: those of Controller,
// those with all of Labels, or those with one of Annotations; or for a pod group, which pods of
// any namespace may use that don't delay it. Exactly one of the four is set. A headroom is immutable.
type Headroom struct {
	ID         HeadroomID
	Namespace  string
	Controller *Controller
	Labels     map[string]string
	// Annotations are the keys of which one has to have the value. The informers keep the
	// pods' annotations that Berth reads only (ours).
	Annotations []Annotation
	Group       *GroupRoom // Namespace is "" then
}

// GroupRoom says who may use the room that is kept for a pod group.
type GroupRoom struct {
	Key PodGroupKey
	// Priority is the group's. Pods of a lower one may use the room if the group may preempt them.
	Priority int32
	Preempts bool
	// Within is how long other pods may run at most, in whole seconds, by their activeDeadlineSeconds.
	Within time.Duration
	// Begun are the groups of which some members have nodes, and too few, sorted: these nodes are of no use to anybody
	// before the other members have some, too.
	Begun []PodGroupKey
}

// admits reports whether a pod is a member, or one of a group that has begun, can be preempted by the group, or ends
// in time.
func (g *GroupRoom) admits(p *Pod) bool {
	switch deadline := p.Object.Spec.ActiveDeadlineSeconds; {
	case p.Group != nil && (*p.Group == g.Key || g.hasBegun(*p.Group)):
		return true
	case g.Preempts && p.Priority < g.Priority:
		return true
	case deadline != nil:
		return *deadline <= int64(g.Within/time.Second)
	}
	return false
}

// hasBegun reports whether a group is one of Begun, which may be many when the API server refuses binds for a while.
func (g *GroupRoom) hasBegun(k PodGroupKey) bool {
	_, ok := slices.BinarySearchFunc(g.Begun, k, PodGroupKey.Compare)
	return ok
}

// HeadroomChange is a headroom before and after; either may be nil.
type HeadroomChange struct{ New, Old *Headroom }

// Controller names what makes pods.
type Controller struct{ Kind, Name string }

// Annotation is a key with its value.
type Annotation struct{ Key, Value string }

// Admits reports whether the room is kept for a pod. Stand-ins, its own included, are never
// admitted: they keep room beside each other.
func (h *Headroom) Admits(p *Pod) bool {
	o := p.Object
	switch {
	case p.StandsIn():
		return false
	case h.Group != nil:
		return h.Group.admits(p)
	case o.Namespace != h.Namespace:
		return false
	case h.Controller != nil:
		return h.Controller.controls(p)
	case h.Labels != nil:
		return selects(h.Labels, o.Labels)
	}
	return slices.ContainsFunc(h.Annotations, func(a Annotation) bool {
		value, ok := o.Annotations[a.Key]
		return ok && value == a.Value
	})
}

// controls reports whether a pod's controller is this one, or, if this is a Deployment, one
// of its ReplicaSets.
func (c *Controller) controls(p *Pod) bool {
	ref := metav1.GetControllerOfNoCopy(p.Object)
	switch {
	case ref == nil:
		return false
	case c.Kind == "Deployment":
		return p.Deployment() == c.Name
	}
	return ref.Kind == c.Kind && ref.Name == c.Name
}

// same reports whether two headrooms of one ID admit the same pods.
func (h *Headroom) same(o *Headroom) bool {
	if h.Group != nil && o.Group != nil {
		g, was := h.Group, o.Group
		return g.Key == was.Key && g.Priority == was.Priority && g.Preempts == was.Preempts && g.Within == was.Within && slices.Equal(g.Begun, was.Begun)
	}
	if h.Namespace != o.Namespace || (h.Group == nil) != (o.Group == nil) || (h.Controller == nil) != (o.Controller == nil) || (h.Labels == nil) != (o.Labels == nil) {
		return false
	}
	return (h.Controller == nil || *h.Controller == *o.Controller) && maps.Equal(h.Labels, o.Labels) && slices.Equal(h.Annotations, o.Annotations)
}

// headrooms holds the live headrooms.
type headrooms struct {
	byID        map[HeadroomID]*Headroom
	byNamespace map[string][]*Headroom
	groups      int    // how many of them are of pod groups
	changes     uint64 // never goes back, not even when a change is undone
}

// set replaces a headroom; either may be nil.
func (b *headrooms) set(now, old *Headroom) {
	b.changes++
	if old != nil && old.Group != nil {
		b.groups--
	}
	if now != nil && now.Group != nil {
		b.groups++
	}
	if old != nil {
		delete(b.byID, old.ID)
		list := slices.DeleteFunc(b.byNamespace[old.Namespace], func(h *Headroom) bool { return h.ID == old.ID })
		if b.byNamespace[old.Namespace] = list; len(list) == 0 {
			delete(b.byNamespace, old.Namespace)
		}
	}
	if now == nil {
		return
	}
	if b.byID == nil {
		b.byID, b.byNamespace = map[HeadroomID]*Headroom{}, map[string][]*Headroom{}
	}
	b.byID[now.ID] = now
	list := b.byNamespace[now.Namespace]
	at, _ := slices.BinarySearchFunc(list, now.ID, func(h *Headroom, id HeadroomID) int { return strings.Compare(string(h.ID), string(id)) })
	b.byNamespace[now.Namespace] = slices.Insert(list, at, now)
}

// SetHeadroom adds a headroom or replaces the one of its ID.
func (s *State) SetHeadroom(h *Headroom) {
	old := s.headrooms.byID[h.ID]
	if old == nil || !old.same(h) {
		s.record(Change{Op: HeadroomSet, Node: NoNode, Headroom: &HeadroomChange{New: h, Old: old}})
	}
}

// RemoveHeadroom removes a headroom, if it is there. Its stand-ins have to be gone.
func (s *State) RemoveHeadroom(id HeadroomID) {
	if old := s.headrooms.byID[id]; old != nil {
		s.record(Change{Op: HeadroomSet, Node: NoNode, Headroom: &HeadroomChange{Old: old}})
	}
}

// Headroom returns a headroom, or nil.
func (s *State) Headroom(id HeadroomID) *Headroom { return s.headrooms.byID[id] }

// Headrooms returns all headrooms, by ID.
func (s *State) Headrooms() []*Headroom {
	return slices.SortedFunc(maps.Values(s.headrooms.byID), func(a, b *Headroom) int { return strings.Compare(string(a.ID), string(b.ID)) })
}

// AnyGroupRoom reports whether room is kept for some pod group.
func (s *State) AnyGroupRoom() bool { return s.headrooms.groups > 0 }

// KeepsGroupRoom reports whether a pod is a stand-in that keeps room for a pod group: unlike other stand-ins it may
// keep what pods on its node have until they end.
func (s *State) KeepsGroupRoom(p *Pod) bool {
	h := s.headrooms.byID[p.StandIn]
	return h != nil && h.Group != nil
}

// Admitting appends to ids the headrooms that admit a pod, in O(headrooms of its namespace and
// of pod groups): those of its namespace sorted, and then the others sorted.
func (s *State) Admitting(ids []HeadroomID, p *Pod) []HeadroomID {
	if len(s.headrooms.byID) == 0 {
		return ids
	}
	for _, namespace := range [...]string{p.Object.Namespace, ""} {
		for _, h := range s.headrooms.byNamespace[namespace] {
			if h.Admits(p) {
				ids = append(ids, h.ID)
			}
		}
	}
	return ids
}
