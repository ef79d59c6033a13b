package checker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// This file checks devices from API objects alone: what claims have of what drivers publish. It doesn't
// allocate. Of the library it uses the evaluation of CEL expressions and what a pod's claims are called.

// Devices is what a cluster has of devices. Slices of every generation may be among them.
type Devices struct {
	Classes []*resourcev1.DeviceClass
	Slices  []*resourcev1.ResourceSlice
	Claims  []*resourcev1.ResourceClaim
	Rules   []*resourcev1.DeviceTaintRule
	// Expressions are those that were compiled before; nil compiles all of them.
	Expressions *cel.Cache
}

// NewExpressions returns a place for compiled expressions.
// Callers that check often share one: to compile an expression costs far more than to
// evaluate it.
func NewExpressions() *cel.Cache {
	return cel.NewCache(256, cel.Features{EnableConsumableCapacity: true})
}

// deviceID names a device.
type deviceID struct{ driver, pool, name string }

func (id deviceID) String() string { return id.driver + "/" + id.pool + "/" + id.name }

// idOf returns the device of a result. A result names it whether or not a driver still
// publishes it.
func idOf(r *resourcev1.DeviceRequestAllocationResult) deviceID {
	return deviceID{r.Driver, r.Pool, r.Device}
}

// DeviceViolation is a claim that has what it must not have.
// It is never a matter of degree: one violation fails the run that checks.
type DeviceViolation struct {
	Claim string // namespace/name; "" when several are to blame
	// Rule is twice, capacity, counters, published, class, count, taint, place, constraint or reserved.
	Rule   string
	Detail string
}

func (v DeviceViolation) String() string {
	if v.Claim == "" {
		return fmt.Sprintf("breaks %s: %s", v.Rule, v.Detail)
	}
	return fmt.Sprintf("claim %s breaks %s: %s", v.Claim, v.Rule, v.Detail)
}

// users is what the claims have of one device.
// A device is in whole or in parts, never in both; both are kept to say so.
type users struct {
	whole, parts []string // the claims that have it, and those that have a part
	consumed     map[resourcev1.QualifiedName]resource.Quantity
}

// CheckTaken returns the violations of what holds at all times: no device is in two claims unless it may be
// shared, what is consumed of one is there, and so are the counters that the devices in use take together. A device
// with an administrator's access counts for nobody. Devices that aren't published have no capacity to exceed.
func (d *Devices) CheckTaken() (found []DeviceViolation) {
	taken := d.taken()
	published := d.published(nil)
	for _, id := range sortedIDs(taken) {
		u := taken[id]
		// An allocation without a share ID has the device for itself, so that one with a
		// part beside it is a violation, too.
		if len(u.whole) > 1 || len(u.whole) == 1 && len(u.parts) > 0 {
			found = append(found, DeviceViolation{Rule: "twice", Detail: fmt.Sprintf("device %s is in claims %s", id, strings.Join(append(u.whole, u.parts...), ", "))})
		}
		device := published[id]
		// A driver may take a device back while a claim has it; then there is no capacity
		// to compare with.
		if device == nil || len(u.parts) == 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(u.consumed)) {
			if used, has := u.consumed[name], device.Capacity[name].Value; used.Cmp(has) > 0 {
				found = append(found, DeviceViolation{Rule: "capacity", Detail: fmt.Sprintf("of %s of device %s %s are consumed, and it has %s, by claims %s",
					name, id, used.String(), has.String(), strings.Join(u.parts, ", "))})
			}
		}
	}
	return append(found, d.checkCounters(taken, published)...)
}

// taken returns what claims have of each device.
func (d *Devices) taken() map[deviceID]*users {
	out := map[deviceID]*users{}
	for _, c := range d.Claims {
		if c.Status.Allocation == nil {
			continue
		}
		for i := range c.Status.Allocation.Devices.Results {
			r := &c.Status.Allocation.Devices.Results[i]
			// Access for administrators is granted beside whatever else uses the device.
			if r.AdminAccess != nil && *r.AdminAccess {
				continue
			}
			u := out[idOf(r)]
			if u == nil {
				u = &users{consumed: map[resourcev1.QualifiedName]resource.Quantity{}}
				out[idOf(r)] = u
			}
			name := c.Namespace + "/" + c.Name
			if r.ShareID == nil {
				u.whole = append(u.whole, name)
				continue
			}
			u.parts = append(u.parts, name)
			// What was consumed stands in the allocation itself, rounded up as the device's
			// policy wants it: what the claim asked for is of no interest here.
			for capacity, q := range r.ConsumedCapacity {
				sum := u.consumed[capacity]
				sum.Add(q)
				u.consumed[capacity] = sum
			}
		}
	}
	return out
}

// sortedIDs gives reports an order that doesn't change from run to run.
func sortedIDs[V any](m map[deviceID]V) []deviceID {
	return slices.SortedFunc(maps.Keys(m), func(a, b deviceID) int { return strings.Compare(a.String(), b.String()) })
}

// newest returns the slices of the newest generation of each pool.
// Of a pool that is in the middle of a change, slices of the older generation don't count
// any more, even if the newer ones aren't complete.
func (d *Devices) newest() (out []*resourcev1.ResourceSlice) {
	last := map[deviceID]int64{}
	for _, s := range d.Slices {
		id := deviceID{driver: s.Spec.Driver, pool: s.Spec.Pool.Name}
		last[id] = max(last[id], s.Spec.Pool.Generation)
	}
	for _, s := range d.Slices {
		if s.Spec.Pool.Generation == last[deviceID{driver: s.Spec.Driver, pool: s.Spec.Pool.Name}] {
			out = append(out, s)
		}
	}
	return out
}

// published returns the devices that drivers publish for a node, or with nil for any.
func (d *Devices) published(node *v1.Node) map[deviceID]*resourcev1.Device {
	out := map[deviceID]*resourcev1.Device{}
	// Of two slices that publish one device, which the API doesn't forbid, the last counts.
	for _, s := range d.newest() {
		for i := range s.Spec.Devices {
			x := &s.Spec.Devices[i]
			there := node == nil || reaches(s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector, node)
			if p := s.Spec.PerDeviceNodeSelection; node != nil && p != nil && *p {
				there = reaches(x.NodeName, x.AllNodes, x.NodeSelector, node)
			}
			if there {
				out[deviceID{s.Spec.Driver, s.Spec.Pool.Name, x.Name}] = x
			}
		}
	}
	return out
}

// reaches reports whether what is said of nodes is true of a node.
// The arguments are the three ways in which a slice or a device may say it; only one of
// them may be set.
func reaches(name *string, all *bool, some *v1.NodeSelector, node *v1.Node) bool {
	switch {
	case name != nil && *name != "":
		return *name == node.Name
	case all != nil && *all:
		return true
	case some != nil:
		// A selector that doesn't parse selects nothing.
		ok, err := nodeaffinity.NewLazyErrorNodeSelector(some).Match(node)
		return ok && err == nil
	}
	return false
}

// checkCounters compares what the devices in use take of each set of counters with what it has.
func (d *Devices) checkCounters(taken map[deviceID]*users, published map[deviceID]*resourcev1.Device) (found []DeviceViolation) {
	// Counters are of a pool, so devices of several slices draw on the same set.
	used := map[deviceID]map[string]resource.Quantity{} // by driver, pool and counter set
	for id := range taken {
		device := published[id]
		if device == nil {
			continue
		}
		for _, c := range device.ConsumesCounters {
			set := deviceID{id.driver, id.pool, c.CounterSet}
			if used[set] == nil {
				used[set] = map[string]resource.Quantity{}
			}
			for name, counter := range c.Counters {
				sum := used[set][name]
				sum.Add(counter.Value)
				used[set][name] = sum
			}
		}
	}
	// A set that no slice publishes any more can't be exceeded, like the capacity of a
	// device that is gone.
	for _, s := range d.newest() {
		for _, c := range s.Spec.SharedCounters {
			set := deviceID{s.Spec.Driver, s.Spec.Pool.Name, c.Name}
			for _, name := range slices.Sorted(maps.Keys(used[set])) {
				if sum, has := used[set][name], c.Counters[name].Value; sum.Cmp(has) > 0 {
					found = append(found, DeviceViolation{Rule: "counters", Detail: fmt.Sprintf("the devices in use take %s of counter %s of %s, which has %s", sum.String(), name, set, has.String())})
				}
			}
		}
	}
	return found
}

// CheckReserved returns the violations of what holds of pods on nodes, each of which has its claims: they exist, have
// devices, and are reserved for the pod.
// Pods that have ended are the caller's to leave out: their claims may be released.
func (d *Devices) CheckReserved(pods []*v1.Pod) (found []DeviceViolation) {
	claims := map[string]*resourcev1.ResourceClaim{}
	for _, c := range d.Claims {
		claims[c.Namespace+"/"+c.Name] = c
	}
	for _, pod := range pods {
		// Claims made of templates have generated names, which stand in the pod's status.
		for name := range resourceclaim.PodClaims(pod) {
			name = pod.Namespace + "/" + name
			switch c := claims[name]; {
			case c == nil:
				found = append(found, DeviceViolation{name, "reserved", fmt.Sprintf("pod %s/%s is on node %s, and the claim doesn't exist", pod.Namespace, pod.Name, pod.Spec.NodeName)})
			case c.Status.Allocation == nil:
				found = append(found, DeviceViolation{name, "reserved", fmt.Sprintf("pod %s/%s is on node %s, and the claim has no devices", pod.Namespace, pod.Name, pod.Spec.NodeName)})
			case !slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID }):
				found = append(found, DeviceViolation{name, "reserved", fmt.Sprintf("pod %s/%s is on node %s, and the claim isn't reserved for it", pod.Namespace, pod.Name, pod.Spec.NodeName)})
			}
		}
	}
	return found
}

// CheckAllocation returns what is wrong with the devices that a claim was given for a pod on a node: they are published
// for it, are of the classes and what else the claim asks for, have no taint that it doesn't tolerate, and are as
// many as it asks for.
// It is called once for a new allocation, in the state in which it was made: what changes
// afterwards, such as a new taint, makes no violation of it.
func (d *Devices) CheckAllocation(c *resourcev1.ResourceClaim, node *v1.Node) (found []DeviceViolation) {
	if d.Expressions == nil {
		d.Expressions = NewExpressions()
	}
	x := &allocation{Devices: d, claim: c, published: d.published(node)}
	for i := range c.Spec.Devices.Requests {
		x.request(&c.Spec.Devices.Requests[i])
	}
	// Constraints are between requests, so all devices must be known first.
	x.constraints()
	if s := c.Status.Allocation.NodeSelector; s != nil {
		if ok, err := nodeaffinity.NewLazyErrorNodeSelector(s).Match(node); !ok || err != nil {
			x.add("place", "the node selector of its devices doesn't match node %s (%v)", node.Name, err)
		}
	}
	return x.found
}

// allocation is one look at a claim with devices.
// Its violations are collected in found, so that each check reports all it finds.
type allocation struct {
	*Devices
	claim     *resourcev1.ResourceClaim
	published map[deviceID]*resourcev1.Device
	found     []DeviceViolation
}

func (x *allocation) add(rule, format string, args ...any) {
	x.found = append(x.found, DeviceViolation{x.claim.Namespace + "/" + x.claim.Name, rule, fmt.Sprintf(format, args...)})
}

// results returns what was given for a request.
// For an alternative the request's name is request/alternative.
func (x *allocation) results(request string) (out []*resourcev1.DeviceRequestAllocationResult) {
	for i := range x.claim.Status.Allocation.Devices.Results {
		if r := &x.claim.Status.Allocation.Devices.Results[i]; r.Request == request {
			out = append(out, r)
		}
	}
	return out
}

// request checks what was given for a request, or for one of its alternatives.
func (x *allocation) request(r *resourcev1.DeviceRequest) {
	if e := r.Exactly; e != nil {
		x.devices(r.Name, e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count, e.Tolerations)
		return
	}
	// Alternatives are in order of preference, but which one was possible can't be told
	// afterwards: what is checked is that exactly one was chosen.
	chosen := 0
	for i := range r.FirstAvailable {
		s := &r.FirstAvailable[i]
		name := r.Name + "/" + s.Name
		if len(x.results(name)) > 0 {
			chosen++
			x.devices(name, s.DeviceClassName, s.Selectors, s.AllocationMode, s.Count, s.Tolerations)
		}
	}
	if chosen != 1 {
		x.add("count", "request %s has devices for %d of its alternatives, want 1", r.Name, chosen)
	}
}

// devices checks the devices that were given for one request.
// The arguments are the fields that a request and an alternative have in common.
func (x *allocation) devices(request, class string, selectors []resourcev1.DeviceSelector, mode resourcev1.DeviceAllocationMode, count int64, tolerations []resourcev1.DeviceToleration) {
	results := x.results(request)
	switch n := int64(len(results)); {
	case mode == resourcev1.DeviceAllocationModeAll && n == 0:
		x.add("count", "request %s asks for all devices and has none", request)
	case mode != resourcev1.DeviceAllocationModeAll && n != max(count, 1):
		// The API's default for the count is 1.
		x.add("count", "request %s has %d devices, want %d", request, n, max(count, 1))
	}
	at := slices.IndexFunc(x.Classes, func(c *resourcev1.DeviceClass) bool { return c.Name == class })
	if at < 0 {
		x.add("class", "request %s has devices, and class %s doesn't exist", request, class)
		return
	}
	// A device must satisfy the class and the request, all expressions of both.
	selectors = slices.Concat(x.Classes[at].Spec.Selectors, selectors)
	for _, r := range results {
		device := x.published[idOf(r)]
		if device == nil {
			x.add("published", "device %s isn't published for the node", idOf(r))
			continue
		}
		for _, s := range selectors {
			if ok, err := matchesCEL(x.Expressions, s, r.Driver, device); !ok || err != nil {
				x.add("class", "device %s of request %s isn't one for which %q is true (%v)", idOf(r), request, s.CEL.Expression, err)
			}
		}
		for _, t := range x.taints(r, device) {
			if !slices.ContainsFunc(tolerations, func(tol resourcev1.DeviceToleration) bool { return resourceclaim.ToleratesTaint(tol, t) }) {
				x.add("taint", "device %s has taint %s:%s, which request %s doesn't tolerate", idOf(r), t.Key, t.Effect, request)
			}
		}
	}
}

// taints returns the taints of a device that keep claims away, those of rules included.
func (x *allocation) taints(r *resourcev1.DeviceRequestAllocationResult, device *resourcev1.Device) (out []resourcev1.DeviceTaint) {
	out = slices.Clone(device.Taints)
	// A rule's selector leaves out what doesn't matter to it; nil there matches every
	// device.
	is := func(want *string, value string) bool { return want == nil || *want == value }
	for _, rule := range x.Rules {
		if s := rule.Spec.DeviceSelector; s != nil && is(s.Driver, r.Driver) && is(s.Pool, r.Pool) && is(s.Device, r.Device) {
			out = append(out, rule.Spec.Taint)
		}
	}
	return slices.DeleteFunc(out, func(t resourcev1.DeviceTaint) bool { return t.Effect == resourcev1.DeviceTaintEffectNone })
}

// matchesCEL reports whether an expression is true of a device.
func matchesCEL(expressions *cel.Cache, s resourcev1.DeviceSelector, driver string, d *resourcev1.Device) (bool, error) {
	compiled := expressions.GetOrCompile(s.CEL.Expression)
	if compiled.Error != nil {
		return false, compiled.Error
	}
	ok, _, err := compiled.DeviceMatches(context.Background(), cel.Device{Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity})
	return ok, err
}

// constraints checks that devices share an attribute where the claim says so.
// The other kind, distinctAttribute, isn't checked.
func (x *allocation) constraints() {
	for i := range x.claim.Spec.Devices.Constraints {
		k := &x.claim.Spec.Devices.Constraints[i]
		if k.MatchAttribute == nil {
			continue
		}
		var first *resourcev1.DeviceAttribute
		for j := range x.claim.Status.Allocation.Devices.Results {
			r := &x.claim.Status.Allocation.Devices.Results[j]
			device := x.published[idOf(r)]
			// A constraint names requests, or alternatives of them; one that names none is
			// for all.
			if base, _, _ := strings.Cut(r.Request, "/"); device == nil || len(k.Requests) > 0 && !slices.Contains(k.Requests, r.Request) && !slices.Contains(k.Requests, base) {
				continue
			}
			value := attribute(device, r.Driver, string(*k.MatchAttribute))
			// The first device gives the value. Without the attribute it is a violation by
			// itself.
			if first == nil {
				first = value
			}
			if value == nil || !apiequality.Semantic.DeepEqual(first, value) {
				x.add("constraint", "device %s has another %s than the others, or none", idOf(r), *k.MatchAttribute)
			}
		}
	}
}

// attribute returns an attribute of a device by its full name; nil when it has none.
// Drivers may leave out their own domain when they publish an attribute; both spellings
// mean the same.
func attribute(d *resourcev1.Device, driver, name string) *resourcev1.DeviceAttribute {
	if a, ok := d.Attributes[resourcev1.QualifiedName(name)]; ok {
		return &a
	}
	if short, ok := strings.CutPrefix(name, driver+"/"); ok {
		if a, ok := d.Attributes[resourcev1.QualifiedName(short)]; ok {
			return &a
		}
	}
	return nil
}
