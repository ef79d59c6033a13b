package binding

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file holds what was assumed of volumes and their claims: the state has them as they will be
// once the bind has written them. Resource claims have a file of their own (claims.go).

// objectKey names an object.
type objectKey struct {
	kind            cluster.ObjectKind
	namespace, name string
}

func keyOf(o cluster.Object) objectKey {
	return objectKey{cluster.KindOf(o), o.GetNamespace(), o.GetName()}
}

// assumptions are the objects that the state has otherwise than the API, each as it is assumed (New) and
// as the API last had it (Old). Pods that share an object may each assume it: the state has what was
// assumed last of that which wasn't taken back. No list is empty.
type assumptions map[objectKey][]cluster.ObjectChange

// ObjectSet takes how the API has an object, except when it only repeats the version that
// an assumption was made on.
func (m *Machine) ObjectSet(t *lifecycle.Turn, in step.ObjectSet) {
	key := keyOf(in.Object)
	if c, ok := in.Object.(*resourcev1.ResourceClaim); ok {
		m.claims.show(t.State, keyOfClaim(c), c)
		return
	}
	if key.kind == cluster.NoObject {
		return
	}
	if a, ok := m.assumed[key]; ok {
		if version := in.Object.GetResourceVersion(); version != "" && version == a[0].Old.GetResourceVersion() {
			return
		}
		delete(m.assumed, key)
	}
	t.State.SetObject(in.Object)
}

// ObjectGone records that the API has an object no more.
func (m *Machine) ObjectGone(t *lifecycle.Turn, in step.ObjectGone) {
	if in.Kind == cluster.ResourceClaimKind {
		m.claims.show(t.State, claimKey{in.Namespace, in.Name}, nil)
		return
	}
	delete(m.assumed, objectKey{in.Kind, in.Namespace, in.Name})
	t.State.RemoveObject(in.Kind, in.Namespace, in.Name)
}

// add remembers what a decision has changed in objects, to forget it if it can't be
// written.
func (a assumptions) add(writes []cluster.ObjectChange) {
	for _, w := range writes {
		key := keyOf(w.New)
		if before := a[key]; len(before) > 0 {
			w.Old = before[0].Old // what the API last had
		}
		a[key] = append(a[key], w)
	}
}

// volumesOf returns the changes by which other pods' binds reserve volumes for claims of a pod. The pod's own
// bind writes them as well: it relies on them, and nobody else may come to write them.
func (a assumptions) volumesOf(state *cluster.State, pod *cluster.Pod) (out []cluster.ObjectChange) {
	if len(a) == 0 {
		return nil
	}
	for _, ref := range pod.Claims {
		for _, pv := range state.VolumesClaimed(cluster.ClaimKey{Namespace: pod.Object.Namespace, Name: ref.Name}) {
			for _, c := range a[keyOf(pv)] {
				if c.New == cluster.Object(pv) && !slices.ContainsFunc(out, func(x cluster.ObjectChange) bool { return x.New == c.New }) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// takeBack forgets what was assumed for a pod and has not come true. What others assume of the same
// objects stays.
func (a assumptions) takeBack(state *cluster.State, p *Pod) {
	for _, w := range p.writes {
		key := keyOf(w.New)
		i := slices.IndexFunc(a[key], func(x cluster.ObjectChange) bool { return x.New == w.New })
		if i < 0 {
			continue
		}
		old := a[key][i].Old
		left := slices.Delete(a[key], i, i+1)
		if len(left) == 0 {
			delete(a, key)
			state.SetObject(old)
			continue
		}
		a[key] = left
		state.SetObject(left[len(left)-1].New)
	}
	p.writes = nil
}

func (a assumptions) unsettled() (out []string) {
	for _, key := range slices.SortedFunc(maps.Keys(a), func(a, b objectKey) int { return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name) }) {
		out = append(out, fmt.Sprintf("%s/%s is assumed to be reserved, and nothing has come of it", key.namespace, key.name))
	}
	return out
}

// unboundClaims returns the claims of a pod that have to be bound before it is.
func unboundClaims(state *cluster.State, pod *cluster.Pod) (out []string) {
	for _, ref := range pod.Claims {
		if claim := state.Claim(pod.Object.Namespace, ref.Name); claim == nil || !cluster.ClaimBound(claim) {
			out = append(out, ref.Name)
		}
	}
	return out
}
