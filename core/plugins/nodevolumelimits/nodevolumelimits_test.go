package nodevolumelimits_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/plugins/nodevolumelimits"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

var plugin = rt.Is(nodevolumelimits.Plugin{})

// tooMany is the reason of a node where a driver would have more volumes than it
// may.
func tooMany(driver string, needs, limit int) rt.Want {
	return rt.Want{"n": fmt.Sprintf("Reject: node(s) exceed max volume count (volumes of %s: needs %d, has %d)", driver, needs, limit)}
}

var (
	fits = rt.Want{"n": rt.OK}
	skip = rt.Want{"n": rt.Skip}
)

const ebsDriver = "ebs.csi.aws.com"

// Claims c1, c2, … are bound to volumes of csi.example; other1 to one of csi.other,
// local to a volume of no driver, ebs1 to an in-tree EBS disk, ebs2 to ebs4 to others, csi3 to that
// of ebs3 as a volume of its driver, csi5 to another volume of it. The claims of class
// delayed have no volume yet. shared and shared2 lead to one disk.
func storage() rt.Objects {
	out := rt.Objects{testkit.Class("delayed", "csi.example").Obj(), testkit.Class("ebs", "kubernetes.io/aws-ebs").Obj()}
	volume := func(claim string, source v1.PersistentVolumeSource) {
		out = append(out, testkit.Claim(claim, "").Bound("pv-"+claim).Obj(), testkit.Volume("pv-"+claim, "").Source(source).Obj())
	}
	csi := func(driver, handle string) v1.PersistentVolumeSource {
		return v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}
	}
	for _, name := range []string{"c1", "c2", "c3", "c4"} {
		volume(name, csi("csi.example", name))
	}
	volume("other1", csi("csi.other", "o1"))
	volume("other2", csi("csi.other", "o2"))
	volume("shared", csi("csi.example", "s"))
	volume("shared2", csi("csi.example", "s"))
	volume("local", v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}})
	volume("ebs1", v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}})
	for i := 2; i <= 4; i++ {
		volume(fmt.Sprint("ebs", i), v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: fmt.Sprint("vol-", i)}})
	}
	volume("csi3", csi(ebsDriver, "vol-3"))
	volume("csi5", csi(ebsDriver, "vol-5"))
	for _, name := range []string{"d1", "d2"} {
		out = append(out, testkit.Claim(name, "delayed").Obj())
	}
	return append(out, testkit.Claim("ebs-d", "ebs").Obj(), testkit.Claim("no-class", "").Obj(), testkit.Claim("p-v", "delayed").MadeFor("p").Obj(), testkit.Claim("q-v", "delayed").MadeFor("p").Obj())
}

func pod(claims ...string) *testkit.PodBuilder { return testkit.Pod("p").Uses(claims...) }

// there is a pod on node n.
func there(claims ...string) *testkit.PodBuilder { return testkit.Pod("x").Uses(claims...).On("n") }

func limit(driver string, count int32) runtime.Object {
	return testkit.CSINode("n").Driver(driver, count).Obj()
}

func inlineEBS(id string) v1.VolumeSource {
	return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
}

func TestLimits(t *testing.T) {
	limits := func(count int32) rt.Objects { return rt.Objects{limit("csi.example", count)} }
	rt.Table{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("n")}, Objects: storage(), Cases: []rt.Case{
		{Name: "no volumes", Pod: pod(), Objects: limits(0), Want: skip},
		{Name: "volumes of another kind", Pod: pod().Volume("v", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}), Objects: limits(0), Want: skip},
		{Name: "a claim that leads to no driver", Pod: pod("local", "no-class"), Objects: limits(0), Want: skip},
		{Name: "no CSINode", Pod: pod("c1"), Want: fits},
		{Name: "room for one", Pod: pod("c1"), Objects: limits(1), Want: fits},
		{Name: "room for none", Pod: pod("c1"), Objects: limits(0), Want: tooMany("csi.example", 1, 0)},
		{Name: "no limit", Pod: pod("c1"), Objects: limits(-1), Want: fits},
		{Name: "a limit without a number", Pod: pod("c1"), Objects: rt.Objects{testkit.CSINode("n").Driver("csi.example", 0).With(func(n *storagev1.CSINode) { n.Spec.Drivers[0].Allocatable.Count = nil }).Obj()}, Want: fits},
		{Name: "a limit of another driver", Pod: pod("c1"), Objects: rt.Objects{limit("csi.other", 0)}, Want: fits},
		{Name: "with the pods that are there", Pod: pod("c1"), Pods: rt.Pods{there("c2")}, Objects: limits(1), Want: tooMany("csi.example", 2, 1)},
		{Name: "with the pods that are there, and room", Pod: pod("c1"), Pods: rt.Pods{there("c2"), there("c3")}, Objects: limits(3), Want: fits},
		{Name: "two of the pod", Pod: pod("c1", "c2"), Pods: rt.Pods{there("c3")}, Objects: limits(2), Want: tooMany("csi.example", 3, 2)},
		{Name: "those of other drivers don't count", Pod: pod("c1", "other1"), Pods: rt.Pods{there("other2", "local")}, Objects: limits(1), Want: fits},
		{Name: "one driver of several", Pod: pod("c1", "other1"), Pods: rt.Pods{there("other2")}, Objects: rt.Objects{testkit.CSINode("n").Driver("csi.example", 1).Driver("csi.other", 1).Obj()}, Want: tooMany("csi.other", 2, 1)},
		{Name: "two drivers: the first speaks", Pod: pod("c1", "other1"), Objects: rt.Objects{testkit.CSINode("n").Driver("csi.other", 0).Driver("csi.example", 0).Obj()}, Want: tooMany("csi.other", 1, 0)},
		{Name: "a driver without a limit before one with", Pod: pod("c1", "other1"), Objects: rt.Objects{testkit.CSINode("n").Driver("csi.other", -1).Driver("csi.example", 0).Obj()}, Want: tooMany("csi.example", 1, 0)},
		{Name: "a node that has too many takes no more", Pod: pod("c1"), Pods: rt.Pods{there("c2", "c3")}, Objects: limits(1), Want: tooMany("csi.example", 3, 1)},

		{Name: "a claim that a pod there uses takes no place", Pod: pod("c1"), Pods: rt.Pods{there("c1")}, Objects: limits(1), Want: fits},
		{Name: "even where there are too many", Pod: pod("c1"), Pods: rt.Pods{there("c1", "c2")}, Objects: limits(1), Want: fits},
		{Name: "a claim that a pod elsewhere uses does", Pod: pod("c1"), Nodes: rt.Nodes{testkit.Node("n"), testkit.Node("m")}, Pods: rt.Pods{testkit.Pod("x").Uses("c1").On("m")}, Objects: limits(0),
			Want: rt.Want{"n": tooMany("csi.example", 1, 0)["n"], "m": rt.OK}},
		{Name: "two claims of one disk are one", Pod: pod("shared", "shared2"), Objects: limits(1), Want: fits},
		{Name: "a disk that is there by another claim", Pod: pod("shared"), Pods: rt.Pods{there("shared2")}, Objects: limits(1), Want: fits},
		{Name: "two pods there with one claim count once", Pod: pod("c1"), Pods: rt.Pods{there("c2"), there("c2")}, Objects: limits(2), Want: fits},
		{Name: "one claim twice in the pod", Pod: pod("c1", "c1"), Objects: limits(1), Want: fits},

		{Name: "claims without a volume count each", Pod: pod("d1", "d2"), Objects: limits(1), Want: tooMany("csi.example", 2, 1)},
		{Name: "one that a pod there uses", Pod: pod("d1"), Pods: rt.Pods{there("d1")}, Objects: limits(1), Want: fits},
		{Name: "one that a pod there uses, and another", Pod: pod("d1"), Pods: rt.Pods{there("d2")}, Objects: limits(1), Want: tooMany("csi.example", 2, 1)},
		{Name: "an ephemeral one", Pod: testkit.Pod("p").Ephemeral("v"), Objects: limits(0), Want: tooMany("csi.example", 1, 0)},
		{Name: "a claim of a pod there that doesn't exist doesn't count", Pod: pod("c1"), Pods: rt.Pods{there("gone", "other1")}, Objects: limits(1), Want: fits},

		{Name: "no such claim", Pod: pod("c1", "gone"), Objects: limits(1), Want: rt.Want{"n": `Final: looking up PVC default/gone: persistentvolumeclaim "gone" not found`}},
		{Name: "no such claim, even without limits", Pod: pod("gone"), Want: rt.Want{"n": `Final: looking up PVC default/gone: persistentvolumeclaim "gone" not found`}},
		{Name: "an ephemeral one of another pod", Pod: testkit.Pod("q").Ephemeral("v"), Want: rt.Want{"n": `Final: PVC default/q-v was not created for pod default/q (pod is not owner)`}},
	}}.Filter(t)
}

// TestDrivers: a node without the driver of a disk takes no pod with it, if the driver demands that
// and somebody looks at it.
func TestDrivers(t *testing.T) {
	lacks := func(driver string) rt.Want {
		return rt.Want{"n": "Reject: " + driver + " CSI driver is not installed on the node"}
	}
	needs := rt.Is(nodevolumelimits.Plugin{NeedsDrivers: true})
	demanded := func(more ...runtime.Object) rt.Objects {
		return append(rt.Objects{testkit.Demanded(testkit.CSIDriver("csi.example", false)), testkit.Demanded(testkit.CSIDriver(ebsDriver, false)), testkit.CSIDriver("csi.other", false)}, more...)
	}
	offers := func(more ...string) runtime.Object {
		n := testkit.CSINode("n")
		for _, driver := range more {
			n.Driver(driver, -1)
		}
		return n.Obj()
	}
	rt.Table{Plugin: needs, Nodes: rt.Nodes{testkit.Node("n")}, Objects: storage(), Cases: []rt.Case{
		{Name: "nobody looks", Plugin: plugin, Pod: pod("c1"), Objects: demanded(offers()), Want: fits},
		{Name: "the driver isn't installed", Pod: pod("c1"), Objects: demanded(offers("csi.other")), Want: lacks("csi.example")},
		{Name: "it is", Pod: pod("c1"), Objects: demanded(offers("csi.other", "csi.example")), Want: fits},
		{Name: "no CSINode", Pod: pod("c1"), Objects: demanded(), Want: lacks("csi.example")},
		{Name: "it isn't demanded", Pod: pod("other1"), Objects: demanded(offers()), Want: fits},
		{Name: "no CSIDriver", Pod: pod("c1"), Objects: rt.Objects{offers()}, Want: fits},
		{Name: "a claim without a volume", Pod: pod("d1"), Objects: demanded(offers()), Want: lacks("csi.example")},
		{Name: "two drivers: that of the first disk", Pod: pod("csi3", "c1"), Objects: demanded(offers()), Want: lacks(ebsDriver)},
		{Name: "one of two drivers", Pod: pod("csi3", "c1"), Objects: demanded(offers(ebsDriver)), Want: lacks("csi.example")},
		{Name: "a disk that a pod there has", Pod: pod("c1"), Pods: rt.Pods{there("c1")}, Objects: demanded(offers()), Want: lacks("csi.example")},
		{Name: "the driver before the limits", Pod: pod("c1", "other1"), Objects: demanded(testkit.CSINode("n").Driver("csi.other", 0).Obj()), Want: lacks("csi.example")},
		{Name: "limits of an installed driver", Pod: pod("c1"), Objects: demanded(limit("csi.example", 0)), Want: tooMany("csi.example", 1, 0)},

		{Name: "an in-tree disk", Pod: pod("ebs1"), Objects: demanded(offers()), Want: lacks(ebsDriver)},
		{Name: "an in-tree disk that isn't made yet", Pod: pod("ebs-d"), Objects: demanded(offers()), Want: lacks(ebsDriver)},
		{Name: "an in-tree disk in the pod", Pod: pod().Volume("v", inlineEBS("vol-1")), Objects: demanded(offers()), Want: lacks(ebsDriver)},
		{Name: "an in-tree disk and no CSINode", Pod: pod("ebs1"), Objects: demanded(), Want: fits},
		{Name: "an in-tree disk that isn't made yet, and no CSINode", Pod: pod("ebs-d"), Objects: demanded(), Want: fits},
		{Name: "an in-tree disk in the pod, and no CSINode", Pod: pod().Volume("v", inlineEBS("vol-1")), Objects: demanded(), Want: fits},
		{Name: "an in-tree disk that is also a volume of the driver, and no CSINode", Pod: pod("ebs3", "csi3"), Objects: demanded(), Want: lacks(ebsDriver)},
	}}.Filter(t)
}

// TestDriversSignature: an in-tree disk is no disk of its driver where drivers are looked for.
func TestDriversSignature(t *testing.T) {
	for _, c := range []struct {
		needs bool
		tells rt.Part
	}{{true, rt.Local}, {false, rt.Same}} {
		rt.Signatures{Plugin: rt.Is(nodevolumelimits.Plugin{NeedsDrivers: c.needs}), Nodes: rt.Nodes{testkit.Node("n")}, Objects: storage(), Pod: func() *testkit.PodBuilder { return pod("ebs4") },
			Cases: []rt.Change{rt.Differs("in-tree, or not", func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Uses("csi5") }, c.tells)}}.Run(t)
	}
}

// Disks of in-tree plugins count for the CSI driver that has taken over.
func TestInTreeDisks(t *testing.T) {
	limits := func(count int32) rt.Objects { return rt.Objects{limit(ebsDriver, count)} }
	rt.Table{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("n")}, Objects: storage(), Cases: []rt.Case{
		{Name: "a volume", Pod: pod("ebs1"), Objects: limits(0), Want: tooMany(ebsDriver, 1, 0)},
		{Name: "in the pod itself", Pod: pod().Volume("v", inlineEBS("vol-1")), Objects: limits(0), Want: tooMany(ebsDriver, 1, 0)},
		{Name: "in the pod itself, after a claim", Pod: pod("c1").Volume("v", inlineEBS("vol-1")).Uses("c2"), Objects: limits(0), Want: tooMany(ebsDriver, 1, 0)},
		{Name: "a claim without a volume", Pod: pod("ebs-d"), Objects: limits(0), Want: tooMany(ebsDriver, 1, 0)},
		{Name: "both ways", Pod: pod("ebs1").Volume("v", inlineEBS("vol-2")), Objects: limits(1), Want: tooMany(ebsDriver, 2, 1)},
		{Name: "both ways to one disk", Pod: pod("ebs1").Volume("v", inlineEBS("vol-1")), Objects: limits(1), Want: fits},
		{Name: "on pods there", Pod: pod("ebs1"), Pods: rt.Pods{testkit.Pod("x").Volume("v", inlineEBS("vol-2")).On("n")}, Objects: limits(1), Want: tooMany(ebsDriver, 2, 1)},
		{Name: "that are there already", Pod: pod("ebs1"), Pods: rt.Pods{testkit.Pod("x").Volume("v", inlineEBS("vol-1")).On("n")}, Objects: limits(1), Want: fits},
		{Name: "that are there already, of a volume of the driver", Pod: pod("csi3"), Pods: rt.Pods{testkit.Pod("x").Volume("v", inlineEBS("vol-3")).On("n")}, Objects: limits(1), Want: fits},
		{Name: "that are there already, by a volume of the driver", Pod: pod("ebs3"), Pods: rt.Pods{there("csi3")}, Objects: limits(1), Want: fits},
		{Name: "that are there already, the other way", Pod: pod().Volume("v", inlineEBS("vol-1")), Pods: rt.Pods{there("ebs1")}, Objects: limits(1), Want: fits},
	}}.Filter(t)
}

// What is attached without a pod takes a place until it is detached.
func TestAttachments(t *testing.T) {
	objects := func(count int32, attached ...*storagev1.VolumeAttachment) rt.Objects {
		out := rt.Objects{limit("csi.example", count)}
		for _, a := range attached {
			out = append(out, a)
		}
		return out
	}
	attached := func(volume string) *storagev1.VolumeAttachment {
		return testkit.Attachment("csi.example", "n", volume)
	}
	unnamed := attached("pv-c2")
	unnamed.Spec.Source.PersistentVolumeName = nil
	rt.Table{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("n")}, Objects: storage(), Cases: []rt.Case{
		{Name: "one counts", Pod: pod("c1"), Objects: objects(1, attached("pv-c2")), Want: tooMany("csi.example", 2, 1)},
		{Name: "room for both", Pod: pod("c1"), Objects: objects(2, attached("pv-c2")), Want: fits},
		{Name: "of a pod there counts once", Pod: pod("c1"), Pods: rt.Pods{there("c2")}, Objects: objects(2, attached("pv-c2")), Want: fits},
		{Name: "on another node", Pod: pod("c1"), Objects: objects(1, testkit.Attachment("csi.example", "m", "pv-c2")), Want: fits},
		{Name: "of another driver", Pod: pod("c1"), Objects: objects(1, testkit.Attachment("csi.other", "n", "pv-other1")), Want: fits},
		{Name: "two of one disk", Pod: pod("c1"), Objects: objects(2, attached("pv-shared"), attached("pv-shared2")), Want: fits},
		{Name: "of a volume that doesn't exist", Pod: pod("c1"), Objects: objects(1, attached("gone")), Want: fits},
		{Name: "of an in-tree volume", Pod: pod("c1"), Objects: objects(1, attached("pv-ebs1")), Want: fits},
		{Name: "of no volume", Pod: pod("c1"), Objects: objects(1, unnamed), Want: fits},
		{Name: "after one that doesn't count", Pod: pod("c1"), Objects: objects(1, attached("gone"), testkit.Attachment("csi.other", "n", "pv-other1"), attached("pv-local"), attached("pv-c2")), Want: tooMany("csi.example", 2, 1)},
		// As in kube-scheduler: only what pods there have is left out of what is new.
		{Name: "of the pod's own disk counts besides", Pod: pod("c1"), Objects: objects(1, attached("pv-c1")), Want: tooMany("csi.example", 2, 1)},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	to := func(claims ...string) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Uses(claims...) }
	}
	x := rt.Signatures{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("n")}, Objects: storage(), Pods: rt.Pods{
		there("c3", "d2").Volume("v", inlineEBS("vol-3")), testkit.Pod("y").Uses("c4").Volume("v", inlineEBS("vol-4")).NominatedTo("n")}}
	run := func(from func(*testkit.PodBuilder), cases ...rt.Change) {
		x.Pod = func() *testkit.PodBuilder { p := testkit.Pod("p"); from(p); return p }
		x.Cases = cases
		x.Run(t)
	}
	run(to("c1"),
		rt.Differs("another disk of the driver", to("c2"), rt.Same),
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("volumes of another kind beside", func(p *testkit.PodBuilder) {
			p.Volume("v", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
		}, rt.Same),
		rt.Differs("a claim that leads to no driver beside", to("c1", "local"), rt.Same),
		rt.Differs("a claim without a volume, of the driver", to("d1"), rt.Same),
		rt.Differs("a disk of another driver", to("other1"), rt.Local),
		rt.Differs("one more disk", to("c1", "c2"), rt.Local),
		rt.Differs("a disk that a pod uses", to("c3"), rt.Local),
		rt.Differs("a disk that a nominated pod uses", to("c4"), rt.Local),
		rt.Differs("a disk that several claims lead to", to("shared"), rt.Local),
		rt.Differs("a claim without a volume that a pod uses", to("d2"), rt.Local),
		rt.Differs("no volumes", to(), rt.Local),
		rt.Differs("a claim that doesn't exist", to("gone"), rt.Local))
	run(to("c3"), rt.Differs("disks that pods use", to("c4"), rt.Local))
	run(to("ebs1"),
		rt.Differs("in-tree disks", to("ebs2"), rt.Same),
		rt.Differs("an in-tree disk that a pod has in its spec", to("ebs3"), rt.Local),
		rt.Differs("the same in the pod itself", func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Volume("v", inlineEBS("vol-1")) }, rt.Local))
	run(to("ebs3"),
		rt.Differs("in-tree disks that pods have in their spec", to("ebs4"), rt.Local),
		rt.Differs("a volume of the driver that is the same disk", to("csi3"), rt.Same),
		rt.Differs("the same in the pod itself", func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Volume("v", inlineEBS("vol-3")) }, rt.Same))
	run(to("gone"), rt.Differs("claims that don't exist", to("gone2"), rt.Local))
}
