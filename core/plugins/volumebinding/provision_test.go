package volumebinding_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// Delayed claims for which there is no volume are provisioned where that is
// possible.
func TestVolumesToProvision(t *testing.T) {
	in := func(key string, values ...string) v1.TopologySelectorLabelRequirement {
		return v1.TopologySelectorLabelRequirement{Key: key, Values: values}
	}
	class := func() *testkit.ClassBuilder { return testkit.Class("own", "csi.example") }
	one := func(name string, c *testkit.ClassBuilder, want rt.Want) rt.Case {
		return rt.Case{Name: name, Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "own").Obj(), c.Obj()}, Want: want}
	}
	rt.Table{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("a").Zone("a").Label("disk", "ssd"), testkit.Node("b").Zone("b")}, Objects: classes(), Cases: []rt.Case{
		one("anywhere", class(), both),
		one("by nobody", testkit.Class("own", "kubernetes.io/no-provisioner"), nowhere),
		one("by a class that names no provisioner", testkit.Class("own", ""), nowhere),
		one("allowed in zone a", class().Allowed(in(zone, "a", "c")), onlyA),
		one("allowed in zones a and b", class().Allowed(in(zone, "a")).Allowed(in(zone, "b")), both),
		one("all demands of a term", class().Allowed(in(zone, "a"), in("disk", "hdd")), nowhere),
		one("all demands of a term are met", class().Allowed(in(zone, "a"), in("disk", "ssd")), onlyA),
		one("by a label that nodes lack", class().Allowed(in("rack", "")), nowhere),
		one("a term without demands allows nothing", class().Allowed(), nowhere),
		one("but another term may", class().Allowed().Allowed(in(zone, "a")), onlyA),

		{Name: "selected for node a", Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "fast").SelectedNode("a").Obj()}, Want: onlyA},
		{Name: "selected for node a, where it can't be", Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "static").SelectedNode("a").Obj()}, Want: nowhere},
		{Name: "selected for node a: no volume is looked for", Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "static").SelectedNode("a").Obj(), testkit.Volume("pv", "static").Obj()}, Want: nowhere},
		{Name: "one selected for node a, and another", Pod: pod("d", "c"), Objects: rt.Objects{testkit.Claim("c", "fast").SelectedNode("a").Obj(), testkit.Claim("d", "fast").Obj()}, Want: onlyA},
		{Name: "selected for two nodes", Pod: pod("c", "d"), Objects: rt.Objects{testkit.Claim("c", "fast").SelectedNode("a").Obj(), testkit.Claim("d", "fast").SelectedNode("b").Obj()}, Want: nowhere},
		{Name: "one bound to a volume and one provisioned", Pod: pod("c", "d"), Objects: rt.Objects{testkit.Claim("c", "static").Obj(), testkit.Claim("d", "fast").Obj(), testkit.Volume("pv", "static").In(zone, "a").Obj()}, Want: onlyA},
		{Name: "a volume is taken even where one could be provisioned", Pod: pod("c", "d"), Objects: rt.Objects{testkit.Claim("c", "fast").Obj(), testkit.Claim("d", "fast").Obj(), testkit.Volume("pv", "fast").Obj()}, Want: both},
		{Name: "a class that no longer exists leaves the claim unbound", Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "absent").SelectedNode("a").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
	}}.Filter(t)
}

// KEP-1472: a driver that publishes its capacity has room for a claim where a node
// can reach some capacity of the class that is large enough.
func TestStorageCapacity(t *testing.T) {
	claim := func() runtime.Object { return testkit.Claim("c", "fast").Size("2Gi").Obj() }
	left := func(class, size string) *storagev1.CSIStorageCapacity {
		return testkit.Capacity("cap", class, size, zone, "a")
	}
	with := func(c *storagev1.CSIStorageCapacity, change func(*storagev1.CSIStorageCapacity)) runtime.Object {
		change(c)
		return c
	}
	largest := func(size string) func(*storagev1.CSIStorageCapacity) {
		return func(c *storagev1.CSIStorageCapacity) { q := resource.MustParse(size); c.MaximumVolumeSize = &q }
	}
	spaceInA := rt.Want{"a": rt.OK, "b": noSpace}
	full := rt.Want{rt.All: noSpace}
	publishes := testkit.CSIDriver("csi.example", true)
	unsaid := &storagev1.CSIDriver{}
	unsaid.Name = "csi.example"
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: classes(), Cases: []rt.Case{
		{Name: "enough", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, left("fast", "3Gi")}, Want: spaceInA},
		{Name: "just enough", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, left("fast", "2Gi")}, Want: spaceInA},
		{Name: "too little", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, left("fast", "1Gi")}, Want: full},
		{Name: "none published", Pod: pod("c"), Objects: rt.Objects{claim(), publishes}, Want: full},
		{Name: "of another class", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, left("static", "3Gi")}, Want: full},
		{Name: "the largest volume counts", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, with(left("fast", "9Gi"), largest("1Gi"))}, Want: full},
		{Name: "the largest volume counts, both ways", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, with(left("fast", "1Gi"), largest("2Gi"))}, Want: spaceInA},
		{Name: "neither said", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, with(left("fast", "9Gi"), func(c *storagev1.CSIStorageCapacity) { c.Capacity = nil })}, Want: full},
		{Name: "reached from nowhere", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, with(left("fast", "9Gi"), func(c *storagev1.CSIStorageCapacity) { c.NodeTopology = nil })}, Want: full},
		{Name: "reached from everywhere", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, with(left("fast", "9Gi"), func(c *storagev1.CSIStorageCapacity) { c.NodeTopology = &metav1.LabelSelector{} })}, Want: both},
		{Name: "a topology that can't be read", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, with(left("fast", "9Gi"), func(c *storagev1.CSIStorageCapacity) {
			c.NodeTopology.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}
		})}, Want: full},
		{Name: "one of several is enough", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, left("fast", "1Gi"), testkit.Capacity("cap2", "fast", "2Gi", zone, "b")}, Want: rt.Want{"a": noSpace, "b": rt.OK}},
		{Name: "a claim that says no size", Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "fast").With(func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }).Obj(), publishes}, Want: both},
		{Name: "a driver that publishes nothing", Pod: pod("c"), Objects: rt.Objects{claim(), testkit.CSIDriver("csi.example", false)}, Want: both},
		{Name: "a driver that says nothing", Pod: pod("c"), Objects: rt.Objects{claim(), unsaid}, Want: both},
		{Name: "another driver", Pod: pod("c"), Objects: rt.Objects{claim(), testkit.CSIDriver("other", true)}, Want: both},
		{Name: "a volume is there, so none is provisioned", Pod: pod("c"), Objects: rt.Objects{claim(), publishes, testkit.Volume("pv", "fast").Size("2Gi").Obj()}, Want: both},
		{Name: "selected for node b", Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "fast").Size("2Gi").SelectedNode("b").Obj(), publishes, left("fast", "9Gi")}, Want: rt.Want{"a": nothingToBind, "b": noSpace}},
		{Name: "a claim without space, and one without a provisioner: the first speaks", Pod: pod("c", "d"), Objects: rt.Objects{claim(), publishes, testkit.Claim("d", "static").Size("3Gi").Obj()}, Want: full},
		{Name: "a claim without a provisioner, and one without space", Pod: pod("c", "d"), Objects: rt.Objects{claim(), publishes, testkit.Claim("d", "static").Obj()}, Want: nowhere},
	}}.Filter(t)
}
