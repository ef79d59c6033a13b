package devices_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "pgregory.net/rapid" // so that the flags with which mutants are run are known here

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/devices"
)

// tainted returns the slice of a node's pool, of whose devices the first have taints.
func tainted(node string, count int, taints ...string) *resourcev1.ResourceSlice {
	s := published(node, count)
	for i, key := range taints {
		s.Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: key, Effect: resourcev1.DeviceTaintEffectNoSchedule, TimeAdded: &metav1.Time{}}}
	}
	return s
}

// part returns one of the slices of a pool.
func part(node, name string, generation, of int64, count int) *resourcev1.ResourceSlice {
	s := published(node, count)
	s.Name = node + name
	s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = generation, of
	return s
}

// TestWhatIsPublishedSaysWhatOtherNodesWillHave: nodes that have the same devices publish the same, but
// for names, generations and what is true of some devices at the moment. Of a pool that isn't whole
// nothing is known.
func TestWhatIsPublishedSaysWhatOtherNodesWillHave(t *testing.T) {
	two := []*resourcev1.ResourceSlice{published("a", 2)}
	for _, x := range []struct {
		name string
		list []*resourcev1.ResourceSlice
		is   string
	}{
		{"another node's", []*resourcev1.ResourceSlice{published("b", 2)}, "same"},
		{"a later generation", []*resourcev1.ResourceSlice{part("b", "-x", 7, 1, 2)}, "same"},
		{"with an older slice", []*resourcev1.ResourceSlice{part("b", "-x", 7, 1, 2), part("b", "-old", 6, 1, 5)}, "same"},
		{"one device is tainted", []*resourcev1.ResourceSlice{tainted("b", 2, "broken")}, "same"},
		{"two are for other reasons", []*resourcev1.ResourceSlice{tainted("b", 2, "broken", "kept")}, "same"},
		{"all are tainted alike", []*resourcev1.ResourceSlice{tainted("b", 2, "kept", "kept")}, "other"},
		{"another number of devices", []*resourcev1.ResourceSlice{published("b", 3)}, "other"},
		{"the same in two slices", []*resourcev1.ResourceSlice{part("b", "-x", 1, 2, 1), part("b", "-y", 1, 2, 1)}, "other"},
		{"a slice is missing", []*resourcev1.ResourceSlice{part("b", "-x", 1, 2, 2)}, "nothing"},
		{"a slice of a later generation is missing", []*resourcev1.ResourceSlice{published("b", 2), part("b", "-x", 1, 2, 2)}, "nothing"},
		{"nothing", nil, "nothing"},
	} {
		before := fmt.Sprintf("%v", x.list)
		got := devices.NewPublished("gpu.example", x.list)
		is := "other"
		if got == nil {
			is = "nothing"
		} else if got.Same(devices.NewPublished("gpu.example", two)) {
			is = "same"
		}
		if is != x.is {
			t.Errorf("%s: it is %s as two devices, want %s", x.name, is, x.is)
		}
		if after := fmt.Sprintf("%v", x.list); after != before {
			t.Errorf("%s: it was changed: %s, was %s", x.name, after, before)
		}
	}
}

// TestDevicesOfNewNodesAreOneContent puts what a node publishes on others: they have one content, and
// have published what they are to have. A set of counters is one device.
func TestDevicesOfNewNodesAreOneContent(t *testing.T) {
	list := nodes{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, {ObjectMeta: metav1.ObjectMeta{Name: "y"}}, {ObjectMeta: metav1.ObjectMeta{Name: "z"}}}
	v := devices.NewInventory(list, devices.Features(compat.V37))
	counted := part("z", "-y", 1, 2, 3)
	for i := range counted.Spec.Devices {
		counted.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "memory"}}
	}
	counters := part("z", "-x", 1, 2, 0)
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "memory"}}
	nic := published("z", 2)
	nic.Name, nic.Spec.Pool.Name = "nics", "nics-of-z"
	shown := devices.NewPublished("gpu.example", []*resourcev1.ResourceSlice{counters, counted, nic})
	if shown.Devices != 3 {
		t.Errorf("there are %d devices, want a set of counters and two", shown.Devices)
	}
	for _, n := range list[:2] {
		if v.Publishes(n.Name, shown) {
			t.Errorf("%s publishes what isn't there", n.Name)
		}
		for i, s := range shown.On(n.Name) {
			if v.SetSlice(s, nil); i == 0 && v.Publishes(n.Name, shown) {
				t.Errorf("%s publishes all with its first slice", n.Name)
			}
		}
		v.Settle()
		if !v.Publishes(n.Name, shown) || !shown.Same(v.PublishedOn(n.Name, "gpu.example")) {
			t.Errorf("%s publishes something else", n.Name)
		}
	}
	if a, b := v.Content(0), v.Content(1); a == 0 || a != b {
		t.Errorf("the contents are %d and %d, want one", a, b)
	}
	if v.Content(2) != 0 {
		t.Error("a node has devices that nobody has published")
	}
}

// TestPoolsOfSeveralNodesAreNoNodesOwn: what a pool has that other nodes see, too, says nothing about new
// nodes.
func TestPoolsOfSeveralNodesAreNoNodesOwn(t *testing.T) {
	v := devices.NewInventory(nodes{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}, devices.Features(compat.V37))
	one, other := part("a", "-x", 1, 2, 1), part("b", "-x", 1, 2, 1)
	one.Spec.Pool.Name, other.Spec.Pool.Name = "rack", "rack"
	v.SetSlice(one, nil)
	v.SetSlice(other, nil)
	v.Settle()
	if p := v.PublishedOn("a", "gpu.example"); p != nil {
		t.Errorf("the node has %+v to itself", p)
	}
}

// TestCountingDevicesAsksTheLibraryOnce takes claims from the devices of a node that is in no state, and
// from those of another like it.
func TestCountingDevicesAsksTheLibraryOnce(t *testing.T) {
	v := devices.NewInventory(nodes{}, devices.Features(compat.V37))
	shown := devices.NewPublished("gpu.example", []*resourcev1.ResourceSlice{published("z", 5)})
	wants := []*resourcev1.ResourceClaim{claim("c", 2)}
	q := v.Question([]byte("two"))
	for _, name := range []string{"x", "y"} {
		for _, s := range shown.On(name) {
			v.SetSlice(s, nil)
		}
		v.Settle()
		next, count := v.LooseOf(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}), 0
		for ; next != nil; count++ {
			next = v.Take(next, q, wants, gpus, devices.How{Steps: 1000})
		}
		if count--; count != 2 {
			t.Errorf("%d claims for two of five devices have some on %s, want 2", count, name)
		}
	}
	if v.Asks() != 3 {
		t.Errorf("the library was asked %d times for two nodes that are alike, want 3", v.Asks())
	}
}

// TestWhatIsRememberedOfDevicesStays has a node's devices go, come back tainted, and be as they were again:
// what was found of them before holds then, and not in between.
func TestWhatIsRememberedOfDevicesStays(t *testing.T) {
	v := devices.NewInventory(nodes{}, devices.Features(compat.V37))
	driver := "gpu.example"
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &driver}, Taint: resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
	q := v.Question([]byte("one"))
	count := func(want int) {
		t.Helper()
		v.Settle()
		next, n := v.LooseOf(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), 0
		for ; next != nil; n++ {
			next = v.Take(next, q, []*resourcev1.ResourceClaim{claim("c", 1)}, gpus, devices.How{Steps: 1000})
		}
		if n-1 != want {
			t.Errorf("%d devices are counted, want %d", n-1, want)
		}
	}
	first, again := published("a", 3), published("a", 3)
	v.SetSlice(first, nil)
	count(3)
	v.SetRule(rule, nil)
	count(0)
	v.SetSlice(nil, first)
	v.SetRule(nil, rule)
	v.SetSlice(again, nil)
	asks := v.Asks()
	count(3)
	if v.Asks() != asks {
		t.Errorf("the library was asked %d times more about devices that are as they were", v.Asks()-asks)
	}
	left := v.Take(v.LooseOf(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), q, nil, gpus, devices.How{Steps: 1000})
	if v.Take(left, v.Question([]byte("two")), []*resourcev1.ResourceClaim{claim("c", 2)}, gpus, devices.How{Steps: 1000}) == nil {
		t.Error("two devices are left of three when one is taken, and can't be had")
	}
	v.SetSlice(nil, again)
	count(0)
}
