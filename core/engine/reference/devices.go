package reference

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// EndPods has a state's claims be as the controllers leave them when some pods have ended: it is the
// slow twin of framework.Assumer's Release, claim by claim where that goes pod by pod. The claim that was
// made for a pod stands for that of its replacement.
func EndPods(s *cluster.State, gone []*cluster.Pod) {
	var ended []cluster.Object // the claims for the extended resources of the pods
	for _, p := range gone {
		if c := s.ExtendedResourceClaim(p); c != nil && s.ClaimsDevices(p) {
			ended = append(ended, c)
		}
	}
	for _, o := range s.Objects() {
		was, ok := o.(*resourcev1.ResourceClaim)
		switch {
		case !ok:
		case slices.Contains(ended, o):
			s.RemoveObject(cluster.ResourceClaimKind, was.Namespace, was.Name)
		default:
			if c := released(s, was, gone); c != nil {
				s.SetObject(c)
			}
		}
	}
}

// released returns a claim without the reservations of pods that use it; nil when they have none.
func released(s *cluster.State, was *resourcev1.ResourceClaim, gone []*cluster.Pod) *resourcev1.ResourceClaim {
	c := was.DeepCopy()
	c.Status.ReservedFor = slices.DeleteFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return slices.ContainsFunc(gone, func(p *cluster.Pod) bool { return p.UID == r.UID && slices.Contains(s.ClaimsOf(p), was) })
	})
	if len(c.Status.ReservedFor) == len(was.Status.ReservedFor) {
		return nil
	}
	if len(c.Status.ReservedFor) == 0 {
		c.Status = resourcev1.ResourceClaimStatus{}
	}
	if slices.ContainsFunc(gone, func(p *cluster.Pod) bool { return metav1.IsControlledBy(c, p.Object) }) {
		c.DeletionTimestamp = nil
	}
	return c
}

// yields reports whether victims give back what they have taken.
func yields(p *framework.Profile) bool {
	for i := range p.Plugins {
		if y, ok := p.Plugins[i].Plugin.(framework.Yielder); ok && y.Yields() {
			return true
		}
	}
	return false
}

// withoutVictims copies a state without pods, and without what these have taken if they yield it.
func withoutVictims(s *cluster.State, profile *framework.Profile, gone map[*cluster.Pod]bool) *cluster.State {
	out := rebuild(s, gone)
	if !yields(profile) {
		return out
	}
	var ended []*cluster.Pod
	for p, is := range gone { // in any order: claims are gone through by name
		if is {
			ended = append(ended, p)
		}
	}
	EndPods(out, ended)
	return out
}

// FitsWithout reports whether a pod fits on a node when some pods have ended.
func FitsWithout(s *cluster.State, profile *framework.Profile, pod *cluster.Pod, node string, gone map[*cluster.Pod]bool) bool {
	return fits(s, profile, pod, node, gone)
}

// inTurn returns all nominations in the order in which they began.
func inTurn(s *cluster.State) []*cluster.Nomination {
	return slices.SortedFunc(slices.Values(s.Nominations()), func(a, b *cluster.Nomination) int { return cmp.Compare(a.Begun, b.Begun) })
}

// keeps reports whether a nominated pod keeps its devices: it stands in for another or has a place, and each claim
// of it that has no devices yet is its own.
func keeps(s *cluster.State, n *cluster.Nomination) bool {
	return (n.Place || n.Pod.StandsIn()) && !slices.ContainsFunc(s.ClaimsOf(n.Pod), func(c *resourcev1.ResourceClaim) bool {
		return c.Status.Allocation == nil && !metav1.IsControlledBy(c, n.Pod.Object)
	})
}

// assume has the plugins take what a nominated pod will, if it keeps that or they yield.
func assume(s *cluster.State, profile *framework.Profile, pod *cluster.Pod, node string, keeps bool) {
	n := s.NodeByName(node)
	if n == nil || !keeps && !yields(profile) || !s.ClaimsDevices(pod) {
		return
	}
	for i := range profile.Plugins {
		if a, ok := profile.Plugins[i].Plugin.(framework.Assumer); ok {
			a.Assume(pod, n, s)
		}
	}
}
