package volumerestrictions_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/plugins/volumerestrictions"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// Every reason of the plugin against a node.
const (
	noDisk = "Reject: node(s) had no available disk"
	inUse  = "Reject: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

var plugin = rt.Is(volumerestrictions.Plugin{})

func nodes() rt.Nodes { return rt.Nodes{testkit.Node("a"), testkit.Node("b")} }

const (
	readOnly  = true
	readWrite = false
)

func gce(name string, ro bool) v1.VolumeSource {
	return v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: name, ReadOnly: ro}}
}

func ebs(id string, ro bool) v1.VolumeSource {
	return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id, ReadOnly: ro}}
}

func iscsi(iqn string, ro bool) v1.VolumeSource {
	return v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "portal", IQN: iqn, ReadOnly: ro}}
}

func rbd(pool, image string, ro bool, monitors ...string) v1.VolumeSource {
	return v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: monitors, RBDPool: pool, RBDImage: image, ReadOnly: ro}}
}

func TestSharedDisks(t *testing.T) {
	// one has the pod use a disk while another pod uses one on node a.
	one := func(name string, used, wanted v1.VolumeSource, want string) rt.Case {
		return rt.Case{Name: name, Pod: testkit.Pod("p").Volume("v", wanted), Pods: rt.Pods{testkit.Pod("x").Volume("w", used).On("a")}, Want: rt.Want{"a": want, "b": rt.OK}}
	}
	rt.Table{Plugin: plugin, Nodes: nodes(), Cases: []rt.Case{
		{Name: "no volumes", Pod: testkit.Pod("p"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "volumes of another kind", Pod: testkit.Pod("p").Volume("v", v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}), Want: rt.Want{rt.All: rt.Skip}},
		one("GCE: one disk", gce("d", readWrite), gce("d", readWrite), noDisk),
		one("GCE: another disk", gce("d", readWrite), gce("e", readWrite), rt.OK),
		one("GCE: both read only", gce("d", readOnly), gce("d", readOnly), rt.OK),
		one("GCE: one of them read only", gce("d", readOnly), gce("d", readWrite), noDisk),
		one("GCE: the other read only", gce("d", readWrite), gce("d", readOnly), noDisk),
		one("EBS: one disk", ebs("d", readWrite), ebs("d", readWrite), noDisk),
		one("EBS: another disk", ebs("d", readWrite), ebs("e", readWrite), rt.OK),
		one("EBS: both read only", ebs("d", readOnly), ebs("d", readOnly), noDisk),
		one("iSCSI: one target", iscsi("d", readWrite), iscsi("d", readWrite), noDisk),
		one("iSCSI: another target", iscsi("d", readWrite), iscsi("e", readWrite), rt.OK),
		one("iSCSI: both read only", iscsi("d", readOnly), iscsi("d", readOnly), rt.OK),
		one("iSCSI: one of them read only", iscsi("d", readOnly), iscsi("d", readWrite), noDisk),
		one("iSCSI: the other read only", iscsi("d", readWrite), iscsi("d", readOnly), noDisk),
		one("RBD: one image", rbd("p", "i", readWrite, "m"), rbd("p", "i", readWrite, "m"), noDisk),
		one("RBD: a monitor in common", rbd("p", "i", readWrite, "m", "n"), rbd("p", "i", readWrite, "o", "n"), noDisk),
		one("RBD: no monitor in common", rbd("p", "i", readWrite, "m"), rbd("p", "i", readWrite, "n"), rt.OK),
		one("RBD: another pool", rbd("p", "i", readWrite, "m"), rbd("q", "i", readWrite, "m"), rt.OK),
		one("RBD: another image", rbd("p", "i", readWrite, "m"), rbd("p", "j", readWrite, "m"), rt.OK),
		one("RBD: both read only", rbd("p", "i", readOnly, "m"), rbd("p", "i", readOnly, "m"), rt.OK),
		one("RBD: one of them read only", rbd("p", "i", readOnly, "m"), rbd("p", "i", readWrite, "m"), noDisk),
		one("RBD: the other read only", rbd("p", "i", readWrite, "m"), rbd("p", "i", readOnly, "m"), noDisk),
		one("of two kinds", gce("d", readWrite), ebs("d", readWrite), rt.OK),
		one("of two kinds, the other way", iscsi("d", readWrite), gce("d", readWrite), rt.OK),
		{Name: "one of several volumes", Pod: testkit.Pod("p").Volume("v", gce("e", readWrite)).Volume("w", gce("d", readWrite)),
			Pods: rt.Pods{testkit.Pod("x").Volume("v", ebs("d", readWrite)).Volume("w", gce("d", readWrite)).On("a")}, Want: rt.Want{"a": noDisk, "b": rt.OK}},
		{Name: "of one of several pods", Pod: testkit.Pod("p").Volume("v", gce("d", readWrite)),
			Pods: rt.Pods{testkit.Pod("x").Volume("v", gce("d", readWrite)).On("a"), testkit.Pod("y").On("a")}, Want: rt.Want{"a": noDisk, "b": rt.OK}},
	}}.Filter(t)
}

func claim(name string, modes ...v1.PersistentVolumeAccessMode) runtime.Object {
	return testkit.Claim(name, "fast").Modes(modes...).Obj()
}

// KEP-2485: one pod at a time uses a ReadWriteOncePod claim, on whatever node.
func TestReadWriteOncePod(t *testing.T) {
	uses := func(claims ...string) *testkit.PodBuilder { return testkit.Pod("p").Uses(claims...) }
	other := func(claims ...string) rt.Pods { return rt.Pods{testkit.Pod("x").Uses(claims...).On("a")} }
	rejected := rt.Want{rt.All: inUse}
	skip := rt.Want{rt.All: rt.Skip}
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: rt.Objects{claim("one", v1.ReadWriteOncePod), claim("two", v1.ReadWriteOncePod), claim("many", v1.ReadWriteMany)}, Cases: []rt.Case{
		{Name: "nobody uses it", Pod: uses("one"), Want: skip},
		{Name: "another pod uses it", Pod: uses("one"), Pods: other("one"), Want: rejected},
		{Name: "another pod uses another", Pod: uses("one"), Pods: other("two"), Want: skip},
		{Name: "one of two", Pod: uses("one", "two"), Pods: other("two"), Want: rejected},
		{Name: "both", Pod: uses("one", "two"), Pods: other("one", "two"), Want: rejected},
		{Name: "twice in the pod itself", Pod: uses("one", "one"), Want: skip},
		{Name: "of another access mode", Pod: uses("many"), Pods: other("many"), Want: skip},
		{Name: "another pod of another namespace", Pod: uses("one"), Pods: rt.Pods{testkit.Pod("x").Namespaced("other").Uses("one").On("a")}, Want: skip},
		{Name: "a pod is nominated with it: it doesn't use it yet", Pod: uses("one"), Pods: rt.Pods{testkit.Pod("x").Uses("one").NominatedTo("a")}, Want: rt.Want{rt.All: rt.OK}},
		{Name: "and a disk that is used: the disk speaks", Pod: uses("one").Volume("v", gce("d", readWrite)),
			Pods: rt.Pods{testkit.Pod("x").Uses("one").Volume("v", gce("d", readWrite)).On("a")}, Want: rt.Want{"a": noDisk, "b": inUse}},
		{Name: "the claim doesn't exist", Pod: uses("none"), Want: rt.Want{rt.All: rt.Everywhere(`persistentvolumeclaim "none" not found`)}},
		{Name: "the first that doesn't exist", Pod: uses("one", "none", "neither"), Pods: other("one"), Want: rt.Want{rt.All: rt.Everywhere(`persistentvolumeclaim "none" not found`)}},
		{Name: "an ephemeral one is its own", Pod: testkit.Pod("p").Ephemeral("v"), Objects: rt.Objects{claim("p-v", v1.ReadWriteOncePod)}, Pods: other("p-v"), Want: skip},
		{Name: "one after an ephemeral one", Pod: testkit.Pod("p").Ephemeral("v").Uses("one"), Pods: other("one"), Want: rejected},
		{Name: "one after one of another mode", Pod: uses("many", "one"), Pods: other("one"), Want: rejected},
	}}.Filter(t)
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: rt.Objects{claim("one", v1.ReadWriteOncePod)}, Cases: []rt.Case{
		{Name: "nothing is scored", Pod: uses("one"), Pods: rt.Pods{testkit.Pod("x").Uses("one").NominatedTo("a")}, Want: rt.Want{rt.All: "0"}},
	}}.Score(t)
}

func TestSignature(t *testing.T) {
	x := rt.Signatures{Plugin: plugin, Nodes: nodes(), Objects: rt.Objects{claim("used", v1.ReadWriteOncePod), claim("used2", v1.ReadWriteOncePod), claim("free", v1.ReadWriteOncePod), claim("many", v1.ReadWriteMany)},
		Pods: rt.Pods{testkit.Pod("x").Uses("used", "used2", "many").On("a")}}
	disk := func(source v1.VolumeSource) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Volume("v", source) }
	}
	claims := func(names ...string) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Uses(names...) }
	}
	run := func(from func(*testkit.PodBuilder), cases ...rt.Change) {
		x.Pod = func() *testkit.PodBuilder { p := testkit.Pod("p"); from(p); return p }
		x.Cases = cases
		x.Run(t)
	}
	run(disk(gce("d", readWrite)),
		rt.Differs("GCE: name of the pod and of the volume", func(p *testkit.PodBuilder) { p.Name = "q"; p.Spec.Volumes[0].Name = "w" }, rt.Same),
		rt.Differs("GCE: disk", disk(gce("e", readWrite)), rt.Local),
		rt.Differs("GCE: read only", disk(gce("d", readOnly)), rt.Local),
		rt.Differs("GCE: a disk of another kind", disk(ebs("d", readWrite)), rt.Local),
		rt.Differs("GCE: two", func(p *testkit.PodBuilder) { p.Volume("w", gce("d", readWrite)) }, rt.Local),
		rt.Differs("GCE: a volume that can be shared beside", func(p *testkit.PodBuilder) { p.Volume("w", v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}) }, rt.Same),
		rt.Differs("GCE: none", func(p *testkit.PodBuilder) { p.Spec.Volumes = nil }, rt.Local))
	run(disk(ebs("d", readWrite)),
		rt.Differs("EBS: disk", disk(ebs("e", readWrite)), rt.Local),
		rt.Differs("EBS: read only is the same", disk(ebs("d", readOnly)), rt.Same))
	run(disk(iscsi("d", readWrite)),
		rt.Differs("iSCSI: target", disk(iscsi("e", readWrite)), rt.Local),
		rt.Differs("iSCSI: read only", disk(iscsi("d", readOnly)), rt.Local),
		rt.Differs("iSCSI: a disk of another kind", disk(gce("d", readWrite)), rt.Local))
	run(disk(rbd("p", "i", readWrite, "m", "n")),
		rt.Differs("RBD: monitor", disk(rbd("p", "i", readWrite, "m", "o")), rt.Local),
		rt.Differs("RBD: number of monitors", disk(rbd("n", "p", readWrite, "m")), rt.Local),
		rt.Differs("RBD: pool", disk(rbd("q", "i", readWrite, "m", "n")), rt.Local),
		rt.Differs("RBD: image", disk(rbd("p", "j", readWrite, "m", "n")), rt.Local),
		rt.Differs("RBD: read only", disk(rbd("p", "i", readOnly, "m", "n")), rt.Local))
	run(claims("free"),
		rt.Differs("claims: that one pod uses", claims("used"), rt.Group),
		rt.Differs("claims: of another mode", claims("many"), rt.Same),
		rt.Differs("claims: that doesn't exist", claims("missing"), rt.Group))
	run(claims("used"),
		rt.Differs("claims: another that is used", claims("used2"), rt.Group),
		rt.Differs("claims: one more that is used", claims("used", "used2"), rt.Group),
		rt.Differs("claims: one more that is free", claims("used", "free"), rt.Same))
	run(claims("missing"),
		rt.Differs("claims: another that doesn't exist", claims("missing2"), rt.Group))
	x.Objects = append(x.Objects, testkit.Claim("used", "fast").Modes(v1.ReadWriteOncePod).With(func(c *v1.PersistentVolumeClaim) { c.Namespace = "other" }).Obj())
	x.Pods = append(x.Pods, testkit.Pod("y").Namespaced("other").Uses("used").On("a"))
	run(claims("used"), rt.Differs("claims: of another namespace", func(p *testkit.PodBuilder) { p.Namespaced("other") }, rt.Group))
	// A nominated pod will use its claims.
	x.Pods = rt.Pods{testkit.Pod("x").Uses("used").NominatedTo("a")}
	run(claims("free"), rt.Differs("claims: that a nominated pod will use", claims("used"), rt.Group))
}

func TestHints(t *testing.T) {
	user := func(name, claim string) *testkit.PodBuilder { return testkit.Pod(name).Uses(claim).On("a") }
	rt.Hints{
		Case: rt.Case{Plugin: plugin, Nodes: nodes(), Objects: rt.Objects{claim("one", v1.ReadWriteOncePod), claim("two", v1.ReadWriteOncePod)}, Pod: testkit.Pod("p").Uses("one"),
			Pods: rt.Pods{user("x", "one"), user("y", "two"), user("z", "one").Namespaced("other")}},
		Cases: []rt.Event[bool]{
			rt.Hint("the pod that uses the claim leaves", func(c *rt.Cluster) { c.Delete("x") }, true),
			rt.Hint("a pod that uses another leaves", func(c *rt.Cluster) { c.Delete("y") }, false),
			rt.Hint("a pod of another namespace leaves", func(c *rt.Cluster) { c.Delete("z") }, false),
			rt.Hint("a pod that uses the claim comes", func(c *rt.Cluster) { c.Place(user("new", "one")) }, false),
			rt.Hint("a node comes", func(c *rt.Cluster) { c.Node(testkit.Node("c")) }, false),
		},
	}.Run(t)
}
