package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

func claim(name, volume string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: volume}}
}

// boundClaim is a claim whose binding to a volume is complete.
func boundClaim(name, volume string) *v1.PersistentVolumeClaim {
	c := claim(name, volume)
	c.Annotations = map[string]string{cluster.AnnBindCompleted: "yes"}
	return c
}

// volume is a CSI volume of class fast.
func volume(name string, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{StorageClassName: "fast"}}
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: name}
	for _, do := range change {
		do(pv)
	}
	return pv
}

func claimedBy(name string) func(*v1.PersistentVolume) {
	return func(pv *v1.PersistentVolume) {
		pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: name}
	}
}

// only demands nodes with one of the values of a label, in one or more terms.
func only(key string, values ...string) func(*v1.PersistentVolume) {
	return func(pv *v1.PersistentVolume) {
		if pv.Spec.NodeAffinity == nil {
			pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{}}
		}
		r := pv.Spec.NodeAffinity.Required
		r.NodeSelectorTerms = append(r.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}}})
	}
}

func attachment(name, node, volume string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
}

func capacity(name, left string, zone ...string) *storagev1.CSIStorageCapacity {
	q := resource.MustParse(left)
	c := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: name}, StorageClassName: "fast", Capacity: &q}
	if len(zone) > 0 {
		c.NodeTopology = matching(v1.LabelTopologyZone, zone[0])
	}
	return c
}

// stored is a state with nodes a0 and a1 in zone a, b0 in zone b, and pods that
// use claims: c0 on a0 and b0, c1 on a1.
func stored() *cluster.State {
	s := newState()
	setNode(s, testkit.Node("a0").Zone("a"))
	setNode(s, testkit.Node("a1").Zone("a"))
	setNode(s, testkit.Node("b0").Zone("b"))
	for i, use := range []struct{ node, claim string }{{"b0", "c0"}, {"a0", "c0"}, {"a0", "c0"}, {"a1", "c1"}, {"gone", "c2"}} {
		p := testkit.Pod(fmt.Sprint("p", i))
		p.Spec.Volumes = []v1.Volume{claimVolume(use.claim)}
		place(s, p, use.node)
	}
	for i, node := range []string{"a0", "b0", "gone"} {
		p := testkit.Pod(fmt.Sprint("nominee", i))
		p.Spec.Volumes = []v1.Volume{claimVolume("awaited")}
		s.Nominate(s.Schema.ParsePod(p.Obj()), node)
	}
	s.SetObject(boundClaim("c1", "pv1"))
	s.SetObject(claim("c3", ""))
	s.SetObject(attachment("va", "b0", "attached"))
	return s
}

// TestTouchedNodes has, for each kind of object, the nodes whose local rules read
// it: they are what a change of it touches, each once, by index, after it.
func TestTouchedNodes(t *testing.T) {
	inTree := func(pv *v1.PersistentVolume) {
		pv.Spec.CSI, pv.Spec.AWSElasticBlockStore = nil, &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}
	}
	for _, c := range []struct {
		name string
		o    cluster.Object
		want string
	}{
		{"namespace", &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, ""},
		{"budget", &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}, ""},
		{"claim: those of the pods that use it", claim("c0", ""), "a0 b0"},
		{"claim of a pod whose node isn't known", claim("c2", ""), ""},
		{"claim of nominated pods: the nodes that they wait for", claim("awaited", ""), "a0 b0"},
		{"claim of nobody", claim("c9", ""), ""},
		{"volume of a bound claim: those of the pods that use it", volume("pv1", claimedBy("c1")), "a1"},
		{"volume that is attached: that node", volume("attached", claimedBy("c1")), "b0"},
		{"volume that anybody may have: all that it admits", volume("pv", only(v1.LabelTopologyZone, "a")), "a0 a1"},
		{"volume without affinity: all", volume("pv"), "a0 a1 b0"},
		{"volume for a claim that isn't bound: all that it admits", volume("pv", claimedBy("c3"), only(v1.LabelTopologyZone, "b")), "b0"},
		{"volume for a claim that isn't known", volume("pv", claimedBy("c9")), ""},
		{"volume that is pinned to a host", volume("pv", only(v1.LabelHostname, "a1")), "a1"},
		{"volume that is pinned to a host that isn't known", volume("pv", only(v1.LabelHostname, "gone")), ""},
		{"volume for one of two hosts", volume("pv", only(v1.LabelHostname, "a1", "b0")), "a1 b0"},
		{"volume for a host or a zone", volume("pv", only(v1.LabelHostname, "a1"), only(v1.LabelTopologyZone, "b")), "a1 b0"},
		{"in-tree volume, whose affinity may be translated: all", volume("pv", inTree, only(v1.LabelTopologyZone, "b")), "a0 a1 b0"},
		{"storage class: all", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}, "a0 a1 b0"},
		{"device class: all", testkit.DeviceClass("gpus", "example.com/gpu"), "a0 a1 b0"},
		{"CSI driver: all", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example"}}, "a0 a1 b0"},
		{"CSINode: its node", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "a1"}}, "a1"},
		{"CSINode of a node that isn't known", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}, ""},
		{"capacity: where it is reached from", capacity("cap", "1Gi", "a"), "a0 a1"},
		{"capacity that is reached from nowhere", capacity("cap", "1Gi"), ""},
		{"attachment: its node", attachment("va2", "a0", "pv"), "a0"},
		{"attachment to a node that isn't known", attachment("va2", "gone", "pv"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stored()
			touched := func(do func()) string {
				from := s.Head()
				do()
				return strings.TrimPrefix(strings.ReplaceAll(journal(s, from), ", NodeTouched", ""), "ObjectSet ")
			}
			want := c.want
			if want == "" {
				want = "ObjectSet"
			}
			s.RemoveObject(cluster.KindOf(c.o), c.o.GetNamespace(), c.o.GetName())
			if got := touched(func() { s.SetObject(c.o) }); got != want {
				t.Errorf("that it comes touches %s, want %s", got, want)
			}
			if got := touched(func() { s.SetObject(c.o) }); got != "" {
				t.Errorf("that the same is set again is recorded: %s", got)
			}
			if got := touched(func() { s.RemoveObject(cluster.KindOf(c.o), c.o.GetNamespace(), c.o.GetName()) }); got != want {
				t.Errorf("that it goes touches %s, want %s", got, want)
			}
			if got := touched(func() { s.RemoveObject(cluster.KindOf(c.o), c.o.GetNamespace(), c.o.GetName()) }); got != "" {
				t.Errorf("that it goes twice is recorded: %s", got)
			}
		})
	}
}

// An update touches what the object touched before and touches now.
func TestAnUpdateTouchesBothWays(t *testing.T) {
	s := stored()
	s.SetObject(volume("pv", only(v1.LabelTopologyZone, "b")))
	from := s.Head()
	s.SetObject(volume("pv", only(v1.LabelHostname, "a0")))
	if got := journal(s, from); got != "ObjectSet, NodeTouched a0, NodeTouched b0" {
		t.Errorf("recorded: %s", got)
	}
}

// TestRenewedObjects: a new version in which nothing has changed that Berth
// reads touches nothing, but is the one that is written back.
func TestRenewedObjects(t *testing.T) {
	s := stored()
	for _, c := range []struct {
		old, renewed, changed cluster.Object
	}{
		{claim("c0", ""), annotated(claim("c0", "")), claim("c0", "pv")},
		{volume("pv"), annotated(volume("pv")), volume("pv", claimedBy("c0"))},
		{&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}, annotated(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Parameters: map[string]string{"a": "b"}}),
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "x"}},
		{&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, annotated(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}),
			&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "red"}}}},
		{capacity("cap", "1Gi"), annotated(capacity("cap", "1024Mi")), capacity("cap", "2Gi")},
	} {
		s.SetObject(c.old)
		from, version := s.Head(), s.SignatureVersion()
		s.SetObject(c.renewed)
		kind := cluster.KindOf(c.old)
		if got := journal(s, from); got != "ObjectRenewed" || s.SignatureVersion() != version {
			t.Errorf("a new version of a %T: recorded %s, pods are signed again %v", c.old, got, s.SignatureVersion() != version)
		}
		if s.Object(kind, c.old.GetNamespace(), c.old.GetName()) != c.renewed {
			t.Errorf("the state holds an old version of a %T", c.old)
		}
		if broken := s.Broken(); len(broken) > 0 {
			t.Errorf("%T: %s", c.old, strings.Join(broken, "\n"))
		}
		from = s.Head()
		mark := s.Mark()
		s.SetObject(c.changed)
		if got, _, _ := strings.Cut(journal(s, from), ","); got != "ObjectSet" {
			t.Errorf("a change of a %T: recorded %s", c.old, got)
		}
		s.Rollback(mark)
		if s.Object(kind, c.old.GetNamespace(), c.old.GetName()) != c.renewed {
			t.Errorf("rolled back, the state holds another version of a %T", c.old)
		}
	}
}

// annotated returns the object with what nobody reads changed.
func annotated[O cluster.Object](o O) O {
	o.SetAnnotations(map[string]string{"note": "x"})
	o.SetResourceVersion("2")
	return o
}

func TestKindsOfObjects(t *testing.T) {
	for kind := cluster.NamespaceKind; kind <= cluster.PodGroupKind; kind++ {
		if got := cluster.KindOf(cluster.NewObject(kind)); got != kind {
			t.Errorf("a new object of kind %d is of kind %d", kind, got)
		}
	}
	if cluster.NewObject(cluster.NoObject) != nil || cluster.NewObject(cluster.PodGroupKind+1) != nil {
		t.Error("there are objects of kinds that don't exist")
	}
	if got := cluster.KindOf(&v1.ConfigMap{}); got != cluster.NoObject {
		t.Errorf("a ConfigMap is of kind %d, want none", got)
	}
}

// TestLookups has what rules find, sorted by name whatever the history.
func TestLookups(t *testing.T) {
	s := stored()
	inZone := func(pv *v1.PersistentVolume) { only(v1.LabelTopologyZone, "a")(pv) }
	beta := func(pv *v1.PersistentVolume) {
		pv.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "slow"}
	}
	handle := func(name string) func(*v1.PersistentVolume) {
		return func(pv *v1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = name }
	}
	local := func(pv *v1.PersistentVolume) { pv.Spec.CSI, pv.Spec.Local = nil, &v1.LocalVolumeSource{} }
	objects := []cluster.Object{
		volume("z"), volume("y", inZone), volume("on-a0", only(v1.LabelHostname, "a0")), volume("slow", beta),
		volume("for-c0", claimedBy("c0")), volume("also-for-c0", claimedBy("c0")), volume("twin", handle("z")), volume("local", local),
		claim("m", "z"), claim("k", "z"), claim("l", "y"),
		attachment("va9", "a0", "z"), attachment("va1", "a0", "y"),
		capacity("cap9", "1Gi"), capacity("cap1", "1Gi"),
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "a0"}}, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}},
		testkit.DeviceClass("newer", "example.com/gpu"), testkit.DeviceClass("gpus", "example.com/gpu"), testkit.DeviceClass("bare", ""),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "red"}}},
	}
	find := func() string {
		anywhere, here := s.FreeVolumes("fast", s.NodeByName("a0").Object)
		slow, _ := s.FreeVolumes("slow", s.NodeByName("a0").Object)
		_, there := s.FreeVolumes("fast", s.NodeByName("b0").Object)
		return fmt.Sprintln("free anywhere", names(anywhere), "here", names(here), "there", names(there), "slow", names(slow)) +
			fmt.Sprintln("for c0", names(s.VolumesClaimed(cluster.ClaimKey{Namespace: "default", Name: "c0"})), "for c9", names(s.VolumesClaimed(cluster.ClaimKey{Namespace: "default", Name: "c9"}))) +
			fmt.Sprintln("naming z", names(s.ClaimsNaming("z")), "y", names(s.ClaimsNaming("y")), "x", names(s.ClaimsNaming("x"))) +
			fmt.Sprintln("attached to a0", names(s.Attachments("a0")), "to b0", names(s.Attachments("b0"))) +
			fmt.Sprintln("capacities", names(s.Capacities("fast")), "of slow", names(s.Capacities("slow"))) +
			fmt.Sprintln("device classes", className(s, "example.com/gpu"), className(s, "deviceclass.resource.kubernetes.io/bare"),
				className(s, "deviceclass.resource.kubernetes.io/gone"), className(s, "example.com/fpga")) +
			fmt.Sprintln("namespaces", names(s.Namespaces()), s.NamespaceLabels("default"), s.NamespaceLabels("far") == nil)
	}
	want := `free anywhere [local twin y z] here [on-a0] there [] slow [slow]
for c0 [also-for-c0 for-c0] for c9 []
naming z [k m] y [l] x []
attached to a0 [va1 va9] to b0 [va]
capacities [cap1 cap9] of slow []
device classes gpus bare none none
namespaces [default other] team=red true
`
	for range 2 {
		for _, o := range objects {
			s.SetObject(o)
		}
		if got := find(); got != want {
			t.Errorf("found:\n%s\nwant:\n%s", got, want)
		}
		for _, o := range objects {
			s.RemoveObject(cluster.KindOf(o), o.GetNamespace(), o.GetName())
		}
		slices.Reverse(objects) // the order in which they come says nothing
	}
	for _, o := range objects {
		s.SetObject(o)
	}
	for name, want := range map[string]bool{"z": true, "twin": true, "y": false, "on-a0": false, "local": false} {
		if got := s.VolumeShared(s.Volume(name)); got != want {
			t.Errorf("several claims may lead to the disk of %s is %v, want %v", name, got, want)
		}
	}
	if s.CSINode("a0") == nil || s.CSIDriver("csi.example") == nil || s.StorageClass("fast") == nil || s.Claim("default", "k") == nil || s.Claim("other", "k") != nil {
		t.Error("an object isn't found by its name")
	}
	var kinds []int
	for _, o := range s.Objects() {
		kinds = append(kinds, int(cluster.KindOf(o)))
	}
	if all := names(s.Objects()); !slices.IsSorted(kinds) || len(all) != len(objects)+3 || all[0] != "default" || all[1] != "other" {
		t.Errorf("all objects, by kind and name: %v", all)
	}
	mark := s.Mark()
	before := find()
	for _, o := range objects {
		s.RemoveObject(cluster.KindOf(o), o.GetNamespace(), o.GetName())
	}
	s.Rollback(mark)
	if got := find(); got != before {
		t.Errorf("rolled back:\n%s\nwant:\n%s", got, before)
	}
}

// className returns the name of the device class that backs a resource.
func className(s *cluster.State, resource v1.ResourceName) string {
	if c := s.DeviceClassOf(resource); c != nil {
		return c.Name
	}
	return "none"
}

func names[O cluster.Object](list []O) []string {
	out := []string{}
	for _, o := range list {
		out = append(out, o.GetName())
	}
	return out
}

func TestClassesAndBinding(t *testing.T) {
	fast := "fast"
	c := claim("c", "")
	if got := cluster.ClaimClass(c); got != "" {
		t.Errorf("a claim without a class is of %q", got)
	}
	c.Spec.StorageClassName = &fast
	if got := cluster.ClaimClass(c); got != "fast" {
		t.Errorf("the claim is of %q, want fast", got)
	}
	c.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "slow"}
	pv := volume("pv")
	if got := cluster.VolumeClass(pv); got != "fast" {
		t.Errorf("the volume is of %q, want fast", got)
	}
	pv.Annotations = c.Annotations
	if claimed, offered := cluster.ClaimClass(c), cluster.VolumeClass(pv); claimed != "slow" || offered != "slow" {
		t.Errorf("with the beta annotation they are of %q and %q, want slow", claimed, offered)
	}
	named := claim("c", "pv")
	unnamed := boundClaim("c", "")
	if cluster.ClaimBound(named) || cluster.ClaimBound(unnamed) || !cluster.ClaimBound(boundClaim("c", "pv")) {
		t.Error("a claim is bound when it names its volume and its binding is complete, and only then")
	}
}

func TestNodeAffinityOfVolumes(t *testing.T) {
	n := testkit.Node("n").Zone("a").Obj()
	unreadable := func(pv *v1.PersistentVolume) {
		only(v1.LabelTopologyZone, "a")(pv)
		pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	}
	byName := func(pv *v1.PersistentVolume) {
		only("", "")(pv)
		pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0] = v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"another"}}}}
	}
	empty := func(pv *v1.PersistentVolume) { pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{} }
	for _, c := range []struct {
		name string
		pv   *v1.PersistentVolume
		want bool
	}{
		{"none", volume("pv"), true},
		{"an empty one", volume("pv", empty), true},
		{"its zone", volume("pv", only(v1.LabelTopologyZone, "b", "a")), true},
		{"another zone", volume("pv", only(v1.LabelTopologyZone, "b")), false},
		{"another zone or its host", volume("pv", only(v1.LabelTopologyZone, "b"), only(v1.LabelHostname, "n")), true},
		{"one that can't be read", volume("pv", unreadable), false},
		{"a name, which isn't read, as in kube-scheduler", volume("pv", byName), true},
	} {
		if got := cluster.VolumeAdmits(c.pv, n); got != c.want {
			t.Errorf("%s: admits the node is %v, want %v", c.name, got, c.want)
		}
	}
}
