package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/sim/scenario"
)

// This file specifies devices, their classes and claims in scenarios: which objects they stand for, and what is refused.

func TestBadDevicesNameLineFieldAndRemedy(t *testing.T) {
	const pods = "count: 1, template: {spec: {containers: [{name: c}]}}}]\n"
	claim := func(text string) string { return head + "  workload: [{name: w, claims: [" + text + "], " + pods }
	devices := func(text string) string {
		return head + "  nodes: [{name: n, template: {allocatable: {cpu: 1, memory: 1Gi, pods: 1}}, devices: [" + text + "]}]\n"
	}
	for _, c := range []struct{ text, want string }{
		{devices("{driver: UPPER}"), `s.yaml:4: spec.nodes[0].devices[0].driver: is "UPPER"; it must be a DNS name of at most 63 characters, such as gpu.example.com`},
		{devices("{driver: a.b, counter: {}}"), `s.yaml:4: spec.nodes[0].devices[0].counter: unknown field "counter"`},
		{devices("{driver: a.b, capacity: {memory: {value: much}}}"), `s.yaml:4: spec.nodes[0].devices[0].capacity.memory.value: "much" is not a quantity`},
		{strings.Replace(head+group, "max: 3", "max: 3\n    devices: [{driver: a.b, count: -2}]", 1), "s.yaml:7: spec.nodeGroups[0].devices[0].count: is -2; it must not be negative"},
		{strings.Replace(head+group, "max: 3", "max: 3\n    devicesAfter: {min: 3s, max: 2s}", 1), "s.yaml:7: spec.nodeGroups[0].devicesAfter: is 3s to 2s; it must be a range"},
		{head + "  deviceClasses: [{name: Gpu!}]\n", `s.yaml:4: spec.deviceClasses[0].name: "Gpu!" is not a valid name`},
		{head + "  deviceClasses: [{name: a}, {name: a}]\n", `s.yaml:4: spec.deviceClasses[1].name: "a" is given twice; names must be unique`},
		{head + "  deviceClasses: [{name: a, selectors: ['device.model =']}]\n", `s.yaml:4: spec.deviceClasses[0].selectors[0]: is "device.model ="; it must be a CEL expression over device: `},
		{claim("{class: a}"), `s.yaml:4: spec.workload[0].claims[0].name: "" is not a valid name`},
		{claim("{name: a}"), "s.yaml:4: spec.workload[0].claims[0].class: is empty; set class, firstAvailable or spec"},
		{claim("{name: a, class: g}, {name: a, class: g}"), `s.yaml:4: spec.workload[0].claims[1].name: "a" is given twice; names must be unique`},
		{claim("{name: a, class: g, count: 100}"), "s.yaml:4: spec.workload[0].claims[0].count: is 100; it must be from 0 to 32"},
		{claim("{name: a, class: g, count: 2, all: true}"), "s.yaml:4: spec.workload[0].claims[0].all: is true, and count 2; remove one of them"},
		{claim("{name: a, class: g, selectors: ['1 + 1']}"), `s.yaml:4: spec.workload[0].claims[0].selectors[0]: is "1 + 1"; it must be a CEL expression over device: must evaluate to bool`},
		{claim("{name: a, class: g, capacity: {memory: -1}}"), "s.yaml:4: spec.workload[0].claims[0].capacity.memory: is -1; it must not be negative"},
		{claim("{name: a, class: g, firstAvailable: [{class: h}]}"), `s.yaml:4: spec.workload[0].claims[0].class: is "g", and there is firstAvailable; remove one of them`},
		{claim("{name: a, firstAvailable: [{count: 1}]}"), `s.yaml:4: spec.workload[0].claims[0].firstAvailable[0].class: "" is not a valid name`},
		{claim("{name: a, class: g, spec: {devices: {}}}"), "s.yaml:4: spec.workload[0].claims[0].spec: says what is claimed, and so does class or firstAvailable; remove one of them"},
		{claim("{name: a, spec: {devices: {}}}"), "s.yaml:4: spec.workload[0].claims[0].spec: has no devices.requests; it needs at least one"},
	} {
		_, err := scenario.Parse("s.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant …%s…", c.text, err, c.want)
		}
	}
}

const withDevices = `  deviceClasses:
  - {name: gpu, driver: gpu.example.com, selectors: ['device.attributes["gpu.example.com"].model == "a"'], extendedResourceName: example.com/gpu}
  nodes:
  - name: n
    count: 2
    template: {allocatable: {cpu: "1", memory: 1Gi, pods: "1"}}
    devices: [{driver: gpu.example.com, count: 2}]
  workload:
  - name: w
    copies: 2
    count: 2
    claims:
    - {name: own, class: gpu, count: 2, sameAttribute: gpu.example.com/numa}
    - {name: all, class: gpu, all: true, shared: true}
    - {name: either, firstAvailable: [{class: gpu}, {class: gpu, count: 3}]}
    - {name: raw, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, adminAccess: true}}]}}}
    template: {spec: {containers: [{name: c}]}}
`

// claimed returns the objects of a run of a type, those that come later included.
func claimed[O runtime.Object](r *scenario.Run) (out []O) {
	all := r.Objects
	for _, a := range r.Arrivals {
		all = append(all, a.Objects...)
	}
	for _, obj := range all {
		if o, ok := obj.(O); ok {
			out = append(out, o)
		}
	}
	return out
}

func TestDevicesInShortStandForObjects(t *testing.T) {
	r, err := scenario.Parse("s.yaml", []byte(head+withDevices))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range claimed[*resourcev1.DeviceClass](r) {
		got = append(got, fmt.Sprintf("class %s of %s: %s, %s", c.Name, *c.Spec.ExtendedResourceName, c.Spec.Selectors[0].CEL.Expression, c.Spec.Selectors[1].CEL.Expression))
	}
	for _, s := range claimed[*resourcev1.ResourceSlice](r) {
		got = append(got, fmt.Sprintf("slice %s of %s: %d devices", s.Name, *s.Spec.NodeName, len(s.Spec.Devices)))
	}
	spec := func(s *resourcev1.ResourceClaimSpec) string {
		raw, err := yaml.Marshal(s.Devices)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(raw)), " ")
	}
	for _, x := range claimed[*resourcev1.ResourceClaimTemplate](r)[:3] {
		got = append(got, fmt.Sprintf("template %s/%s: %s", x.Namespace, x.Name, spec(&x.Spec.Spec)))
	}
	for _, x := range claimed[*resourcev1.ResourceClaim](r) {
		got = append(got, fmt.Sprintf("claim %s/%s: %s", x.Namespace, x.Name, spec(&x.Spec)))
	}
	pods := claimed[*v1.Pod](r)
	for _, c := range pods[3].Spec.ResourceClaims[:2] {
		raw, _ := yaml.Marshal(c)
		got = append(got, pods[3].Name+": "+strings.Join(strings.Fields(string(raw)), " "))
	}
	want := []string{
		`class gpu of example.com/gpu: device.driver == "gpu.example.com", device.attributes["gpu.example.com"].model == "a"`,
		"slice n-0-0-000 of n-0: 2 devices",
		"slice n-1-0-000 of n-1: 2 devices",
		"template default/w-0-own: constraints: - matchAttribute: gpu.example.com/numa requests: - exactly: allocationMode: ExactCount count: 2 deviceClassName: gpu name: own",
		"template default/w-0-either: requests: - firstAvailable: - allocationMode: ExactCount count: 1 deviceClassName: gpu name: choice-0 - allocationMode: ExactCount count: 3 deviceClassName: gpu name: choice-1 name: either",
		"template default/w-0-raw: requests: - exactly: adminAccess: true deviceClassName: gpu name: r",
		"claim default/w-0-all: requests: - exactly: allocationMode: All deviceClassName: gpu name: all",
		"claim default/w-1-all: requests: - exactly: allocationMode: All deviceClassName: gpu name: all",
		"w-1-1: name: own resourceClaimTemplateName: w-1-own",
		"w-1-1: name: all resourceClaimName: w-1-all",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// TestDevicesMayProvideWhatATemplateLacks checks that no group is said to fit no pod because of an extended resource that a
// device class backs.
func TestDevicesMayProvideWhatATemplateLacks(t *testing.T) {
	text := head + group + "  deviceClasses: [{name: gpu, extendedResourceName: example.com/gpu}]\n" +
		"  workload: [{name: w, count: 2, template: {spec: {containers: [{name: c, resources: {requests: {%s: 1}}}]}}}]\n"
	for name, want := range map[string]int{"example.com/gpu": 0, "deviceclass.resource.kubernetes.io/gpu": 0, "example.com/other": 1} {
		r, err := scenario.Parse("s.yaml", []byte(fmt.Sprintf(text, name)))
		if err != nil || len(r.Notes) != want {
			t.Errorf("%s: %v, notes %v, want %d", name, err, r.Notes, want)
		}
	}
}
