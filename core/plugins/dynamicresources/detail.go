package dynamicresources

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/framework"
)

// This file tells people what the devices of a node lack. kube-scheduler says no more than that not all
// claims can be allocated.

var _ framework.Detailer = &rule{}

// Detail implements framework.Detailer: it names the first request for which a node has too few devices,
// and what is against those that it has.
func (r *rule) Detail(n *cluster.Node) string {
	v := r.on(n)
	if v.question == 0 {
		return r.elsewhere(n)
	}
	switch a := r.ask(v, n); {
	case a.Fits:
		return r.elsewhere(n)
	case a.Over != (devices.Excess{}):
		return a.Over.Reason(v.claims) // to judge each device might cost as much again
	}
	for _, c := range v.claims {
		for i := range c.Spec.Devices.Requests {
			if why := r.shortOf(n, &c.Spec.Devices.Requests[i]); why != "" {
				return fmt.Sprintf("claim %s, request %s: %s", c.Name, c.Spec.Devices.Requests[i].Name, why)
			}
		}
	}
	return "for each request alone there are devices; constraints, capacity, counters or other requests keep them from being had together"
}

// elsewhere says which claim has devices that the node can't use.
func (r *rule) elsewhere(n *cluster.Node) string {
	for i, c := range r.had {
		if !r.places[i].rejects(n.Object) {
			continue
		}
		text := fmt.Sprintf("claim %s has %s", c.Name, strings.Join(DevicesOf(c), ", "))
		if r.places[i].unready {
			return text + ", which failed or didn't become ready in time"
		}
		return text + ", not on this node"
	}
	return ""
}

// DevicesOf returns the devices that a claim has, as driver/pool/device, in the order of its requests.
func DevicesOf(c *resourcev1.ResourceClaim) (out []string) {
	if c.Status.Allocation == nil {
		return nil
	}
	for i := range c.Status.Allocation.Devices.Results {
		x := &c.Status.Allocation.Devices.Results[i]
		out = append(out, x.Driver+"/"+x.Pool+"/"+x.Device)
	}
	return out
}

// shortOf says why a node has too few devices for a request, "" when it has enough, looked at one by one.
func (r *rule) shortOf(n *cluster.Node, q *resourcev1.DeviceRequest) string {
	if x := q.Exactly; x != nil {
		return r.shortOfClass(n, x.DeviceClassName, x.Count, &devices.Wanted{Selectors: x.Selectors, Tolerations: x.Tolerations}, x.AdminAccess != nil && *x.AdminAccess)
	}
	var all []string
	for i := range q.FirstAvailable {
		x := &q.FirstAvailable[i]
		why := r.shortOfClass(n, x.DeviceClassName, x.Count, &devices.Wanted{Selectors: x.Selectors, Tolerations: x.Tolerations}, false)
		if why == "" {
			return ""
		}
		all = append(all, x.Name+": "+why)
	}
	return strings.Join(all, "; or ")
}

// shortOfClass says why a node has fewer devices of a class than wanted. A count of 0 stands for all,
// of which there must be one, and none may be taken.
func (r *rule) shortOfClass(n *cluster.Node, class string, count int64, w *devices.Wanted, admin bool) string {
	if w.Class = r.state.DeviceClass(class); w.Class == nil {
		return ""
	}
	all := r.state.Devices().Judge(indexOf(n, r.state), n.Object, w)
	taken, free := 0, 0
	against := map[string][]string{} // devices, by what is against them
	for i := range all {
		switch d := &all[i]; {
		case d.Broken != "":
			against["pool "+d.Broken] = append(against["pool "+d.Broken], d.Device.Name)
		case d.Taken && !admin:
			taken++
		case d.Failed != nil:
			against["match "+d.Failed.Expression] = append(against["match "+d.Failed.Expression], d.Device.Name+valuesOf(d))
		case d.Taint != nil:
			t := d.Taint.Key + "=" + d.Taint.Value + ":" + string(d.Taint.Effect)
			against["tolerate "+t] = append(against["tolerate "+t], d.Device.Name)
		default:
			free++
		}
	}
	if len(all) > 0 && (count > 0 && int64(free) >= count || count == 0 && free > 0 && taken == 0) {
		return ""
	}
	return shortage(class, count, len(all), taken, free, against)
}

// shortage words what shortOfClass has found.
func shortage(class string, count int64, all, taken, free int, against map[string][]string) string {
	if all == 0 {
		return "there is no device of class " + class
	}
	parts := []string{fmt.Sprintf("%d of %s of class %s taken", taken, plural(all, "device"), class)}
	if free > 0 && count > 0 {
		parts = append(parts, fmt.Sprintf("%d free, %d wanted", free, count))
	}
	for _, what := range slices.Sorted(maps.Keys(against)) {
		kind, of, _ := strings.Cut(what, " ")
		switch names := list(against[what]); kind {
		case "match":
			parts = append(parts, names+": no match of "+of)
		case "pool":
			parts = append(parts, names+": can't be allocated, "+of)
		default:
			parts = append(parts, names+": the taint "+of+" isn't tolerated")
		}
	}
	return strings.Join(parts, "; ")
}

// listed is how many devices are named at most.
const listed = 3

// list lists names.
func list(names []string) string {
	if len(names) <= listed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:listed], ", "), len(names)-listed)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// valuesOf returns the attributes and capacities of a device that the selector which it doesn't match
// names: " (driverVersion 1.2)"; "" for none.
func valuesOf(d *devices.Judged) string {
	var out []string
	add := func(name, value string) {
		if _, short, ok := strings.Cut(name, "/"); ok {
			name = short
		}
		if strings.Contains(d.Failed.Expression, name) {
			out = append(out, name+" "+value)
		}
	}
	for name, a := range d.Device.Attributes {
		add(string(name), attributeText(&a))
	}
	for name, c := range d.Device.Capacity {
		add(string(name), c.Value.String())
	}
	if out == nil {
		return ""
	}
	slices.Sort(out)
	return " (" + strings.Join(out, ", ") + ")"
}

// attributeText returns the value of an attribute; "" of a list.
func attributeText(a *resourcev1.DeviceAttribute) string {
	switch {
	case a.IntValue != nil:
		return fmt.Sprint(*a.IntValue)
	case a.BoolValue != nil:
		return fmt.Sprint(*a.BoolValue)
	}
	none := new(string)
	return *cmp.Or(a.StringValue, a.VersionValue, none)
}
