package scaleup_test

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// This file has the commands of the scripts about devices:
//
//	device-class NAME [backs=RESOURCE] [model=M]                   of the devices of gpu.example.com, or those of a model
//	publish NODE count=N [driver=gpu.example.com] [of=1] [model=a] [taint=KEY]    a node's devices; of: slices of the pool, of which this is one
//	withdraw NODE                                                  all that drivers have published on it
//
// Groups have the arguments declared=N, devices that somebody declares, and driver=NAME. Pods have
// devices=N, each of which has a claim of its own for so many; model=M; claim=NAME, one for all.

const gpuDriver = "gpu.example.com"

// slice returns a slice of count devices.
func slice(name, driver, node, model, taint string, count int) *testkit.ResourceSliceBuilder {
	b := testkit.ResourceSlice(name, driver, "pool-of-"+node).OnNode(node)
	for i := range count {
		d := testkit.Device(fmt.Sprint("gpu-", i)).Attr("model", model)
		if taint != "" {
			d.Taint(taint, "", resourcev1.DeviceTaintEffectNoSchedule)
		}
		b.Devices(d)
	}
	return b
}

// runDevices runs a command about devices, and reports whether it is one.
func (f *fixture) runDevices(cmd string, args *script.Args) bool {
	switch cmd {
	case "device-class":
		class := testkit.DeviceClass(args.Name(), args.String("backs", ""))
		class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", gpuDriver)}}}
		if model := args.String("model", ""); model != "" {
			class.Spec.Selectors = append(class.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.attributes[%q].model == %q", gpuDriver, model)}})
		}
		f.state.SetObject(class)
	case "publish":
		node, driver := args.Name(), args.String("driver", gpuDriver)
		b := slice(node+"-"+driver, driver, node, args.String("model", "a"), args.String("taint", ""), args.Int("count", 0))
		f.state.SetObject(b.Of(int64(args.Int("of", 1))).Obj())
	case "withdraw":
		for _, driver := range f.state.Devices().DriversOn(args.Name()) {
			for _, s := range f.state.Devices().SlicesOn(args.Name(), driver) {
				f.state.RemoveObject(cluster.ResourceSliceKind, "", s.Name)
			}
		}
	default:
		return false
	}
	f.see()
	return true
}

// declared returns what somebody declares of a group's devices.
func declared(args *script.Args) *devices.Template {
	driver, count := args.String("driver", gpuDriver), args.Int("declared", 0)
	if count == 0 {
		return nil
	}
	s := slice("", driver, "", "a", "", count).Obj()
	s.Spec.NodeName = nil
	return devices.NewTemplate([]resourcev1.ResourceSlice{*s})
}

// see remembers which devices nodes of groups have, as the core does.
func (f *fixture) see() {
	now := map[string][]autoscaler.SeenDevices{}
	f.state.Nodes(func(n *cluster.Node) {
		for _, driver := range f.state.Devices().DriversOn(n.Name) {
			p := f.state.Devices().PublishedOn(n.Name, driver)
			if p == nil || n.Group == "" || !n.Ready() {
				continue
			}
			now[n.Group] = slices.DeleteFunc(now[n.Group], func(x autoscaler.SeenDevices) bool { return x.Driver == driver })
			now[n.Group] = append(now[n.Group], autoscaler.SeenDevices{Published: p, Live: true})
		}
	})
	for group, before := range f.seen {
		for _, x := range before {
			if !slices.ContainsFunc(now[group], func(y autoscaler.SeenDevices) bool { return x.Driver == y.Driver }) {
				x.Live = false
				now[group] = append(now[group], x)
			}
		}
	}
	for _, list := range now {
		slices.SortFunc(list, func(a, b autoscaler.SeenDevices) int { return strings.Compare(a.Driver, b.Driver) })
	}
	f.seen = now
}

// showDevices puts what is remembered into the conditions of groups.
func (f *fixture) showDevices() {
	for id, list := range f.seen {
		c := f.req.Conditions[id]
		c.Devices = list
		f.req.Conditions[id] = c
	}
}

// claimDevices lets a pod claim what the arguments of its command say.
func (f *fixture) claimDevices(args *script.Args, b *testkit.PodBuilder) {
	count, name, model := args.Int("devices", 0), args.String("claim", ""), args.String("model", "")
	if count == 0 && name == "" {
		return
	}
	c := testkit.ResourceClaim(b.Name+"-gpus", testkit.Request("gpus", "gpu")).Obj()
	if model != "" {
		c.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.attributes[%q].model == %q", gpuDriver, model)}}}
	}
	c.Spec.Devices.Requests[0].Exactly.Count = int64(max(count, 1))
	if name != "" {
		c.Name = name
	} else {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: b.Name, UID: b.UID, Controller: new(true)}}
	}
	f.state.SetObject(c)
	b.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &c.Name}}
}
