package volumezone_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/plugins/volumezone"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const (
	zone, region         = v1.LabelTopologyZone, v1.LabelTopologyRegion
	betaZone, betaRegion = v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion
	// The plugin's only reason against a node.
	elsewhere = "Final: node(s) had no available volume zone"
)

var plugin = rt.Is(volumezone.Plugin{})

// labelled is a node or a claim's volume with labels, given as key, value pairs.
func node(name string, pairs ...string) *testkit.NodeBuilder {
	b := testkit.Node(name)
	for i := 0; i < len(pairs); i += 2 {
		b.Label(pairs[i], pairs[i+1])
	}
	return b
}

func volume(name string, pairs ...string) runtime.Object {
	b := testkit.Volume(name, "fast")
	for i := 0; i < len(pairs); i += 2 {
		b.Label(pairs[i], pairs[i+1])
	}
	return b.Obj()
}

func bound(name, volume string) runtime.Object {
	return testkit.Claim(name, "fast").Bound(volume).Obj()
}

func classes() rt.Objects {
	return rt.Objects{
		testkit.Class("delayed", "csi.example").Obj(),
		testkit.Class("immediate", "csi.example").Mode(storagev1.VolumeBindingImmediate).Obj(),
		testkit.Class("unset", "csi.example").With(func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }).Obj(),
	}
}

func pod(claims ...string) *testkit.PodBuilder { return testkit.Pod("p").Uses(claims...) }

func TestZones(t *testing.T) {
	// one binds a claim to a volume with labels, and asks for a node with labels.
	one := func(name string, of, n []string, want string) rt.Case {
		return rt.Case{Name: name, Pod: pod("c"), Nodes: rt.Nodes{node("n", n...)}, Objects: rt.Objects{bound("c", "pv"), volume("pv", of...)}, Want: rt.Want{"n": want}}
	}
	labels := func(pairs ...string) []string { return pairs }
	rt.Table{Plugin: plugin, Cases: []rt.Case{
		one("no label", labels(), labels(zone, "a"), rt.Skip),
		one("another label", labels("disk", "ssd"), labels(zone, "a"), rt.Skip),
		one("zone", labels(zone, "a"), labels(zone, "a"), rt.OK),
		one("another zone", labels(zone, "a"), labels(zone, "b"), elsewhere),
		one("one of several zones", labels(zone, "a__b"), labels(zone, "b"), rt.OK),
		one("none of several zones", labels(zone, "a__b"), labels(zone, "c"), elsewhere),
		one("zones with blanks around them", labels(zone, " a __ b"), labels(zone, "b"), rt.OK),
		one("an empty zone among them: the label says nothing", labels(zone, "a__"), labels(zone, "c"), rt.Skip),
		one("an empty zone: the label says nothing", labels(zone, ""), labels(zone, "c"), rt.Skip),
		one("region", labels(region, "r"), labels(region, "r"), rt.OK),
		one("another region", labels(region, "r"), labels(region, "s"), elsewhere),
		one("zone and region", labels(zone, "a", region, "r"), labels(zone, "a", region, "r"), rt.OK),
		one("zone and another region", labels(zone, "a", region, "r"), labels(zone, "a", region, "s"), elsewhere),
		one("another zone and the region", labels(zone, "a", region, "r"), labels(zone, "b", region, "r"), elsewhere),
		one("a node with a region and no zone", labels(zone, "a"), labels(region, "r"), elsewhere),
		one("a node without any of the labels: a cluster without zones", labels(zone, "a"), labels("disk", "ssd"), rt.OK),

		one("beta zone", labels(betaZone, "a"), labels(betaZone, "a"), rt.OK),
		one("another beta zone", labels(betaZone, "a"), labels(betaZone, "b"), elsewhere),
		one("a volume's beta zone, and a node's zone", labels(betaZone, "a"), labels(zone, "a"), rt.OK),
		one("a volume's beta zone, and another zone of a node", labels(betaZone, "a"), labels(zone, "b"), elsewhere),
		one("the node's beta zone comes first", labels(betaZone, "a"), labels(betaZone, "b", zone, "a"), elsewhere),
		one("a volume's zone, and a node's beta zone", labels(zone, "a"), labels(betaZone, "a"), elsewhere),
		one("beta region", labels(betaRegion, "r"), labels(betaRegion, "r"), rt.OK),
		one("a volume's beta region, and a node's region", labels(betaRegion, "r"), labels(region, "r"), rt.OK),
		one("a volume's beta region, and another region of a node", labels(betaRegion, "r"), labels(region, "s"), elsewhere),
		one("a volume's beta region, and a node's zone of that name", labels(betaRegion, "r"), labels(zone, "r"), elsewhere),

		{Name: "two volumes in one zone", Pod: pod("c", "d"), Nodes: rt.Nodes{node("a", zone, "a"), node("b", zone, "b")},
			Objects: rt.Objects{bound("c", "pv"), volume("pv", zone, "a"), bound("d", "pw"), volume("pw", zone, "a__b")}, Want: rt.Want{"a": rt.OK, "b": elsewhere}},
		{Name: "two volumes in two zones", Pod: pod("c", "d"), Nodes: rt.Nodes{node("a", zone, "a"), node("b", zone, "b")},
			Objects: rt.Objects{bound("c", "pv"), volume("pv", zone, "a"), bound("d", "pw"), volume("pw", zone, "b")}, Want: rt.Want{rt.All: elsewhere}},
	}}.Filter(t)
}

func TestClaims(t *testing.T) {
	claim := testkit.Claim
	everywhere := func(why string) rt.Want { return rt.Want{rt.All: rt.Everywhere(why)} }
	skip := rt.Want{rt.All: rt.Skip}
	rt.Table{Plugin: plugin, Nodes: rt.Nodes{node("a", zone, "a"), node("b", zone, "b")}, Objects: classes(), Cases: []rt.Case{
		{Name: "no claims", Pod: pod(), Want: skip},
		{Name: "one that waits for its pod", Pod: pod("c"), Objects: rt.Objects{claim("c", "delayed").Obj()}, Want: skip},
		{Name: "one that waits, and a bound one", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "delayed").Obj(), bound("d", "pv"), volume("pv", zone, "a")}, Want: rt.Want{"a": rt.OK, "b": elsewhere}},
		{Name: "an ephemeral one isn't looked at", Pod: testkit.Pod("p").Ephemeral("v"), Objects: rt.Objects{bound("p-v", "pv"), volume("pv", zone, "a")}, Want: skip},
		{Name: "an ephemeral one, and a bound one", Pod: testkit.Pod("p").Ephemeral("v").Uses("d"), Objects: rt.Objects{bound("d", "pv"), volume("pv", zone, "a")}, Want: rt.Want{"a": rt.OK, "b": elsewhere}},
		{Name: "one that names a volume, bound or not", Pod: pod("c"), Objects: rt.Objects{claim("c", "immediate").With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }).Obj(), volume("pv", zone, "a")},
			Want: rt.Want{"a": rt.OK, "b": elsewhere}},
		{Name: "no name", Pod: pod(""), Want: everywhere("PersistentVolumeClaim had no name")},
		{Name: "no such claim", Pod: pod("c"), Want: everywhere(`persistentvolumeclaim "c" not found`)},
		{Name: "no volume and no class", Pod: pod("c"), Objects: rt.Objects{claim("c", "").Obj()}, Want: everywhere("PersistentVolumeClaim had no pv name and storageClass name")},
		{Name: "no volume, and a class that doesn't exist", Pod: pod("c"), Objects: rt.Objects{claim("c", "absent").Obj()}, Want: everywhere(`storageclass.storage.k8s.io "absent" not found`)},
		{Name: "no volume, and a class that doesn't say when to bind", Pod: pod("c"), Objects: rt.Objects{claim("c", "unset").Obj()}, Want: everywhere(`VolumeBindingMode not set for StorageClass "unset"`)},
		{Name: "no volume, and it doesn't wait for its pod", Pod: pod("c"), Objects: rt.Objects{claim("c", "immediate").Obj()}, Want: everywhere("PersistentVolume had no name")},
		{Name: "a volume that doesn't exist", Pod: pod("c"), Objects: rt.Objects{bound("c", "pv")}, Want: everywhere(`persistentvolume "pv" not found`)},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	to := func(claims ...string) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Uses(claims...) }
	}
	x := rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return pod("a") }, Objects: append(classes(),
		bound("a", "pv-a"), volume("pv-a", zone, "a"), bound("a2", "pv-a2"), volume("pv-a2", zone, "a", "disk", "ssd"), bound("b", "pv-b"), volume("pv-b", zone, "b"),
		bound("region", "pv-r"), volume("pv-r", region, "a"), bound("beta", "pv-beta"), volume("pv-beta", betaZone, "a"), bound("both", "pv-both"), volume("pv-both", zone, "a__b"),
		bound("any", "pv-any"), volume("pv-any"), testkit.Claim("delayed", "delayed").Obj(), testkit.Claim("immediate", "immediate").Obj())}
	x.Cases = []rt.Change{
		rt.Differs("a claim whose volume is in the zone too", to("a2"), rt.Same),
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("a claim that waits beside", to("a", "delayed"), rt.Same),
		rt.Differs("another zone", to("b"), rt.Local),
		rt.Differs("a region of that name", to("region"), rt.Local),
		rt.Differs("a beta zone of that name", to("beta"), rt.Local),
		rt.Differs("one more zone", to("both"), rt.Local),
		rt.Differs("no zone", to("any"), rt.Local),
		rt.Differs("one more volume", to("a", "b"), rt.Local),
		rt.Differs("no claim", to(), rt.Both),
		rt.Differs("a claim that can't be used", to("immediate"), rt.Both),
	}
	x.Run(t)
	x.Pod = func() *testkit.PodBuilder { return pod("missing") }
	x.Cases = []rt.Change{
		rt.Differs("not usable, for another reason", to("immediate"), rt.Group),
		rt.Differs("not usable, whatever else there is", to("missing", "a"), rt.Same),
	}
	x.Run(t)
}
