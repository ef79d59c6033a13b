package volumebinding_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/plugins/volumebinding"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const (
	zone     = v1.LabelTopologyZone
	hostname = v1.LabelHostname
	// Every reason of the plugin against a node.
	wrongNode     = "Final: node(s) didn't match PersistentVolume's node affinity"
	nothingToBind = "Final: node(s) didn't find available persistent volumes to bind"
	noSpace       = "Final: node(s) did not have enough free storage"
	volumeGone    = "Final: node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)

var plugin = rt.Is(volumebinding.Plugin{})

// Node a is in zone a, node b in zone b.
func nodes() rt.Nodes { return rt.Nodes{testkit.Node("a").Zone("a"), testkit.Node("b").Zone("b")} }

// Claims of class fast are provisioned by a CSI driver and those of class static
// never; both wait for their pod. Those of class immediate don't.
func classes() rt.Objects {
	return rt.Objects{
		testkit.Class("fast", "csi.example").Obj(),
		testkit.Class("static", "kubernetes.io/no-provisioner").Obj(),
		testkit.Class("immediate", "csi.example").Mode(storagev1.VolumeBindingImmediate).Obj(),
		testkit.Class("unset", "csi.example").With(func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }).Obj(),
	}
}

func pod(claims ...string) *testkit.PodBuilder { return testkit.Pod("p").Uses(claims...) }

func everywhere(why string) rt.Want { return rt.Want{rt.All: rt.Everywhere(why)} }

var (
	both    = rt.Want{rt.All: rt.OK}
	onlyA   = rt.Want{"a": rt.OK, "b": nothingToBind}
	nowhere = rt.Want{rt.All: nothingToBind}
)

func TestBoundClaims(t *testing.T) {
	claim := func(name, volume string) runtime.Object { return testkit.Claim(name, "fast").Bound(volume).Obj() }
	inA := func(name string) runtime.Object { return testkit.Volume(name, "fast").In(zone, "a").Obj() }
	inB := func(name string) runtime.Object { return testkit.Volume(name, "fast").In(zone, "b").Obj() }
	ebs := func(id string) runtime.Object {
		return testkit.Volume("pv", "").Source(v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}).In(zone, "a").Obj()
	}
	const driverZone = "topology.ebs.csi.aws.com/zone"
	moved := testkit.CSINode("a").Migrated("kubernetes.io/aws-ebs").Obj()
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: classes(), Cases: []rt.Case{
		{Name: "a volume that any node may have", Pod: pod("c"), Objects: rt.Objects{claim("c", "pv"), testkit.Volume("pv", "fast").Obj()}, Want: both},
		{Name: "a volume in zone a", Pod: pod("c"), Objects: rt.Objects{claim("c", "pv"), inA("pv")}, Want: rt.Want{"a": rt.OK, "b": wrongNode}},
		{Name: "volumes in both zones", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "pv"), inA("pv"), claim("d", "pw"), inB("pw")}, Want: rt.Want{rt.All: wrongNode}},
		{Name: "the volume doesn't exist", Pod: pod("c"), Objects: rt.Objects{claim("c", "pv")}, Want: rt.Want{rt.All: volumeGone}},
		{Name: "one doesn't exist, and another is elsewhere: the first speaks", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "gone"), claim("d", "pw"), inB("pw")}, Want: rt.Want{rt.All: volumeGone}},
		{Name: "one is elsewhere, and another doesn't exist: the first speaks", Pod: pod("d", "c"), Objects: rt.Objects{claim("c", "gone"), claim("d", "pw"), inB("pw")},
			Want: rt.Want{"a": wrongNode, "b": volumeGone}},
		{Name: "whatever its class is", Pod: pod("c"), Objects: rt.Objects{testkit.Claim("c", "immediate").Bound("pv").Obj(), inA("pv")}, Want: rt.Want{"a": rt.OK, "b": wrongNode}},
		{Name: "a bound one and a delayed one", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "pv"), inA("pv"), testkit.Claim("d", "static").Obj()},
			Want: rt.Want{"a": nothingToBind, "b": wrongNode + ", node(s) didn't find available persistent volumes to bind"}},
		{Name: "a lost one and a delayed one", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "pv"), testkit.Claim("d", "static").Obj()},
			Want: rt.Want{rt.All: nothingToBind + ", node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"}},

		{Name: "in-tree: by its own labels", Pod: pod("c"), Objects: rt.Objects{claim("c", "pv"), ebs("vol-1")}, Want: rt.Want{"a": rt.OK, "b": wrongNode}},
		{Name: "in-tree: by the driver's labels where its plugin has moved", Pod: pod("c"), Objects: rt.Objects{claim("c", "pv"), ebs("vol-1"), moved}, Want: rt.Want{rt.All: wrongNode}},
		{Name: "in-tree: a node with the driver's labels", Pod: pod("c"), Nodes: rt.Nodes{testkit.Node("a").Label(driverZone, "a"), testkit.Node("b").Zone("a")},
			Objects: rt.Objects{claim("c", "pv"), ebs("vol-1"), moved}, Want: both},
		{Name: "in-tree: one that can't be translated", Pod: pod("c"), Nodes: rt.Nodes{testkit.Node("a").Label(driverZone, "a"), testkit.Node("b").Zone("a")},
			Objects: rt.Objects{claim("c", "pv"), ebs("aws://nowhere/in/particular"), moved}, Want: rt.Want{"a": wrongNode, "b": rt.OK}},
	}}.Filter(t)
}
