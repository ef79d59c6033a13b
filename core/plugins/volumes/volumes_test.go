package volumes_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/nodevolumelimits"
	"github.com/berthproject/berth/core/plugins/volumebinding"
	"github.com/berthproject/berth/core/plugins/volumerestrictions"
	"github.com/berthproject/berth/core/plugins/volumes"
	"github.com/berthproject/berth/core/plugins/volumezone"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

func classes() rt.Objects {
	return rt.Objects{
		testkit.Class("delayed", "csi.example").Obj(),
		testkit.Class("immediate", "csi.example").Mode(storagev1.VolumeBindingImmediate).Obj(),
		testkit.Class("unset", "csi.example").With(func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }).Obj(),
		testkit.Class("ebs", "kubernetes.io/aws-ebs").Obj(),
		testkit.Class("vsphere", "kubernetes.io/vsphere-volume").Obj(),
		testkit.Class("nobody", "").Obj(),
	}
}

func ebs(id string) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
}

func inline(id string) v1.VolumeSource {
	return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
}

func TestClaimNotFound(t *testing.T) {
	const want = `persistentvolumeclaim "c" not found`
	if got := volumes.ClaimNotFound("c"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDelayed(t *testing.T) {
	world := rt.NewCluster(t, nil, classes(), nil)
	for class, want := range map[string]bool{"delayed": true, "immediate": false, "absent": false, "": false} {
		if got, err := volumes.Delayed(testkit.Claim("c", class).Obj(), world.State); got != want || err != nil {
			t.Errorf("class %q: %v, %v, want %v", class, got, err, want)
		}
	}
	annotated := testkit.Claim("c", "immediate").Annotation(v1.BetaStorageClassAnnotation, "delayed")
	if got, err := volumes.Delayed(annotated.Obj(), world.State); !got || err != nil {
		t.Errorf("the class of the beta annotation: %v, %v, want true", got, err)
	}
	const want = `VolumeBindingMode not set for StorageClass "unset"`
	if _, err := volumes.Delayed(testkit.Claim("c", "unset").Obj(), world.State); err == nil || err.Error() != want {
		t.Errorf("a class without a mode: %v, want %s", err, want)
	}
}

func TestCheckOwner(t *testing.T) {
	pod := cluster.NewSchema().ParsePod(testkit.Pod("p").Obj())
	if err := volumes.CheckOwner(pod, testkit.Claim("p-v", "delayed").MadeFor("p").Obj()); err != nil {
		t.Errorf("the pod's own claim: %v", err)
	}
	const want = "PVC default/p-v was not created for pod default/p (pod is not owner)"
	for name, c := range map[string]*testkit.ClaimBuilder{
		"another pod's":  testkit.Claim("p-v", "delayed").MadeFor("q"),
		"nobody's":       testkit.Claim("p-v", "delayed"),
		"not controlled": testkit.Claim("p-v", "delayed").MadeFor("p").With(func(c *v1.PersistentVolumeClaim) { c.OwnerReferences[0].Controller = nil }),
	} {
		if err := volumes.CheckOwner(pod, c.Obj()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestReadWriteOncePod(t *testing.T) {
	for _, c := range []struct {
		modes []v1.PersistentVolumeAccessMode
		want  bool
	}{
		{[]v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}, true},
		{[]v1.PersistentVolumeAccessMode{v1.ReadWriteMany, v1.ReadWriteOncePod}, true},
		{[]v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, false},
		{nil, false},
	} {
		if got := volumes.ReadWriteOncePod(testkit.Claim("c", "").Modes(c.modes...).Obj()); got != c.want {
			t.Errorf("%v: %v, want %v", c.modes, got, c.want)
		}
	}
}

func TestRejected(t *testing.T) {
	r := volumes.Rejected("Plugin", "why")
	if r.Plugin != "Plugin" || len(r.Messages) != 1 || r.Messages[0] != "why" || !r.Final || !r.OfPod {
		t.Errorf("got %+v, want a final reason of the pod", r)
	}
}

// A disk is named after its driver and its handle, or else after its claim.
func TestDiskOf(t *testing.T) {
	claim := func(class string) *testkit.ClaimBuilder { return testkit.Claim("c", class) }
	none := cluster.Disk{}
	of := func(driver, name string) cluster.Disk { return cluster.Disk{Driver: driver, Name: driver + "/" + name} }
	own := "\x00default/c"
	for _, c := range []struct {
		name   string
		claim  *testkit.ClaimBuilder
		volume *testkit.VolumeBuilder
		want   cluster.Disk
	}{
		{"a driver's volume", claim("delayed").Bound("pv"), testkit.Volume("pv", "delayed").CSI("csi.other", "h"), of("csi.other", "h")},
		{"a volume without a handle", claim("delayed").Bound("pv"), testkit.Volume("pv", "delayed").CSI("csi.other", ""), none},
		{"a volume without a driver", claim("delayed").Bound("pv"), testkit.Volume("pv", "delayed").CSI("", "h"), none},
		{"an in-tree volume of a plugin that has moved", claim("").Bound("pv"), testkit.Volume("pv", "").Source(ebs("vol-1")), of("ebs.csi.aws.com", "vol-1")},
		{"an in-tree volume of one that is left out", claim("").Bound("pv"), testkit.Volume("pv", "").Source(v1.PersistentVolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "p"}}), none},
		{"a volume of no driver", claim("").Bound("pv"), testkit.Volume("pv", "").Source(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}}), none},
		{"no volume yet", claim("delayed"), nil, of("csi.example", own)},
		{"no volume yet, of an in-tree provisioner that has moved", claim("ebs"), nil, of("ebs.csi.aws.com", own)},
		{"no volume yet, of one that is left out", claim("vsphere"), nil, none},
		{"no volume yet, of no provisioner", claim("nobody"), nil, none},
		{"no volume yet, and no class", claim(""), nil, none},
		{"no volume yet, and a class that doesn't exist", claim("absent"), nil, none},
		{"a volume that doesn't exist", claim("delayed").Bound("gone"), nil, of("csi.example", own)},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := classes()
			if c.volume != nil {
				objects = append(objects, c.volume.Obj())
			}
			world := rt.NewCluster(t, nil, objects, nil)
			got, ok := volumes.DiskOf(c.claim.Obj(), world.State)
			if got != c.want || ok != (c.want != none) {
				t.Errorf("got %+v, %v, want %+v", got, ok, c.want)
			}
		})
	}
}

func TestHas(t *testing.T) {
	token := v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		want bool
	}{
		{"no volumes", testkit.Pod("p"), false},
		{"a claim", testkit.Pod("p").Uses("c"), true},
		{"an ephemeral volume", testkit.Pod("p").Ephemeral("v"), true},
		{"an in-tree disk", testkit.Pod("p").Volume("token", token).Volume("v", inline("vol-1")), true},
		{"volumes of other kinds", testkit.Pod("p").Volume("token", token).Volume("v", v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{}}), false},
	} {
		if got := volumes.Has(cluster.NewSchema().ParsePod(c.pod.Obj())); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Which waiting pods are signed again, for each plugin whose signature follows
// claims. ruletest checks that none is missing whose signature has changed.
func TestReclassifies(t *testing.T) {
	csi := func(name, handle string) *testkit.VolumeBuilder {
		return testkit.Volume(name, "delayed").CSI("csi.example", handle)
	}
	local := func(name string) *testkit.VolumeBuilder {
		return testkit.Volume(name, "delayed").Source(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}})
	}
	waiting := rt.Pods{
		testkit.Pod("none"), testkit.Pod("c").Uses("c"), testkit.Pod("d").Uses("d"), testkit.Pod("ephemeral").Ephemeral("v"),
		testkit.Pod("elsewhere").Namespaced("other").Uses("c"), testkit.Pod("bound").Uses("bound"), testkit.Pod("local").Uses("local"),
		testkit.Pod("named").Uses("named"), testkit.Pod("missing").Uses("missing"),
	}
	const all = "c d ephemeral elsewhere bound local named missing"
	bound := func(name, volume string) runtime.Object { return testkit.Claim(name, "delayed").Bound(volume).Obj() }
	objects := append(classes(),
		testkit.Claim("c", "delayed").Obj(), testkit.Claim("d", "delayed").Modes(v1.ReadWriteOncePod).Obj(),
		testkit.Claim("ephemeral-v", "delayed").MadeFor("ephemeral").Obj(),
		testkit.Claim("c", "delayed").With(func(c *v1.PersistentVolumeClaim) { c.Namespace = "other" }).Obj(),
		bound("bound", "pv-csi"), csi("pv-csi", "h").Obj(), bound("local", "pv-local"), local("pv-local").Obj(),
		testkit.Claim("named", "delayed").Obj(), local("pv-named").ClaimedBy("named", "").Obj(), local("pv-free").Obj(),
	)
	user := func(name string, claims ...string) *testkit.PodBuilder {
		return testkit.Pod(name).Uses(claims...).On("n")
	}
	set := func(o runtime.Object) func(*rt.Cluster) { return func(c *rt.Cluster) { c.Set(o) } }
	zone := func(b *testkit.VolumeBuilder) *testkit.VolumeBuilder {
		return b.In(v1.LabelTopologyZone, "a").Label(v1.LabelTopologyZone, "a")
	}
	cases := []rt.Event[string]{
		rt.Reclassified("a pod that uses a claim comes", func(c *rt.Cluster) { c.Place(user("x", "d")) }, "d"),
		rt.Reclassified("a pod that uses two claims comes", func(c *rt.Cluster) { c.Place(user("x", "d", "c")) }, "c d"),
		rt.Reclassified("a pod that uses a claim goes", func(c *rt.Cluster) { c.Delete("user") }, "c"),
		rt.Reclassified("a pod that uses a claim is nominated", func(c *rt.Cluster) { c.Place(testkit.Pod("x").Uses("d").NominatedTo("n")) }, "d"),
		rt.Reclassified("a nominated pod that uses a claim goes elsewhere", func(c *rt.Cluster) { c.Nominate(c.PodNominated("nominated"), "") }, "bound"),
		rt.Reclassified("a pod without claims comes", func(c *rt.Cluster) { c.Place(testkit.Pod("x").On("n")) }, ""),
		rt.Reclassified("a pod of another namespace comes", func(c *rt.Cluster) { c.Place(user("x", "c").Namespaced("other")) }, "elsewhere"),
		rt.Reclassified("a claim changes", set(testkit.Claim("c", "immediate").Obj()), "c"),
		rt.Reclassified("a claim comes", set(testkit.Claim("missing", "delayed").Obj()), "missing"),
		rt.Reclassified("a claim goes", func(c *rt.Cluster) { c.RemoveObject(cluster.ClaimKind, "default", "d") }, "d"),
		rt.Reclassified("an ephemeral claim changes", set(testkit.Claim("ephemeral-v", "delayed").Obj()), "ephemeral"),
		rt.Reclassified("a class changes", set(testkit.Class("delayed", "csi.other").Obj()), all),
		rt.Reclassified("a class goes", func(c *rt.Cluster) { c.RemoveObject(cluster.StorageClassKind, "", "delayed") }, all),
		rt.Reclassified("a volume that a claim names changes", set(zone(local("pv-local")).Obj()), "local"),
		rt.Reclassified("a volume that a claim names goes", func(c *rt.Cluster) { c.RemoveObject(cluster.VolumeKind, "", "pv-local") }, "local"),
		rt.Reclassified("a volume that names a claim changes", set(local("pv-named").Obj()), "named"),
		rt.Reclassified("a volume that names a claim goes", func(c *rt.Cluster) { c.RemoveObject(cluster.VolumeKind, "", "pv-named") }, "named"),
		rt.Reclassified("a volume comes to name a claim", set(local("pv-free").ClaimedBy("c", "").Obj()), "c"),
		rt.Reclassified("a volume comes to name another claim", set(local("pv-named").ClaimedBy("c", "").Obj()), "c named"),
		rt.Reclassified("a volume that nobody names changes", set(zone(local("pv-free")).Obj()), ""),
		rt.Reclassified("a driver's volume that a claim names changes", set(csi("pv-csi", "other").Obj()), all),
		rt.Reclassified("a driver's volume that a claim names goes", func(c *rt.Cluster) { c.RemoveObject(cluster.VolumeKind, "", "pv-csi") }, all),
		rt.Reclassified("a driver's volume that nobody names comes", set(csi("pv-new", "new").Obj()), ""),
		rt.Reclassified("another volume of the same disk comes", set(csi("pv-new", "h").Obj()), all),
		rt.Reclassified("a node comes", func(c *rt.Cluster) { c.Node(testkit.Node("m")) }, ""),
		rt.Reclassified("a driver comes", set(testkit.CSIDriver("csi.example", true)), ""),
		rt.Reclassified("a Service comes", set(&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"}}), ""),
	}
	for _, p := range []framework.Plugin{volumebinding.Plugin{}, volumerestrictions.Plugin{}, nodevolumelimits.Plugin{}, volumezone.Plugin{}} {
		t.Run(p.Name(), func(t *testing.T) {
			rt.Reclassifies{Plugin: rt.Is(p), Nodes: rt.Nodes{testkit.Node("n")}, Objects: objects,
				Pods: rt.Pods{user("user", "c"), testkit.Pod("nominated").Uses("bound").NominatedTo("n")}, Waiting: waiting, Cases: cases}.Run(t)
		})
	}
}
