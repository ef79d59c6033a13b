package simulateddevices_test

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/internal/simulateddevices"
)

// This file specifies which slices descriptions stand for, and which descriptions are refused.

const divided = `
- driver: gpu.example.com
  name: gpu
  count: 2
  attributes: {model: {string: a100}}
  capacity: {memory: {value: 80Gi}}
  counters: {memory: 80Gi, slices: "7"}
  partitions:
  - {name: half, count: 2, counters: {memory: 40Gi, slices: "3"}, attributes: {profile: {string: half}}, capacity: {memory: {value: 40Gi}}}
- {driver: nic.example.com, pool: fast, shared: true, capacity: {bandwidth: {value: 100G}}}
`

func read(t *testing.T, text string) (out []simulateddevices.Devices) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSlicesHaveCountersBeforeDevicesAndAPoolForEachDriver(t *testing.T) {
	out := simulateddevices.Slices(read(t, divided), "n1", 3)
	var lines []string
	for _, s := range out {
		line := fmt.Sprintf("%s %s pool %s generation %d of %d on %s:", s.Name, s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount, *s.Spec.NodeName)
		for _, c := range s.Spec.SharedCounters {
			line += " counters " + c.Name
		}
		for _, d := range s.Spec.Devices {
			line += " " + d.Name
		}
		lines = append(lines, line)
	}
	want := []string{
		"n1-0-000 gpu.example.com pool n1 generation 3 of 2 on n1: counters gpu-0 counters gpu-1",
		"n1-0-001 gpu.example.com pool n1 generation 3 of 2 on n1: gpu-0 gpu-0-half-0 gpu-0-half-1 gpu-1 gpu-1-half-0 gpu-1-half-1",
		"n1-1-000 nic.example.com pool n1/fast generation 3 of 1 on n1: device",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	whole, half := out[1].Spec.Devices[0], out[1].Spec.Devices[1]
	is := func(d *resourcev1.Device, counter, want string) bool {
		got := d.ConsumesCounters[0].Counters[counter].Value
		return got.Cmp(resource.MustParse(want)) == 0
	}
	if !is(&whole, "memory", "80Gi") || !is(&half, "memory", "40Gi") || half.ConsumesCounters[0].CounterSet != "gpu-0" {
		t.Errorf("the whole device takes %v and a half %v, want all of gpu-0's counters and what the partition says", whole.ConsumesCounters, half.ConsumesCounters)
	}
	if *half.Attributes["model"].StringValue != "a100" || *half.Attributes["profile"].StringValue != "half" || whole.Attributes["profile"].StringValue != nil {
		t.Errorf("a half has attributes %v and its device %v, want the device's and its own", half.Attributes, whole.Attributes)
	}
	if a := out[2].Spec.Devices[0].AllowMultipleAllocations; a == nil || !*a {
		t.Error("a shared device can't be allocated several times")
	}
}

func TestManyDevicesAreInSeveralSlices(t *testing.T) {
	out := simulateddevices.Slices(read(t, `[{driver: d.example.com, count: 130}]`), "n", 1)
	if len(out) != 3 || len(out[2].Spec.Devices) != 2 || out[0].Spec.Pool.ResourceSliceCount != 3 {
		t.Errorf("130 devices are in %d slices of a count of %d, want 3", len(out), out[0].Spec.Pool.ResourceSliceCount)
	}
}

func TestValidateNamesFieldValueAndRemedy(t *testing.T) {
	if list := read(t, divided); len(refused(list)) > 0 {
		t.Errorf("a good description is refused: %q", refused(list))
	}
	for text, want := range map[string]string{
		`[{driver: ""}]`:                                                               `devices[0].driver is ""; it must be a DNS name`,
		`[{driver: a.b, count: -1}]`:                                                   `devices[0].count is -1; it must not be negative`,
		`[{driver: a.b, count: 20000}]`:                                                `devices[0].count makes 20000 devices of a node, with their partitions; they must be at most 10000`,
		`[{driver: a.b, name: GPU}]`:                                                   `devices[0].name is "GPU"; it must be at most 40 lower-case letters`,
		`[{driver: a.b, pool: x/y}]`:                                                   `devices[0].pool is "x/y"; it must be`,
		`[{driver: a.b}, {driver: a.b}]`:                                               `devices[1].name "device" is given twice in a pool`,
		`[{driver: a.b, counters: {m: -1}}]`:                                           `devices[0].counters.m is -1; it must not be negative`,
		`[{driver: a.b, partitions: [{name: h, counters: {}}]}]`:                       `devices[0].partitions[0].counters is empty`,
		`[{driver: a.b, partitions: [{counters: {m: 1}}]}]`:                            `devices[0].partitions[0].name is empty`,
		`[{driver: a.b, counters: {m: 1}, partitions: [{name: h, counters: {m: 2}}]}]`: `devices[0].partitions[0].counters.m is 2; it must be from 0 to what the device has of that counter (1)`,
	} {
		if got := refused(read(t, text)); !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func refused(list []simulateddevices.Devices) (out []string) {
	simulateddevices.Validate(list, "devices", func(field, format string, args ...any) {
		out = append(out, field+" "+fmt.Sprintf(format, args...))
	})
	return out
}
