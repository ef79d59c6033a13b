// Package deallocation takes devices away from claims that keep their pod from every node
// (PostFilter of kube-scheduler's DynamicResources): a claim that was allocated where the pod can't run
// any more, or whose devices have failed, and a claim for extended resources that was left of an
// attempt to bind the pod.
//
// Of a claim:
//
//	state      waits for                     then
//	none       its pod to fit on no node     deallocating, if it is in the way and no other pod has it
//	           and wait
//	deallocating  DeallocationDone           none. The pod is woken by the claim's update, or after an
//	                                         error by the outcome, and looked at again
package deallocation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// Profiles finds the plugins of a pod.
type Profiles interface {
	Profile(pod *cluster.Pod) *framework.Profile
}

// Machine follows the claims that are deallocated.
type Machine struct {
	profiles Profiles
	open     map[types.UID]types.UID // the pods for which, by claim
	timeouts timeouts
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that deallocates nothing. Devices may take so long to become ready.
func New(profiles Profiles, readyWithin time.Duration) *Machine {
	return &Machine{profiles: profiles, open: map[types.UID]types.UID{},
		timeouts: timeouts{limit: readyWithin, open: map[claimKey]*resourcev1.ResourceClaim{}}}
}

// PodRejected is called when a pod fits on no node, with why. At most one claim at a time is
// deallocated for it.
func (m *Machine) PodRejected(t *lifecycle.Turn, pod *cluster.Pod, d *engine.Diagnosis) {
	if !t.State.ClaimsDevices(pod) {
		return
	}
	x := m.profiles.Profile(pod).Claimer()
	if x == nil || !slices.ContainsFunc(d.Counts(), func(c engine.Count) bool { return c.Plugin == x.Name() }) {
		return
	}
	claim, stale := x.InTheWay(pod, t.State)
	if claim == nil || claim.UID == "" {
		return
	}
	if _, ok := m.open[claim.UID]; ok {
		return
	}
	m.open[claim.UID] = pod.UID
	t.Ready.Deallocations = append(t.Ready.Deallocations, step.Deallocation{UID: claim.UID, Namespace: claim.Namespace, Name: claim.Name,
		Version: claim.ResourceVersion, Pod: pod.UID, Delete: stale})
}

// DeallocationDone takes an outcome. After an error the pod is tried again: the claim may have changed in
// the meantime.
func (m *Machine) DeallocationDone(t *lifecycle.Turn, in step.DeallocationDone) {
	pod, ok := m.open[in.UID]
	delete(m.open, in.UID)
	if !ok || in.Err == nil {
		return
	}
	if item := t.Queue.Get(pod); item != nil && item.Stage() == queue.Unschedulable {
		t.Queue.WakePod(t.Now, item)
	}
}

// Advance implements lifecycle.Machine.
func (*Machine) Advance(*lifecycle.Turn) {}

// NextWake implements lifecycle.Machine.
func (m *Machine) NextWake() time.Time { return m.timeouts.next() }

// Unsettled names the claims whose deallocation has no outcome.
func (m *Machine) Unsettled() (out []string) {
	for _, claim := range slices.Sorted(maps.Keys(m.open)) {
		out = append(out, fmt.Sprintf("claim %s is being deallocated for pod %s", claim, m.open[claim]))
	}
	return out
}

// Invariants implements lifecycle.Machine.
func (*Machine) Invariants() []string { return nil }
