package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim/checker"
)

// This file checks devices: after each write that no device is given away twice, at each bind that the pod
// has what it claims, after each Step that Berth's choice is one that the claim allows, and at rest that nothing is kept
// for pods that are gone and no pod waits for devices that are free.

// devicesOf collects what the independent checker reads of devices.
// objects calls its argument for each object of either the API server or Berth's state: the
// two are compared by one checker.
func (w *World) devicesOf(objects func(func(cluster.Object))) *checker.Devices {
	d := &checker.Devices{Expressions: w.expressions}
	objects(func(o cluster.Object) {
		switch o := o.(type) {
		case *resourcev1.DeviceClass:
			d.Classes = append(d.Classes, o)
		case *resourcev1.ResourceSlice:
			d.Slices = append(d.Slices, o)
		case *resourcev1.ResourceClaim:
			d.Claims = append(d.Claims, o)
		case *resourcev1.DeviceTaintRule:
			// Rules count only in versions of Kubernetes whose scheduler reads them.
			if devices.TaintRules(w.run.Scheduler.Version) {
				d.Rules = append(d.Rules, o)
			}
		}
	})
	return d
}

// devicesInAPI is what the API server has of devices.
func (w *World) devicesInAPI() *checker.Devices {
	return w.devicesOf(func(f func(cluster.Object)) {
		for _, o := range objectsOf[cluster.Object](w) {
			f(o)
		}
	})
}

func (w *World) deviceViolations(found []checker.DeviceViolation) {
	for _, v := range found {
		w.violation("%s", v)
	}
}

// checkDevicesTaken verifies, after a write of Berth's, that no device is given away twice.
func (w *World) checkDevicesTaken() {
	if w.opt.Check {
		w.deviceViolations(w.devicesInAPI().CheckTaken())
	}
}

// checkDevicesOf verifies, when a pod is bound, that it has what it claims, and that it is ready.
func (w *World) checkDevicesOf(p *pod) {
	if !w.opt.Check {
		return
	}
	// Only the pod's own claims are read: this runs at every bind.
	var claims []*resourcev1.ResourceClaim
	for name := range resourceclaim.PodClaims(p.obj) {
		if c := w.resourceClaim(p.obj.Namespace, name); c != nil {
			claims = append(claims, c)
		}
	}
	in := &checker.Devices{Claims: claims}
	w.deviceViolations(in.CheckReserved([]*v1.Pod{p.obj}))
	if !w.devicesReady(claims) {
		w.violation("pod %s is bound, and its devices aren't ready", p.name)
	}
}

// checkDevicesGiven verifies the devices that a Step has chosen, on what Berth knew. Those of a claim that had them before
// were checked then, and may have changed since.
// It compares with Berth's own state: that it lags behind the API isn't a fault, but its
// choice must be right by what it knew.
func (w *World) checkDevicesGiven(r *step.Ready) {
	// Most Steps bind no pod with claims.
	if !slices.ContainsFunc(r.Binds, func(b step.Bind) bool { return len(b.DeviceClaims) > 0 }) {
		return
	}
	state := w.berth.core().State()
	known := w.devicesOf(func(f func(cluster.Object)) {
		for _, o := range state.Objects() {
			f(o)
		}
	})
	w.deviceViolations(known.CheckTaken())
	for i := range r.Binds {
		n := state.NodeByName(r.Binds[i].Node)
		for _, c := range r.Binds[i].DeviceClaims {
			key := objectKey{cluster.ResourceClaimKind, c.Namespace, c.Name}
			if c.Status.Allocation == nil {
				w.violation("pod %s/%s is to be bound with claim %s, which has no devices", r.Binds[i].Namespace, r.Binds[i].Name, c.Name)
				continue
			}
			// What a claim had is what the API shows, or what Berth gave it in a Step whose
			// write is under way.
			before := w.given[key]
			if now := w.resourceClaim(c.Namespace, c.Name); now != nil && now.Status.Allocation != nil {
				before = now.Status.Allocation
			}
			w.given[key] = c.Status.Allocation
			// A node that went within the Step can't be checked any more.
			if n != nil && (before == nil || !apiequality.Semantic.DeepEqual(before.Devices.Results, c.Status.Allocation.Devices.Results)) {
				w.deviceViolations(known.CheckAllocation(c, n.Object))
			}
		}
	}
}

// checkDevicesAtRest verifies, when nothing has happened for long, that claims are held by pods on nodes alone, and
// that Berth knows of them what the API server has.
// By now all writes have arrived, and controllers have had time.
func (w *World) checkDevicesAtRest() {
	in := w.devicesInAPI()
	w.deviceViolations(in.CheckTaken())
	var bound []*v1.Pod
	for _, p := range w.sortedPods() {
		if p.node != nil && !p.ended {
			bound = append(bound, p.obj)
		}
	}
	w.deviceViolations(in.CheckReserved(bound))
	state := w.berth.core().State()
	for _, c := range in.Claims {
		name := c.Namespace + "/" + c.Name
		if c.Status.Allocation != nil && len(c.Status.ReservedFor) == 0 {
			w.violation("claim %s has devices in the end, and is reserved for nobody", name)
		}
		for _, r := range c.Status.ReservedFor {
			// Members of a gang that wait for permission hold devices without a node, as
			// they should.
			if p := w.pods[r.UID]; p == nil || p.ended || p.obj.Spec.NodeName == "" && !w.waitsForMembers(p) && !w.usedByOthers(c) {
				w.violation("claim %s is reserved in the end for pod %s, which is gone, has ended or has no node", name, r.Name)
			}
		}
		if ref := metav1.GetControllerOfNoCopy(c); ref != nil && w.pods[ref.UID] == nil {
			w.violation("claim %s is there in the end, and its pod %s is gone", name, ref.Name)
		}
		// Only what decisions read is compared: devices and reservations.
		if known := state.ResourceClaim(c.Namespace, c.Name); known == nil || !sameHold(known, c) {
			w.violation("claim %s is in the end in Berth's state otherwise than in the API", name)
		}
	}
}

// usedByOthers reports whether a claim is reserved for a pod on a node: it keeps its devices, whoever else
// an interrupted attempt has left in it.
// A reservation that was left behind goes with the claim's last user.
func (w *World) usedByOthers(c *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		p := w.pods[r.UID]
		return p != nil && !p.ended && p.obj.Spec.NodeName != ""
	})
}

// sameHold reports whether two versions of a claim have the same devices for the same pods.
// Objects that differ in other ways, such as managed fields, are the same for decisions.
func sameHold(a, b *resourcev1.ResourceClaim) bool {
	results := func(c *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
		if c.Status.Allocation == nil {
			return nil
		}
		return c.Status.Allocation.Devices.Results
	}
	return a.UID == b.UID && apiequality.Semantic.DeepEqual(results(a), results(b)) && apiequality.Semantic.DeepEqual(a.Status.ReservedFor, b.Status.ReservedFor)
}

// backed returns the extended resources that device classes provide.
// Each class backs a name that is derived from its own, and perhaps one that it declares.
func (w *World) backed() map[v1.ResourceName]string {
	out := map[v1.ResourceName]string{}
	for _, c := range objectsOf[*resourcev1.DeviceClass](w) {
		out[v1.ResourceName(resourcev1.ResourceDeviceClassPrefix+c.Name)] = c.Name
		if c.Spec.ExtendedResourceName != nil {
			out[v1.ResourceName(*c.Spec.ExtendedResourceName)] = c.Name
		}
	}
	return out
}

// byPlugins returns a pod as it counts where devices aren't looked at: without the extended resources that devices
// provide on a node.
// The checker of NodeResourcesFit would otherwise miss them on the node.
func (w *World) byPlugins(p *v1.Pod, n *v1.Node) *v1.Pod {
	names := w.fromDevices(p, n)
	if len(names) == 0 {
		return p
	}
	p = p.DeepCopy()
	for i := range p.Spec.Containers {
		for name := range names {
			delete(p.Spec.Containers[i].Resources.Requests, name)
		}
	}
	return p
}

// fromDevices returns the extended resources of a pod that a node lacks and devices provide, with their classes.
// A node that offers the resource itself, by a device plugin, serves it from there.
func (w *World) fromDevices(p *v1.Pod, n *v1.Node) map[v1.ResourceName]string {
	var out map[v1.ResourceName]string
	for i := range p.Spec.Containers {
		for name := range p.Spec.Containers[i].Resources.Requests {
			if _, offered := n.Status.Allocatable[name]; offered || !strings.Contains(string(name), "/") {
				continue
			}
			if class := w.backed()[name]; class != "" {
				if out == nil {
					out = map[v1.ResourceName]string{}
				}
				out[name] = class
			}
		}
	}
	return out
}

// devicesFor reports whether a pod could have the devices that it claims on a node, by what the API server has. It asks the
// library itself: what Berth remembers of earlier answers has no part in it.
// It is asked at rest, of pods that still wait: true for one of them means that Berth has
// missed something.
func (w *World) devicesFor(p *pod, n *v1.Node) bool {
	wanted, ok := w.claimsToAllocate(p, n)
	// Claims that have devices already were judged by where these are usable.
	if !ok || len(wanted) == 0 {
		return ok
	}
	in := w.devicesInAPI()
	var tainted []*resourcev1.ResourceSlice
	for _, s := range in.Slices {
		tainted = append(tainted, withRules(s, in.Rules))
	}
	a, err := structured.NewAllocator(context.Background(), devices.Features(w.run.Scheduler.Version), takenOf(in.Claims), classLister(in.Classes), tainted, w.expressions)
	if err != nil {
		return false
	}
	// An error counts as no: expressions may fail on some devices.
	out, err := a.Allocate(context.Background(), n, wanted)
	return err == nil && len(out) == len(wanted)
}

// claimsToAllocate returns the claims of a pod that have no devices, those for extended resources that a node lacks
// included. It reports false when the node can't do because of the others.
// Extended resources become requests of one special claim, as kube-scheduler makes it.
func (w *World) claimsToAllocate(p *pod, n *v1.Node) (out []*resourcev1.ResourceClaim, ok bool) {
	for i := range p.obj.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(p.obj, &p.obj.Spec.ResourceClaims[i])
		if err != nil {
			return nil, false
		}
		if name == nil {
			continue
		}
		c := w.resourceClaim(p.obj.Namespace, *name)
		switch {
		// A claim that isn't there yet, is going, or is full keeps the pod waiting
		// everywhere.
		case c == nil || c.DeletionTimestamp != nil || !resourceclaim.CanBeReserved(c):
			return nil, false
		case c.Status.Allocation == nil:
			out = append(out, c)
		case c.Status.Allocation.NodeSelector != nil:
			if ok, err := nodeaffinity.NewLazyErrorNodeSelector(c.Status.Allocation.NodeSelector).Match(n); !ok || err != nil {
				return nil, false
			}
		}
	}
	special, names := &resourcev1.ResourceClaim{}, w.fromDevices(p.obj, n)
	for i := range p.obj.Spec.Containers {
		// Names of requests are numbered, so the order must be fixed.
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if q := p.obj.Spec.Containers[i].Resources.Requests[name]; q.Value() > 0 {
				special.Spec.Devices.Requests = append(special.Spec.Devices.Requests, resourcev1.DeviceRequest{Name: fmt.Sprintf("r-%d", len(special.Spec.Devices.Requests)),
					Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: names[name], AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: q.Value()}})
			}
		}
	}
	if len(special.Spec.Devices.Requests) > 0 {
		out = append(out, special)
	}
	return out, true
}

// withRules returns a slice with the taints that rules add.
func withRules(s *resourcev1.ResourceSlice, rules []*resourcev1.DeviceTaintRule) *resourcev1.ResourceSlice {
	is := func(want *string, value string) bool { return want == nil || *want == value }
	for _, r := range rules {
		sel := r.Spec.DeviceSelector
		if sel == nil || !is(sel.Driver, s.Spec.Driver) || !is(sel.Pool, s.Spec.Pool.Name) {
			continue
		}
		s = s.DeepCopy()
		for i := range s.Spec.Devices {
			if is(sel.Device, s.Spec.Devices[i].Name) {
				s.Spec.Devices[i].Taints = append(s.Spec.Devices[i].Taints, r.Spec.Taint)
			}
		}
	}
	return s
}

// takenOf returns what claims have, as the library is told it.
// Devices used by an administrator aren't taken.
func takenOf(claims []*resourcev1.ResourceClaim) structured.AllocatedState {
	out := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection()}
	for _, c := range claims {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case r.AdminAccess != nil && *r.AdminAccess:
			case r.ShareID == nil:
				out.AllocatedDevices.Insert(id)
			default:
				out.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
				if r.ConsumedCapacity != nil {
					out.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
				}
			}
		}
	}
	return out
}

// classLister implements structured.DeviceClassLister.
// It is a list: clusters have few classes.
type classLister []*resourcev1.DeviceClass

// List implements structured.DeviceClassLister.
func (l classLister) List() ([]*resourcev1.DeviceClass, error) { return l, nil }

// Get implements structured.DeviceClassLister.
func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("device class %s doesn't exist", name)
}
