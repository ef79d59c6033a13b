package dynamicresources

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/framework"
)

// demand is what a pod claims, as the state has it.
type demand struct {
	// problem is why the pod can be placed nowhere, "" if it can.
	problem string
	wanted  []*resourcev1.ResourceClaim // those to allocate, in the pod's order
	had     []*resourcev1.ResourceClaim // those with an allocation
	// stale is set when a claim for the pod's extended resources is left of an earlier attempt: it has to
	// go first.
	stale    bool
	extended []extended // what it may need a claim of its own for
	// named is set when it names a claim of those wanted, which other pods may name, too. Otherwise each
	// pod has its own.
	named bool
	// namespace is that of one of the pods, for people.
	namespace string
}

// demandOf finds what a pod claims. The texts of problems are kube-scheduler's (PreFilter of its
// DynamicResources plugin).
func demandOf(pod *cluster.Pod, state *cluster.State) (d demand) {
	d.namespace = pod.Object.Namespace
	claims, problem := claimsOf(pod, state)
	if problem != "" {
		d.problem = problem
		return d
	}
	for _, c := range claims {
		d.named = d.named || c.Status.Allocation == nil && !madeFor(c, pod)
		if c.Status.Allocation != nil {
			d.had = append(d.had, c)
			continue
		}
		d.wanted = append(d.wanted, c)
		d.problem = cmp.Or(d.problem, unknownClass(c, state))
	}
	d.extended = extendedDemand(pod, state)
	if n := len(d.extended); n > maxExtended {
		d.problem = cmp.Or(d.problem, fmt.Sprintf("requests %d extended resources of device classes, of which there may be %d", n, maxExtended))
		d.extended = nil
	}
	if d.extended != nil {
		d.stale = state.ExtendedResourceClaim(pod) != nil
	}
	return d
}

// empty reports whether the pod claims nothing after all.
func (d *demand) empty() bool { return len(d.wanted)+len(d.had)+len(d.extended) == 0 }

// claimsOf returns the claims that a pod names and those made for it, in its order.
func claimsOf(pod *cluster.Pod, state *cluster.State) (out []*resourcev1.ResourceClaim, problem string) {
	for i := range pod.Object.Spec.ResourceClaims {
		name, own, err := resourceclaim.Name(pod.Object, &pod.Object.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err.Error()
		}
		if name == nil {
			continue // the pod turned out to need none
		}
		c := state.ClaimNamedBy(pod, *name)
		switch {
		case c == nil:
			return nil, fmt.Sprintf("could not find ResourceClaim %q", pod.Object.Namespace+"/"+*name)
		case c.DeletionTimestamp != nil:
			return nil, fmt.Sprintf("resourceclaim %q is being deleted", c.Name)
		case own:
			if err := resourceclaim.IsForPod(pod.Object, c, false); err != nil {
				return nil, err.Error()
			}
		}
		out = append(out, c)
	}
	return out, ""
}

// madeFor reports whether a claim was made for a pod.
func madeFor(c *resourcev1.ResourceClaim, pod *cluster.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(c)
	return ref != nil && ref.UID == pod.UID
}

// unknownClass says which device class of a claim doesn't exist, "" for none.
func unknownClass(c *resourcev1.ResourceClaim, state *cluster.State) (problem string) {
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if r.Exactly == nil && len(r.FirstAvailable) == 0 {
			return fmt.Sprintf("resource claim %s/%s, request %s: unknown request type", c.Namespace, c.Name, r.Name)
		}
		eachClass(r, func(request, class string) {
			if problem == "" && state.DeviceClass(class) == nil {
				problem = fmt.Sprintf("request %s: device class %s does not exist", request, class)
			}
		})
	}
	return problem
}

// eachClass calls f with the device classes of a request, or of its alternatives.
func eachClass(r *resourcev1.DeviceRequest, f func(request, class string)) {
	if r.Exactly != nil {
		f(r.Name, r.Exactly.DeviceClassName)
		return
	}
	for i := range r.FirstAvailable {
		f(r.Name+"/"+r.FirstAvailable[i].Name, r.FirstAvailable[i].DeviceClassName)
	}
}

// uses reports whether a claim is a pod's: it names it, or the claim was made for it.
func uses(p *cluster.Pod, c *resourcev1.ResourceClaim) bool {
	if p.Object.Namespace != c.Namespace {
		return false
	}
	if madeFor(c, p) {
		return true
	}
	return slices.ContainsFunc(p.Object.Spec.ResourceClaims, func(r v1.PodResourceClaim) bool {
		name, _, err := resourceclaim.Name(p.Object, &r)
		return err == nil && name != nil && *name == c.Name
	})
}

// scores reports whether some claim lists alternatives, and something has to be allocated: then the
// alternatives of all claims count, also of those that have devices.
func (d *demand) scores() bool {
	lists := func(c *resourcev1.ResourceClaim) bool {
		return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })
	}
	return len(d.wanted)+len(d.extended) > 0 && (slices.ContainsFunc(d.wanted, lists) || slices.ContainsFunc(d.had, lists))
}

// sign signs what nodes are told apart by: what is asked for, and where devices are that it has.
func (d *demand) sign(state *cluster.State, sig *framework.Signature) {
	sig.Str(string(d.question(state, d.wanted)))
	sig.Int(int64(len(d.had)))
	for _, c := range d.had {
		sig.Str(selectorText(c))
		sig.Str(unready(c))
		sig.Int(devices.Score(c, c.Status.Allocation))
	}
	sig.Bool(d.stale)
	sig.Bool(d.named)
	sig.Int(int64(len(d.extended)))
	for _, x := range d.extended {
		sig.Str(string(x.id.Name()))
	}
	if len(d.extended) > 0 {
		sig.Str(string(d.question(state, []*resourcev1.ResourceClaim{specialClaim(d.extended)})))
	}
}

// signShared signs which claims have devices already. Where pods preempt for devices those that share
// other claims are other classes: which of them are freed depends on who the victims are.
func (d *demand) signShared(sig *framework.Signature) {
	for _, c := range d.had {
		sig.Str(string(c.UID))
	}
}

// selectorText stands for the nodes to which a claim's devices keep its pods.
func selectorText(c *resourcev1.ResourceClaim) string {
	s := c.Status.Allocation.NodeSelector
	if s == nil {
		return ""
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("dynamicresources: a node selector that has no JSON: %v", err))
	}
	return string(raw)
}

// question returns what the allocator is asked, but the names of the claims: what each asks for, and
// what the classes that it names say.
func (d *demand) question(state *cluster.State, claims []*resourcev1.ResourceClaim) (text []byte) {
	text = binary.AppendUvarint(text, uint64(len(claims)))
	var classes []string
	for _, c := range claims {
		wants := state.Devices().Wants(c)
		text = append(text, wants[:]...)
		for i := range c.Spec.Devices.Requests {
			eachClass(&c.Spec.Devices.Requests[i], func(_, class string) { classes = append(classes, class) })
		}
	}
	slices.Sort(classes)
	for _, name := range slices.Compact(classes) {
		text = append(text, name...)
		text = append(text, 0)
		if class := state.DeviceClass(name); class != nil {
			says := state.Devices().Says(class)
			text = append(text, says[:]...)
		}
	}
	return text
}

// asks returns the question to the allocator that stands for claims.
func (d *demand) asks(state *cluster.State, claims []*resourcev1.ResourceClaim, how devices.How) devices.Question {
	text := binary.AppendUvarint(d.question(state, claims), uint64(how.Steps))
	if how.Packed {
		text = append(text, "packed"...)
	}
	return state.Devices().Question(text)
}

// unready says why devices that a claim has can't be used on any node, "" when they can, or may yet:
// one of their binding failure conditions is true, or their binding conditions aren't and took too long
// (isClaimReadyForBinding and isClaimTimeout of kube-scheduler).
func unready(c *resourcev1.ResourceClaim) string {
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if len(r.BindingConditions) == 0 {
			continue
		}
		is := func(string) bool { return false }
		if at := slices.IndexFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
			return d.Device == r.Device && d.Driver == r.Driver && d.Pool == r.Pool
		}); at >= 0 {
			is = func(name string) bool { return meta.IsStatusConditionTrue(c.Status.Devices[at].Conditions, name) }
			if failed := slices.IndexFunc(r.BindingFailureConditions, is); failed >= 0 {
				return r.BindingFailureConditions[failed]
			}
		}
		if slices.ContainsFunc(r.BindingConditions, func(name string) bool { return !is(name) }) {
			if _, late := c.Annotations[cluster.AnnBindingTimedOut]; late {
				return cluster.AnnBindingTimedOut
			}
			return "" // kube-scheduler looks no further, either
		}
	}
	return ""
}
