package live

import (
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sharer lets the pods that a controller made from one template share the memory of what that
// says: labels, containers, tolerations, affinity. It is more than half of what the cache keeps of
// a pod. Nodes of one size share what they say about it. Nobody changes an object of the cache, so
// nobody can tell.
type sharer struct {
	seed maphash.Seed

	mu        sync.Mutex
	last      [sharedTemplates]*v1.Pod     // the pod that came last, by the place of its template
	resources [sharedSizes]v1.ResourceList // of nodes, what came last, by hash
}

// sharedTemplates is of how many templates the last pod is remembered: with it gone, that is up
// to 8 MiB that nobody needs. When two templates have the same place, their pods that come in turn
// share only what both templates say.
const sharedTemplates = 2048

// sharedSizes is how many lists of nodes' resources are remembered.
const sharedSizes = 256

func newSharer() *sharer { return &sharer{seed: maphash.MakeSeed()} }

// share lets a trimmed pod share memory with the last one that was likely made from its template.
func (s *sharer) share(p *v1.Pod) {
	at := s.place(p)
	s.mu.Lock()
	like := s.last[at]
	s.last[at] = p
	s.mu.Unlock()
	if like != nil {
		shareMeta(&p.ObjectMeta, &like.ObjectMeta)
		shareSpec(&p.Spec, &like.Spec)
	}
}

// place returns where the last pod of a pod's template is remembered.
func (s *sharer) place(p *v1.Pod) uint64 { return s.template(p) % sharedTemplates }

// template returns a hash of what pods have in common that are made from one template: their
// controller, or their labels without one.
func (s *sharer) template(p *v1.Pod) uint64 {
	if c := metav1.GetControllerOfNoCopy(p); c != nil {
		return maphash.String(s.seed, string(c.UID))
	}
	sum := maphash.String(s.seed, p.Namespace)
	for k, v := range p.Labels { // in any order
		sum += maphash.String(s.seed, k) * (1 + 2*maphash.String(s.seed, v))
	}
	return sum
}

// shareNode lets a node share what it says about its size with one that said the same lately. Most
// nodes can allocate all that they have.
func (s *sharer) shareNode(n *v1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shareResources(&n.Status.Capacity)
	s.shareResources(&n.Status.Allocatable)
}

// shareResources looks in the one place that a list of this content has: two kinds of nodes whose sums
// collide take turns there, and share less.
func (s *sharer) shareResources(list *v1.ResourceList) {
	if len(*list) == 0 {
		return
	}
	sum := uint64(0)
	for name, q := range *list { // in any order
		sum += maphash.String(s.seed, string(name)) * (1 + 2*uint64(q.MilliValue()))
	}
	if last := &s.resources[sum%sharedSizes]; maps.Equal(*list, *last) {
		*list = *last
	} else {
		*last = *list
	}
}

// shareMeta shares what pods of one controller have in common in their metadata; names and UIDs differ.
func shareMeta(to, from *metav1.ObjectMeta) {
	shareString(&to.Namespace, from.Namespace)
	shareMap(&to.Labels, from.Labels)
	shareMap(&to.Annotations, from.Annotations)
	if slices.EqualFunc(to.OwnerReferences, from.OwnerReferences, sameOwner) {
		to.OwnerReferences = from.OwnerReferences
	}
}

// shareSpec shares the parts of a spec one by one: pods of one template may differ in any of them.
func shareSpec(to, from *v1.PodSpec) {
	shareString(&to.SchedulerName, from.SchedulerName)
	shareMap(&to.NodeSelector, from.NodeSelector)
	sharePointer(&to.Priority, from.Priority)
	sharePointer(&to.PreemptionPolicy, from.PreemptionPolicy)
	sharePointer(&to.TerminationGracePeriodSeconds, from.TerminationGracePeriodSeconds)
	sharePointer(&to.ActiveDeadlineSeconds, from.ActiveDeadlineSeconds)
	if slices.EqualFunc(to.Tolerations, from.Tolerations, sameToleration) {
		to.Tolerations = from.Tolerations
	}
	shareContainers(&to.Containers, from.Containers)
	shareContainers(&to.InitContainers, from.InitContainers)
	if to.Affinity != nil && reflect.DeepEqual(to.Affinity, from.Affinity) {
		to.Affinity = from.Affinity
	}
	if len(to.TopologySpreadConstraints) > 0 && reflect.DeepEqual(to.TopologySpreadConstraints, from.TopologySpreadConstraints) {
		to.TopologySpreadConstraints = from.TopologySpreadConstraints
	}
}

// shareString lets equal strings be one in memory.
func shareString(to *string, from string) {
	if *to == from {
		*to = from
	}
}

// shareMap shares a map of labels or the like.
func shareMap(to *map[string]string, from map[string]string) {
	if len(*to) > 0 && maps.Equal(*to, from) {
		*to = from
	}
}

func sharePointer[T comparable](to **T, from *T) {
	if samePointer(*to, from) {
		*to = from
	}
}

// samePointer reports whether both are nil, or point to the same value.
func samePointer[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// shareContainers shares trimmed containers, which have the fields only that are compared here.
func shareContainers(to *[]v1.Container, from []v1.Container) {
	if len(*to) > 0 && slices.EqualFunc(*to, from, sameContainer) {
		*to = from
	}
}

// sameContainer compares all that trimming leaves of a container. A field that is read from now on must
// be added here, or pods would get another's.
func sameContainer(a, b v1.Container) bool {
	return a.Name == b.Name && a.Image == b.Image && samePointer(a.RestartPolicy, b.RestartPolicy) &&
		maps.Equal(a.Resources.Requests, b.Resources.Requests) && maps.Equal(a.Resources.Limits, b.Resources.Limits) &&
		sameList(a.Resources.Claims, b.Resources.Claims) && sameList(a.Ports, b.Ports) && sameList(a.RestartPolicyRules, b.RestartPolicyRules)
}

// sameList compares lists that most containers don't have.
func sameList[T any](a, b []T) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion &&
		samePointer(a.Controller, b.Controller) && samePointer(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func sameToleration(a, b v1.Toleration) bool {
	return a.Key == b.Key && a.Operator == b.Operator && a.Value == b.Value && a.Effect == b.Effect && samePointer(a.TolerationSeconds, b.TolerationSeconds)
}
