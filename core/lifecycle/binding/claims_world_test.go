package binding_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/binding"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has an API server with resource claims, who writes them (the edge's binds, the resource
// claim controller), and a core's machine beside it that learns of all that later. Two nodes have two
// devices each.

// gpu is an extended resource that devices back.
const gpu = "example.com/gpu"

// apiServer has what the API has.
type apiServer struct {
	version int
	claims  map[string]*resourcev1.ResourceClaim
	pods    map[types.UID]*v1.Pod
	// log are the changes of claims that the machine wasn't told yet: nil for one that is gone.
	log []logged
	// podLog are what it wasn't told of pods.
	podLog []func(*devicesWorld)
}

type logged struct {
	name    string
	version int
	object  *resourcev1.ResourceClaim
}

// set writes a claim, as UpdateStatus and Update do.
func (a *apiServer) set(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	a.version++
	c = c.DeepCopy()
	c.ResourceVersion = fmt.Sprint(a.version)
	if c.UID == "" {
		c.UID = types.UID("claim-" + c.ResourceVersion)
	}
	a.claims[c.Name] = c
	a.log = append(a.log, logged{c.Name, a.version, c})
	return c
}

func (a *apiServer) remove(name string) {
	a.version++
	delete(a.claims, name)
	a.log = append(a.log, logged{name, a.version, nil})
}

// bindCall is a bind that the edge works on. Each advance is one call to the API server.
type bindCall struct {
	bind      step.Bind
	next      int      // of bind.DeviceClaims
	wrote     []string // the claims to take back
	phase     phase
	err       error
	cancelled bool
	version   int // of the last write: the outcome comes after the machine was told of it
}

type phase uint8

const (
	writing phase = iota
	posting
	takingBack
	settling
)

// write makes the next call for a claim: a claim for extended resources is created first.
func (b *bindCall) write(a *apiServer) error {
	want := b.bind.DeviceClaims[b.next]
	c := a.claims[want.Name]
	switch {
	case c == nil && want.UID == "":
		made := want.DeepCopy()
		made.Status = resourcev1.ResourceClaimStatus{}
		a.set(made)
		b.wrote = append(b.wrote, want.Name)
		return nil
	case c == nil || want.UID != "" && c.UID != want.UID:
		return errors.New("not found")
	case c.Status.Allocation != nil && !sameDevices(c, want):
		return errors.New("got allocated elsewhere in the meantime")
	}
	if b.next++; b.next == len(b.bind.DeviceClaims) {
		b.phase = posting
	}
	if !slices.Contains(b.wrote, c.Name) {
		b.wrote = append(b.wrote, c.Name)
	}
	if reservedFor(c, b.bind.UID) {
		return nil
	}
	now := c.DeepCopy()
	now.Status.Allocation = want.Status.Allocation
	now.Status.ReservedFor = append(now.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: b.bind.Name, UID: b.bind.UID})
	a.set(now)
	return nil
}

// takeBack makes the next call that undoes what was written.
func (b *bindCall) takeBack(a *apiServer) {
	name := b.wrote[0]
	b.wrote = b.wrote[1:]
	if c := a.claims[name]; c != nil {
		a.unreserve(c, func(uid types.UID) bool { return uid == b.bind.UID })
	}
}

// unreserve takes reservations away. A claim without one has no devices; one that was made for a pod
// goes.
func (a *apiServer) unreserve(c *resourcev1.ResourceClaim, gone func(types.UID) bool) {
	if metav1.GetControllerOfNoCopy(c) != nil {
		a.remove(c.Name)
		return
	}
	now := c.DeepCopy()
	now.Status.ReservedFor = slices.DeleteFunc(now.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return gone(r.UID) })
	if len(now.Status.ReservedFor) == len(c.Status.ReservedFor) {
		return
	}
	if len(now.Status.ReservedFor) == 0 {
		now.Status = resourcev1.ResourceClaimStatus{}
	}
	a.set(now)
}

// controller is one pass of the resource claim controller, and of the garbage collector, over a claim.
func (a *apiServer) controller(c *resourcev1.ResourceClaim) {
	if owner := metav1.GetControllerOfNoCopy(c); owner != nil && a.pods[owner.UID] != nil {
		return
	}
	if metav1.GetControllerOfNoCopy(c) == nil && len(c.Status.ReservedFor) == 0 {
		return
	}
	a.unreserve(c, func(uid types.UID) bool { return a.pods[uid] == nil })
}

func reservedFor(c *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

func devicesOf(c *resourcev1.ResourceClaim) (out []string) {
	if c.Status.Allocation != nil {
		for _, r := range c.Status.Allocation.Devices.Results {
			out = append(out, r.Pool+"/"+r.Device)
		}
	}
	return out
}

func sameDevices(a, b *resourcev1.ResourceClaim) bool {
	return slices.Equal(devicesOf(a), devicesOf(b))
}

// devicesWorld is a machine beside an API server.
type devicesWorld struct {
	*world
	api   *apiServer
	binds []*bindCall
	rule  dynamicresources.Plugin
}

func newDevicesWorld() *devicesWorld {
	d := &devicesWorld{api: &apiServer{claims: map[string]*resourcev1.ResourceClaim{}, pods: map[types.UID]*v1.Pod{}}}
	d.start()
	return d
}

// start makes a machine that knows what the API has: what the one before was told and had under way is
// lost.
func (d *devicesWorld) start() {
	d.world, d.rule, d.binds = newWorld(), dynamicresources.New(1000), nil
	d.api.log, d.api.podLog = nil, nil
	class := testkit.DeviceClass("gpus", gpu)
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example"`}}}
	d.m.ObjectSet(d.Turn, step.ObjectSet{Object: class})
	for _, node := range []string{"n1", "n2"} {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
		s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}}}
		d.m.ObjectSet(d.Turn, step.ObjectSet{Object: s})
	}
	for _, name := range slices.Sorted(maps.Keys(d.api.claims)) {
		d.m.ObjectSet(d.Turn, step.ObjectSet{Object: d.api.claims[name]})
	}
	for _, uid := range slices.Sorted(maps.Keys(d.api.pods)) {
		if pod := d.api.pods[uid]; pod.Spec.NodeName != "" {
			d.State.Place(d.State.Schema.ParsePod(pod), pod.Spec.NodeName)
		}
	}
}

// deviceClaim returns a claim for one device.
func deviceClaim(name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpus",
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	return c
}

// newPod adds a pod that uses claims: "extended" stands for an extended resource, and claims that don't
// exist are made.
func (d *devicesWorld) newPod(name string, uses ...string) {
	pod := testkit.Pod(name).Req("cpu", "10m")
	for _, use := range uses {
		if use == "extended" {
			pod = pod.Req("cpu", "10m", gpu, "1")
			continue
		}
		pod = pod.With(func(p *v1.Pod) {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: use, ResourceClaimName: &use})
		})
		if d.api.claims[use] == nil {
			d.api.set(deviceClaim(use))
		}
	}
	obj := pod.Obj()
	d.api.pods[obj.UID] = obj
}

// placePod has a decision place a pod on a node, and reports whether it fits there.
func (d *devicesWorld) placePod(uid types.UID, node string) bool {
	item := d.Queued(d.api.pods[uid])
	rules, why := d.rule.For(item.Pod(), d.State)
	n := d.State.NodeByName(node)
	if why != nil {
		return false
	}
	if code, _ := rules.Local.EvalNode(n); code != framework.OK {
		return false
	}
	d.PopOnly(item)
	if d.pods[uid] == nil {
		d.pods[uid] = &binding.Pod{}
	}
	d.State.Place(item.Pod(), node)
	from := d.State.Head()
	d.rule.Assume(item.Pod(), n, d.State)
	changes, _ := d.State.Since(from)
	var writes []cluster.ObjectChange
	for i := range changes {
		if changes[i].Op == cluster.ObjectSet {
			writes = append(writes, *changes[i].Object)
		}
	}
	d.m.Assume(d.State, d.pods[uid], item.Pod(), writes)
	d.m.PodPlaced(d.Turn, d.pods[uid], item, n)
	d.collect()
	return true
}

// collect hands out what the machine has asked for.
func (d *devicesWorld) collect() {
	r := d.Flush()
	for _, b := range r.Binds {
		d.binds = append(d.binds, &bindCall{bind: b})
	}
	for _, c := range r.Cancels {
		for _, b := range d.binds {
			b.cancelled = b.cancelled || b.bind.UID == c.UID
		}
	}
}

// told has the machine be told of the next change of a claim.
func (d *devicesWorld) told() {
	if len(d.api.log) == 0 {
		return
	}
	x := d.api.log[0]
	d.api.log = d.api.log[1:]
	if x.object != nil {
		d.m.ObjectSet(d.Turn, step.ObjectSet{Object: x.object})
	} else {
		d.m.ObjectGone(d.Turn, step.ObjectGone{Kind: cluster.ResourceClaimKind, Namespace: "default", Name: x.name})
	}
}

// toldOfPod has it be told of the next change of a pod.
func (d *devicesWorld) toldOfPod() {
	if len(d.api.podLog) > 0 {
		tell := d.api.podLog[0]
		d.api.podLog = d.api.podLog[1:]
		tell(d)
		d.collect()
	}
}

// seen returns the version up to which the machine was told of claims.
func (d *devicesWorld) seen() int {
	if len(d.api.log) == 0 {
		return d.api.version
	}
	return d.api.log[0].version - 1
}

// fate is what becomes of a call.
type fate uint8

const (
	served fate = iota
	refused
	gaveUp // of taking back: the API server was away for too long
)

// advance makes the next call of a bind.
func (d *devicesWorld) advance(b *bindCall, f fate) {
	fail := func(err error) { b.phase, b.err = takingBack, err }
	switch b.phase {
	case writing, posting:
		switch {
		case b.cancelled:
			fail(errors.New("cancelled"))
		case f != served:
			fail(errRefused)
		case b.phase == posting:
			d.post(b, fail)
		case b.next == len(b.bind.DeviceClaims):
			b.phase = posting
		default:
			if err := b.write(d.api); err != nil {
				fail(err)
			}
		}
	case takingBack:
		switch {
		case len(b.wrote) == 0:
			b.phase = settling
		case f == gaveUp:
			b.wrote = b.wrote[1:]
		default:
			b.takeBack(d.api)
		}
	case settling:
		if d.seen() < b.version {
			return
		}
		d.binds = slices.DeleteFunc(d.binds, func(x *bindCall) bool { return x == b })
		d.m.BindDone(d.Turn, step.BindDone{UID: b.bind.UID, Err: b.err})
		d.collect()
		return
	}
	b.version = d.api.version
}

// post binds the pod.
func (d *devicesWorld) post(b *bindCall, fail func(error)) {
	pod := d.api.pods[b.bind.UID]
	if pod == nil || pod.Spec.NodeName != "" {
		fail(errors.New("the pod is gone"))
		return
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = b.bind.Node
	d.api.pods[pod.UID] = pod
	d.api.podLog = append(d.api.podLog, func(d *devicesWorld) { d.shown(pod.UID, pod.Spec.NodeName) })
	b.phase = settling
}

// deletePod deletes a pod, which the machine is told later.
func (d *devicesWorld) deletePod(uid types.UID) {
	delete(d.api.pods, uid)
	d.api.podLog = append(d.api.podLog, func(d *devicesWorld) { d.gone(uid) })
}

// brokenDevices says what must never be: a device of two claims, in the API or in the state; a bound
// pod without its devices.
func (d *devicesWorld) brokenDevices() (out []string) {
	out = d.broken()
	inAPI, inState := map[string]string{}, map[string]string{}
	twice := func(where string, of map[string]string, c *resourcev1.ResourceClaim) {
		for _, device := range devicesOf(c) {
			if other := of[device]; other != "" {
				out = append(out, fmt.Sprintf("%s: %s has %s and so has %s", where, c.Name, device, other))
			}
			of[device] = c.Name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.api.claims)) {
		twice("API", inAPI, d.api.claims[name])
	}
	for _, o := range d.State.Objects() {
		if c, ok := o.(*resourcev1.ResourceClaim); ok {
			twice("state", inState, c)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(d.api.pods)) {
		pod := d.api.pods[uid]
		if pod.Spec.NodeName == "" {
			continue
		}
		for _, r := range pod.Spec.ResourceClaims {
			if c := d.api.claims[*r.ResourceClaimName]; c == nil || c.Status.Allocation == nil || !reservedFor(c, uid) {
				out = append(out, fmt.Sprintf("bound pod %s lacks its claim %s", uid, *r.ResourceClaimName))
			}
		}
	}
	return out
}

// leftOver says what is kept that nobody needs, once all pods are gone.
func (d *devicesWorld) leftOver() (out []string) {
	for name, c := range d.api.claims {
		if c.Status.Allocation != nil {
			out = append(out, fmt.Sprintf("the API has claim %s with %s", name, strings.Join(devicesOf(c), ", ")))
		}
	}
	for _, o := range d.State.Objects() {
		if c, ok := o.(*resourcev1.ResourceClaim); ok && (d.api.claims[c.Name] == nil || c.ResourceVersion != d.api.claims[c.Name].ResourceVersion || c.Status.Allocation != nil) {
			out = append(out, fmt.Sprintf("the state has claim %s at version %s with %s", c.Name, c.ResourceVersion, strings.Join(devicesOf(c), ", ")))
		}
	}
	slices.Sort(out)
	return append(out, d.m.Unsettled()...)
}
