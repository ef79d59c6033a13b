package volumebinding_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/volumebinding"
	"github.com/berthproject/berth/internal/testkit"
	rt "github.com/berthproject/berth/internal/testkit/ruletest"
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

// What keeps a pod off every node before any is looked at.
func TestClaimsThatCannotBeUsed(t *testing.T) {
	claim := testkit.Claim
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: classes(), Cases: []rt.Case{
		{Name: "no volumes", Pod: pod(), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "volumes of another kind", Pod: pod().Volume("v", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "no such claim", Pod: pod("c"), Want: everywhere(`persistentvolumeclaim "c" not found`)},
		{Name: "no such claim in the namespace", Pod: pod("c").Namespaced("other"), Objects: rt.Objects{claim("c", "fast").Obj()}, Want: everywhere(`persistentvolumeclaim "c" not found`)},
		{Name: "an ephemeral one isn't made yet", Pod: pod().Ephemeral("v"), Want: everywhere(`waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"`)},
		{Name: "an ephemeral one of another pod", Pod: pod().Ephemeral("v"), Objects: rt.Objects{claim("p-v", "fast").MadeFor("q").Obj()}, Want: everywhere(`PVC default/p-v was not created for pod default/p (pod is not owner)`)},
		{Name: "an ephemeral one", Pod: pod().Ephemeral("v"), Objects: rt.Objects{claim("p-v", "fast").MadeFor("p").Obj()}, Want: both},
		{Name: "a claim named like it is anybody's", Pod: pod("p-v"), Objects: rt.Objects{claim("p-v", "fast").MadeFor("q").Obj()}, Want: both},
		{Name: "its volume is lost", Pod: pod("c"), Objects: rt.Objects{claim("c", "fast").Bound("pv").With(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost }).Obj()},
			Want: everywhere(`persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"`)},
		{Name: "it is being deleted", Pod: pod("c"), Objects: rt.Objects{claim("c", "fast").With(func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }).Obj()},
			Want: everywhere(`persistentvolumeclaim "c" is being deleted`)},
		{Name: "it doesn't wait for its pod, and isn't bound", Pod: pod("c"), Objects: rt.Objects{claim("c", "immediate").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "its class doesn't exist", Pod: pod("c"), Objects: rt.Objects{claim("c", "absent").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "it has no class", Pod: pod("c"), Objects: rt.Objects{claim("c", "").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "it names a volume and isn't bound completely", Pod: pod("c"), Objects: rt.Objects{claim("c", "fast").With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }).Obj()},
			Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "its class doesn't say when to bind", Pod: pod("c"), Objects: rt.Objects{claim("c", "unset").Obj()}, Want: everywhere(`VolumeBindingMode not set for StorageClass "unset"`)},
		{Name: "two that aren't bound, one for want of a mode", Pod: pod("i", "c"), Objects: rt.Objects{claim("i", "immediate").Obj(), claim("c", "unset").Obj()}, Want: everywhere(`VolumeBindingMode not set for StorageClass "unset"`)},
		{Name: "two for want of a mode", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "unset").Obj(), claim("d", "unset2").Obj(),
			testkit.Class("unset2", "csi.example").With(func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }).Obj()}, Want: everywhere(`VolumeBindingMode not set for StorageClass "unset"`)},
		{Name: "one that doesn't exist after one for want of a mode", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "unset").Obj()}, Want: everywhere(`persistentvolumeclaim "d" not found`)},
		{Name: "one that isn't bound beside a delayed one", Pod: pod("c", "i"), Objects: rt.Objects{claim("c", "fast").Obj(), claim("i", "immediate").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
	}}.Filter(t)
}

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

// Delayed claims take the smallest available volume that suits them.
func TestVolumesToBind(t *testing.T) {
	claim := func() *testkit.ClaimBuilder { return testkit.Claim("c", "static").Size("2Gi") }
	inA := func() *testkit.VolumeBuilder { return testkit.Volume("pv", "static").Size("2Gi").In(zone, "a") }
	block := v1.PersistentVolumeBlock
	gold := "gold"
	one := func(name string, c *testkit.ClaimBuilder, want rt.Want, volumes ...*testkit.VolumeBuilder) rt.Case {
		out := rt.Case{Name: name, Pod: pod("c"), Objects: rt.Objects{c.Obj()}, Want: want}
		for _, v := range volumes {
			out.Objects = append(out.Objects, v.Obj())
		}
		return out
	}
	asBlock := func(v *v1.PersistentVolume) { v.Spec.VolumeMode = &block }
	asFiles := func(v *v1.PersistentVolume) { m := v1.PersistentVolumeFilesystem; v.Spec.VolumeMode = &m }
	inClass := func(v *v1.PersistentVolume) { v.Spec.VolumeAttributesClassName = &gold }
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: classes(), Cases: []rt.Case{
		one("none", claim(), nowhere),
		one("one in zone a", claim(), onlyA, inA()),
		one("one that any node may have", claim(), both, testkit.Volume("pv", "static").Size("2Gi")),
		one("one on a host", claim(), onlyA, testkit.Volume("pv", "static").Size("2Gi").In(hostname, "a")),
		one("one on a host and in a zone that it isn't in", claim(), nowhere, inA().With(func(v *v1.PersistentVolume) {
			term := &v.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
			term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{Key: hostname, Operator: v1.NodeSelectorOpIn, Values: []string{"b"}})
		})),
		one("a larger one", claim(), onlyA, inA().Size("3Gi")),
		one("a smaller one", claim(), nowhere, inA().Size("1Gi")),
		one("of another class", claim(), nowhere, inA().With(func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "fast" })),
		one("with all access modes", claim().Modes(v1.ReadWriteOnce), onlyA, inA().Modes(v1.ReadOnlyMany, v1.ReadWriteOnce)),
		one("without one of the access modes", claim().Modes(v1.ReadWriteOnce, v1.ReadWriteMany), nowhere, inA().Modes(v1.ReadWriteOnce)),
		one("of another volume mode", claim(), nowhere, inA().With(asBlock)),
		one("of another volume mode, the other way", claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }), nowhere, inA()),
		one("of the same volume mode", claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }), onlyA, inA().With(asBlock)),
		one("of the default volume mode, spelt out", claim(), onlyA, inA().With(asFiles)),
		one("of another attributes class", claim(), nowhere, inA().With(inClass)),
		one("of the same attributes class", claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold }), onlyA, inA().With(inClass)),
		one("selected by labels", claim().With(func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": "v"}}
		}), onlyA, inA().Label("k", "v")),
		one("not selected by labels", claim().With(func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": "v"}}
		}), nowhere, inA()),
		one("a selector that can't be read", claim().With(func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
		}), nowhere, inA()),
		one("released and not made available", claim(), nowhere, inA().Phase(v1.VolumeReleased)),
		one("being deleted", claim(), nowhere, inA().With(func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} })),
		one("for another claim", claim(), nowhere, inA().ClaimedBy("d", "")),

		one("for this claim by name", claim(), onlyA, inA().ClaimedBy("c", "")),
		one("for this claim by UID", claim(), onlyA, inA().ClaimedBy("c", "claim-c")),
		one("for an earlier claim of the name", claim(), nowhere, inA().ClaimedBy("c", "claim-earlier")),
		one("for a claim of the name in another namespace", claim(), nowhere, inA().ClaimedBy("c", "").With(func(v *v1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "other" })),
		one("for this claim, of another class", claim(), nowhere, inA().ClaimedBy("c", "").With(func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "fast" })),
		one("for this claim, and too small", claim(), nowhere, inA().Size("1Gi").ClaimedBy("c", "")),
		one("for this claim, and not available", claim(), onlyA, inA().Phase(v1.VolumeReleased).ClaimedBy("c", "")),
		one("for this claim, without its access modes", claim().Modes(v1.ReadWriteMany), onlyA, inA().ClaimedBy("c", "")),
		one("for this claim, and elsewhere than a free one", claim(), onlyA, inA().ClaimedBy("c", ""), testkit.Volume("pw", "static").Size("2Gi")),
		one("a free one, where that for this claim is too small", claim(), both, inA().Size("1Gi").ClaimedBy("c", ""), testkit.Volume("pw", "static").Size("2Gi")),
		{Name: "a claim that says no size takes any", Pod: pod("c"), Objects: rt.Objects{claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }).Obj(), inA().Obj()}, Want: onlyA},

		{Name: "two claims, one volume", Pod: pod("c", "d"), Objects: rt.Objects{claim().Obj(), testkit.Claim("d", "static").Size("2Gi").Obj(), inA().Obj()}, Want: nowhere},
		{Name: "two claims, two volumes", Pod: pod("c", "d"), Objects: rt.Objects{claim().Obj(), testkit.Claim("d", "static").Size("2Gi").Obj(), inA().Obj(), testkit.Volume("pw", "static").Size("2Gi").Obj()}, Want: onlyA},
		{Name: "the smaller claim takes the smaller volume", Pod: pod("c", "d"), Objects: rt.Objects{testkit.Claim("c", "static").Size("1Gi").Obj(), testkit.Claim("d", "static").Size("5Gi").Obj(),
			inA().Size("5Gi").Obj(), testkit.Volume("pw", "static").Size("1Gi").Obj()}, Want: onlyA},
		{Name: "whatever their order in the pod", Pod: pod("d", "c"), Objects: rt.Objects{testkit.Claim("c", "static").Size("1Gi").Obj(), testkit.Claim("d", "static").Size("5Gi").Obj(),
			inA().Size("5Gi").Obj(), testkit.Volume("pw", "static").Size("6Gi").Obj()}, Want: onlyA},
		{Name: "one claim in two volumes of the pod is bound twice", Pod: pod("c").Volume("again", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}),
			Objects: rt.Objects{claim().Obj(), inA().Obj()}, Want: nowhere},
	}}.Filter(t)
}

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

// taken lists what delayed claims have taken: "pv for c" for volumes, by whom they
// were bound and for which object, and "c on a" for claims to be provisioned.
func taken(world *rt.Cluster) string {
	var out []string
	for _, o := range world.Objects() {
		switch o := o.(type) {
		case *v1.PersistentVolume:
			if ref := o.Spec.ClaimRef; ref != nil {
				text := fmt.Sprint(o.Name, " for ", ref.Name)
				if ref.UID == "" {
					text += " by name"
				}
				if maps.Equal(o.Annotations, map[string]string{cluster.AnnBoundByController: "yes"}) {
					text += " by a controller"
				}
				out = append(out, text)
			}
		case *v1.PersistentVolumeClaim:
			if n, ok := o.Annotations[cluster.AnnSelectedNode]; ok {
				out = append(out, fmt.Sprint(o.Name, " on ", n))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestAssume(t *testing.T) {
	free := func(name, size string) *testkit.VolumeBuilder { return testkit.Volume(name, "static").Size(size) }
	for _, c := range []struct {
		name    string
		pod     *testkit.PodBuilder
		objects rt.Objects
		was     string
		want    string // on node a
	}{
		{"no claims", pod(), nil, "", ""},
		{"a bound claim", pod("c"), rt.Objects{testkit.Claim("c", "fast").Bound("pv").Obj(), testkit.Volume("pv", "fast").Obj()}, "", ""},
		{"a claim that can't be used", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj()}, "", ""},
		{"provisioned", pod("c"), rt.Objects{testkit.Claim("c", "fast").Obj()}, "", "c on a"},
		{"selected before", pod("c"), rt.Objects{testkit.Claim("c", "fast").SelectedNode("a").Obj()}, "c on a", "c on a"},
		{"selected for another node", pod("c"), rt.Objects{testkit.Claim("c", "fast").SelectedNode("b").Obj()}, "c on b", "c on b"},
		{"a volume", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("pv", "1Gi").Obj()}, "", "pv for c by a controller"},
		{"the smallest that is large enough", pod("c"), rt.Objects{testkit.Claim("c", "static").Size("2Gi").Obj(), free("p1", "1Gi").Obj(), free("p5", "5Gi").Obj(), free("p2", "2Gi").Obj(), free("p3", "3Gi").Obj()}, "", "p2 for c by a controller"},
		{"of equal size the first by name", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p2", "1Gi").Obj(), free("p1", "1Gi").Obj()}, "", "p1 for c by a controller"},
		{"of equal size, one of them on the host", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p2", "1Gi").Obj(), free("p1", "1Gi").In(hostname, "a").Obj()}, "", "p1 for c by a controller"},
		{"the smallest on the node", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p1", "1Gi").In(zone, "b").Obj(), free("p2", "2Gi").Obj()}, "", "p2 for c by a controller"},
		{"one that names the claim before smaller ones", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p1", "1Gi").Obj(), free("p9", "9Gi").ClaimedBy("c", "").Obj()}, "p9 for c by name", "p9 for c"},
		{"one that names this very claim", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p9", "9Gi").ClaimedBy("c", "claim-c").Obj()}, "p9 for c", "p9 for c"},
		{"smaller claims choose first", pod("d", "c"), rt.Objects{testkit.Claim("c", "static").Size("1Gi").Obj(), testkit.Claim("d", "static").Size("2Gi").Obj(), free("p3", "3Gi").Obj(), free("p4", "4Gi").Obj()}, "",
			"p3 for c by a controller, p4 for d by a controller"},
		{"equal claims choose in the pod's order", pod("d", "c"), rt.Objects{testkit.Claim("c", "static").Obj(), testkit.Claim("d", "static").Obj(), free("p3", "3Gi").Obj(), free("p4", "4Gi").Obj()}, "",
			"p3 for d by a controller, p4 for c by a controller"},
		{"what isn't found is provisioned", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj(), testkit.Claim("d", "fast").Obj(), testkit.Volume("pv", "fast").Obj()}, "",
			"d on a, pv for c by a controller"},
		{"nothing where one claim can't be had", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj(), testkit.Claim("d", "static").Obj()}, "", ""},
		{"nothing on a node that a bound volume doesn't admit", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj(), testkit.Claim("d", "fast").Bound("pv").Obj(), testkit.Volume("pv", "fast").In(zone, "b").Obj()}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := rt.NewCluster(t, nodes(), append(classes(), c.objects...), nil)
			if got := taken(world); got != c.was {
				t.Fatalf("before: %q, want %q", got, c.was)
			}
			mark, head := world.Mark(), world.Head()
			volumebinding.Plugin{}.Assume(world.Parse(c.pod), world.NodeByName("a"), world.State)
			if got := taken(world); got != c.want {
				t.Errorf("taken: %q, want %q", got, c.want)
			}
			if c.want == c.was && world.Head() != head {
				changes, _ := world.Since(head)
				for i := range changes {
					if o := changes[i].Object; o != nil && o.New.GetName() != "c" { // its annotation is written again
						t.Errorf("%s was changed, though nothing of it is new", o.New.GetName())
					}
				}
			}
			world.Rollback(mark)
			if got := taken(world); got != c.was {
				t.Errorf("after the rollback: %q, want %q: Assume has changed an object in place", got, c.was)
			}
		})
	}
}

// The reference is the whole one that the API server is to store.
func TestAssumedReference(t *testing.T) {
	c := testkit.Claim("c", "static")
	c.ResourceVersion = "7"
	world := rt.NewCluster(t, nodes(), append(classes(), c.Obj(), testkit.Volume("pv", "static").Obj()), nil)
	volumebinding.Plugin{}.Assume(world.Parse(pod("c")), world.NodeByName("a"), world.State)
	want := v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "c", UID: "claim-c", ResourceVersion: "7"}
	if got := world.Volume("pv").Spec.ClaimRef; got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What is taken for one pod isn't there for the next.
func TestAssumedVolumesAreGone(t *testing.T) {
	objects := append(classes(), testkit.Claim("c", "static").Obj(), testkit.Claim("d", "static").Obj(), testkit.Volume("pv", "static").Obj())
	world := rt.NewCluster(t, nodes(), objects, nil)
	feasible := func(b *testkit.PodBuilder) bool {
		rules, _ := volumebinding.Plugin{}.For(world.Parse(b), world.State)
		code, _ := rules.Local.EvalNode(world.NodeByName("a"))
		return code == 0
	}
	if !feasible(pod("d")) {
		t.Fatal("the volume isn't there to begin with")
	}
	volumebinding.Plugin{}.Assume(world.Parse(pod("c")), world.NodeByName("a"), world.State)
	if feasible(pod("d")) {
		t.Error("pod of claim d may still go to node a, whose only volume claim c has taken")
	}
	if !feasible(pod("c")) {
		t.Error("the pod of claim c may no longer go to node a, where its volume is")
	}
}

func TestSignature(t *testing.T) {
	block := v1.PersistentVolumeBlock
	gold, none := "gold", ""
	selects := func(v string) func(*v1.PersistentVolumeClaim) {
		return func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": v}}
		}
	}
	unreadable := func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
	}
	spec := func(name string, change func(*v1.PersistentVolumeClaim)) runtime.Object {
		return testkit.Claim(name, "fast").With(change).Obj()
	}
	ebs := func(name string) runtime.Object {
		return testkit.Volume(name, "").Source(v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-" + name}}).In(zone, "a").Obj()
	}
	local := func(name string) runtime.Object {
		return testkit.Volume(name, "").Source(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}}).In(zone, "a").Obj()
	}
	bound := func(claim, volume string) runtime.Object { return testkit.Claim(claim, "fast").Bound(volume).Obj() }
	objects := append(classes(),
		testkit.Claim("c", "fast").Obj(), testkit.Claim("like-c", "fast").Obj(), testkit.Claim("static", "static").Obj(), testkit.Claim("large", "fast").Size("2Gi").Obj(),
		testkit.Claim("many", "fast").Modes(v1.ReadWriteMany).Obj(), testkit.Claim("two-modes", "fast").Modes(v1.ReadWriteOnce, v1.ReadWriteMany).Obj(),
		spec("block", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }),
		spec("gold", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold }),
		spec("no-attributes", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &none }),
		spec("sizeless", func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }), testkit.Claim("zero", "fast").Size("0").Obj(),
		spec("selects-v", selects("v")), spec("selects-w", selects("w")), spec("unreadable", unreadable),
		spec("selects-all", func(c *v1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }),
		testkit.Claim("selected-a", "fast").SelectedNode("a").Obj(), testkit.Claim("selected-b", "fast").SelectedNode("b").Obj(), testkit.Claim("selected-none", "fast").SelectedNode("").Obj(),
		testkit.Claim("named", "fast").Obj(), testkit.Volume("pv-named", "fast").ClaimedBy("named", "").Obj(),
		testkit.Claim("named2", "fast").Obj(), testkit.Volume("pv-named2", "fast").ClaimedBy("named2", "").Obj(),
		testkit.Claim("immediate", "immediate").Obj(), testkit.Claim("immediate2", "immediate").Obj(),
		bound("any", "pv-any"), testkit.Volume("pv-any", "fast").Obj(), bound("in-a", "pv-a"), testkit.Volume("pv-a", "fast").In(zone, "a").Obj(),
		bound("in-a2", "pv-a2"), testkit.Volume("pv-a2", "fast").In(zone, "a").Obj(), bound("in-b", "pv-b"), testkit.Volume("pv-b", "fast").In(zone, "b").Obj(),
		bound("gone", "pv-gone"), bound("gone2", "pv-gone2"), bound("ebs", "pv-ebs"), ebs("pv-ebs"), bound("ebs2", "pv-ebs2"), ebs("pv-ebs2"),
		bound("local", "pv-local"), local("pv-local"),
	)
	to := func(claims ...string) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Uses(claims...) }
	}
	from := func(claims ...string) rt.Signatures {
		return rt.Signatures{Plugin: plugin, Nodes: nodes(), Objects: objects, Pod: func() *testkit.PodBuilder { return pod(claims...) }}
	}
	x := from("c")
	x.Cases = []rt.Change{
		rt.Differs("delayed: a like claim", to("like-c"), rt.Same),
		rt.Differs("delayed: label, request", func(p *testkit.PodBuilder) { p.Label("app", "web").Req("cpu", "1") }, rt.Same),
		rt.Differs("delayed: class", to("static"), rt.Local),
		rt.Differs("delayed: size", to("large"), rt.Local),
		rt.Differs("delayed: no size", to("sizeless"), rt.Local),
		rt.Differs("delayed: access mode", to("many"), rt.Local),
		rt.Differs("delayed: one more access mode", to("two-modes"), rt.Local),
		rt.Differs("delayed: volume mode", to("block"), rt.Local),
		rt.Differs("delayed: attributes class", to("gold"), rt.Local),
		rt.Differs("delayed: no attributes class, spelt out", to("no-attributes"), rt.Same),
		rt.Differs("delayed: selector", to("selects-v"), rt.Local),
		rt.Differs("delayed: an empty selector", to("selects-all"), rt.Local),
		rt.Differs("delayed: selected node", to("selected-a"), rt.Local),
		rt.Differs("delayed: a volume names it", to("named"), rt.Local),
		rt.Differs("delayed: two like claims", to("c", "like-c"), rt.Local),
		rt.Differs("delayed: no claim", to(), rt.Both),
		rt.Differs("bound", to("any"), rt.Local),
		rt.Differs("not usable", to("missing"), rt.Both),
	}
	x.Run(t)
	for name, c := range map[string]struct {
		from, to []string
		tells    rt.Part
	}{
		"bound: to volumes in one zone":          {[]string{"in-a"}, []string{"in-a2"}, rt.Same},
		"bound: to volumes in two zones":         {[]string{"in-a"}, []string{"in-b"}, rt.Local},
		"bound: to one that any node may have":   {[]string{"in-a"}, []string{"any"}, rt.Local},
		"bound: to volumes that don't exist":     {[]string{"gone"}, []string{"gone2"}, rt.Same},
		"bound: to one that exists and one not":  {[]string{"any"}, []string{"gone"}, rt.Local},
		"bound: in-tree":                         {[]string{"ebs"}, []string{"ebs2"}, rt.Local},
		"bound: in-tree or not":                  {[]string{"in-a"}, []string{"ebs"}, rt.Local},
		"bound: local":                           {[]string{"in-a"}, []string{"local"}, rt.Same},
		"bound: one and two":                     {[]string{"any"}, []string{"any", "any"}, rt.Local},
		"one claim twice, or two like claims":    {[]string{"c", "c"}, []string{"c", "like-c"}, rt.Local},
		"selectors":                              {[]string{"selects-v"}, []string{"selects-w"}, rt.Local},
		"a selector that can't be read":          {[]string{"selects-v"}, []string{"unreadable"}, rt.Local},
		"selected nodes":                         {[]string{"selected-a"}, []string{"selected-b"}, rt.Local},
		"an empty selected node":                 {[]string{"c"}, []string{"selected-none"}, rt.Local},
		"no size and size zero":                  {[]string{"sizeless"}, []string{"zero"}, rt.Local},
		"named by volumes":                       {[]string{"named"}, []string{"named2"}, rt.Local},
		"not usable for one reason":              {[]string{"immediate"}, []string{"immediate2"}, rt.Same},
		"not usable for two reasons":             {[]string{"immediate"}, []string{"missing"}, rt.Group},
		"not usable, and what else the pod uses": {[]string{"immediate", "c"}, []string{"immediate", "large"}, rt.Same},
	} {
		x := from(c.from...)
		x.Cases = []rt.Change{rt.Differs(name, to(c.to...), c.tells)}
		x.Run(t)
	}
}
