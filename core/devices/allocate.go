package devices

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Classes has the device classes that requests name.
type Classes = structured.DeviceClassLister

// ErrTooManySteps is returned when no allocation was found within the steps that a question may take.
var ErrTooManySteps = errors.New("too many combinations of devices")

// ErrTooCostly is returned when selectors cost more than the steps of a question stand for.
var ErrTooCostly = errors.New("selectors cost too much")

// ErrOnNode is wrapped by errors that concern the node only: other nodes may do.
var ErrOnNode = structured.ErrFailedAllocationOnNode

// endsAttempt reports whether an error says that something is wrong with a claim, a class or a pool.
func endsAttempt(err error) bool {
	return err != nil && !errors.Is(err, ErrOnNode) && !errors.Is(err, ErrTooManySteps) && !errors.Is(err, ErrTooCostly)
}

// celCached is how many compiled expressions are kept. kube-scheduler keeps ten.
const celCached = 256

// newExpressions returns a cache of compiled expressions.
func newExpressions(f structured.Features) *cel.Cache {
	return cel.NewCache(celCached, cel.Features{EnableConsumableCapacity: f.ConsumableCapacity, EnableListTypeAttributes: f.ListTypeAttributes})
}

// How says how to allocate.
type How struct {
	// Steps is how many devices may be tried for one question. What selectors cost counts, too: CostPerStep as a step.
	Steps int
	// Packed fills up units that are partly in use before it takes whole ones; otherwise devices are tried in
	// the order in which they are published. It needs FollowWorkload.
	Packed bool
}

// allocate asks the library for devices for claims on a node. It returns nil when they can't be had
// there. It may be called by several goroutines.
func (v *Inventory) allocate(pools []seen, n *v1.Node, claims []*resourcev1.ResourceClaim, classes Classes, how How) ([]resourcev1.AllocationResult, error) {
	taken := nothingTaken()
	var published []*resourcev1.ResourceSlice
	for _, p := range pools {
		p.addTo(&taken)
		published = p.appendSlices(published, how)
	}
	budget := newBudget(how, claims)
	out, err := v.askLibrary(budget, n, claims, classes, taken, published)
	if over := budget.err(n.Name); over != nil {
		return nil, over
	}
	if err != nil || len(out) != len(claims) {
		return nil, err
	}
	return out, nil
}

// askLibrary asks the library within a budget.
func (v *Inventory) askLibrary(b *budget, n *v1.Node, claims []*resourcev1.ResourceClaim, classes Classes, taken structured.AllocatedState, published []*resourcev1.ResourceSlice) (out []resourcev1.AllocationResult, err error) {
	defer b.catch(&err)
	a, err := structured.NewAllocator(b, v.features, taken, classes, published, v.expressions)
	if err != nil {
		return nil, fmt.Errorf("prepare the allocation: %w", err)
	}
	return a.Allocate(b, n, claims)
}

// appendSlices appends the slices of a pool as the library is to see them.
func (p *pool) appendSlices(out []*resourcev1.ResourceSlice, how How) []*resourcev1.ResourceSlice {
	if how.Packed && p.units.packed != nil {
		return append(out, p.units.packed...)
	}
	for _, s := range p.slices {
		out = append(out, s.tainted)
	}
	return out
}

// Allocate returns devices for claims on a node, one result for each claim and in their order; nil
// when they can't be had. The question identifies the claims; with 0 the answer isn't remembered. The
// library is asked once about nodes of equal content. Names of shares are derived from the claims and
// devices.
func (v *Inventory) Allocate(q Question, i int32, n *v1.Node, claims []*resourcev1.ResourceClaim, classes Classes, how How) ([]resourcev1.AllocationResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out, err := v.allocateOnce(q, v.Content(i), v.view(i).pools, n, claims, classes, how)
	for k := range out {
		nameShares(claims[k], &out[k])
	}
	return out, err
}

// view returns what a node sees, nothing if it is in no state.
func (v *Inventory) view(i int32) *view {
	if i < 0 || int(i) >= len(v.views) {
		return &view{}
	}
	return &v.views[i]
}

// nameShares replaces the library's random names of shares: a decision is to be the same when it is
// made again.
func nameShares(c *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) {
	for i := range a.Devices.Results {
		if r := &a.Devices.Results[i]; r.ShareID != nil {
			sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s/%s\x00%s\x00%s\x00%s\x00%d", c.UID, c.Namespace, c.Name, r.Driver, r.Pool, r.Device, i))
			h := hex.EncodeToString(sum[:16])
			id := types.UID(fmt.Sprintf("%s-%s-4%s-8%s-%s", h[:8], h[8:12], h[13:16], h[17:20], h[20:32])) // the form of a UUID
			r.ShareID = &id
		}
	}
}

// Score returns what an allocation is worth to those who list alternatives: more for those that come
// first (computeScore of kube-scheduler).
func Score(c *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) (score int64) {
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if r.Exactly != nil {
			continue
		}
		for k := range r.FirstAvailable {
			name := r.Name + "/" + r.FirstAvailable[k].Name
			if slices.ContainsFunc(a.Devices.Results, func(x resourcev1.DeviceRequestAllocationResult) bool { return x.Request == name }) {
				score += int64(resourcev1.FirstAvailableDeviceRequestMaxSize - k)
			}
		}
	}
	return score
}
