package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// A small vocabulary of storage. Claims c0, c1, … are bound to volumes of the
// same number unless they wait.

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func class(name, provisioner string, zones ...string) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	c := &storagev1.StorageClass{ObjectMeta: meta(name), Provisioner: provisioner, VolumeBindingMode: &mode}
	if len(zones) > 0 {
		c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: v1.LabelTopologyZone, Values: zones}}}}
	}
	return c
}

func claim(name, class, volume string) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: meta(name)}
	c.Namespace, c.Spec.StorageClassName, c.Spec.VolumeName = "default", &class, volume
	c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	if volume != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return c
}

func volume(name, class, zone string) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: meta(name)}
	pv.Spec.StorageClassName = class
	pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
	pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: name}
	pv.Status.Phase = v1.VolumeAvailable
	if zone != "" {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	}
	return pv
}

func csiNode(name string, limit int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: meta(name), Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "csi.example", NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}}}}
}

func uses(name string, claims ...string) *testkit.PodBuilder {
	p := testkit.Pod(name)
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: c, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	return p
}

// TestStorageReachesCachedAnswers changes one object of each kind after the
// engine has answered, and asks again: nodes n0 in zone a and n1 in zone b.
func TestStorageReachesCachedAnswers(t *testing.T) {
	set := func(o cluster.Object) func(*cluster.State) { return func(s *cluster.State) { s.SetObject(o) } }
	attachment := func(pv string) cluster.Object {
		return &storagev1.VolumeAttachment{ObjectMeta: meta("va"), Spec: storagev1.VolumeAttachmentSpec{Attacher: "csi.example", NodeName: "n0",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}}
	}
	capacity := func(size string) cluster.Object {
		q := resource.MustParse(size)
		return &storagev1.CSIStorageCapacity{ObjectMeta: meta("cap"), StorageClassName: "fast", Capacity: &q,
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: "a"}}}
	}
	tracked := &storagev1.CSIDriver{ObjectMeta: meta("csi.example"), Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
	taken := volume("pv1", "static", "a")
	taken.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: "stranger"}
	waits, static := claim("c9", "fast", ""), claim("c9", "static", "")
	for _, c := range []struct {
		name   string
		before []cluster.Object
		pod    *testkit.PodBuilder
		on     *testkit.PodBuilder // on n0
		change func(*cluster.State)
		was    string // feasible nodes
		now    string
	}{
		{"a volume is attached", []cluster.Object{claim("c0", "fast", "pv0"), volume("pv0", "fast", ""), volume("pv1", "fast", ""), csiNode("n0", 1)},
			uses("p", "c0"), nil, set(attachment("pv1")), "n0 n1", "n1"},
		{"the volume of an attachment goes", []cluster.Object{claim("c0", "fast", "pv0"), volume("pv0", "fast", ""), taken, attachment("pv1"), csiNode("n0", 1)},
			uses("p", "c0"), nil, func(s *cluster.State) { s.RemoveObject(cluster.VolumeKind, "", "pv1") }, "n1", "n0 n1"},
		{"a pod with the same claim is nominated", []cluster.Object{claim("c0", "fast", "pv0"), volume("pv0", "fast", ""), claim("c1", "fast", "pv1"), volume("pv1", "fast", ""), csiNode("n0", 2)},
			uses("p", "c0"), uses("q", "c1"), func(s *cluster.State) { s.Nominate(s.Schema.ParsePod(uses("r", "c0").Obj()), "n0") }, "n0 n1", "n0 n1"},
		{"a driver's limit falls", []cluster.Object{claim("c0", "fast", "pv0"), volume("pv0", "fast", ""), csiNode("n0", 1)},
			uses("p", "c0"), nil, set(csiNode("n0", 0)), "n0 n1", "n1"},
		{"another pod's claim is bound", []cluster.Object{claim("c0", "fast", "pv0"), volume("pv0", "fast", ""), volume("pv1", "fast", ""), claim("c1", "", ""), csiNode("n0", 1)},
			uses("p", "c0"), uses("q", "c1"), set(claim("c1", "fast", "pv1")), "n0 n1", "n1"},
		{"another pod's volume appears", []cluster.Object{claim("c0", "fast", "pv0"), volume("pv0", "fast", ""), claim("c1", "", "pv1"), csiNode("n0", 1)},
			uses("p", "c0"), uses("q", "c1"), set(volume("pv1", "", "")), "n0 n1", "n1"},
		{"a class allows another zone", []cluster.Object{waits, class("fast", "csi.example", "a")},
			uses("p", "c9"), nil, set(class("fast", "csi.example", "b")), "n0", "n1"},
		{"a volume can be had", []cluster.Object{static, class("static", "kubernetes.io/no-provisioner")},
			uses("p", "c9"), nil, set(volume("pv1", "static", "b")), "", "n1"},
		{"a volume is taken", []cluster.Object{static, class("static", "kubernetes.io/no-provisioner"), volume("pv1", "static", "a")},
			uses("p", "c9"), nil, set(taken), "n0", ""},
		{"a volume goes", []cluster.Object{static, class("static", "kubernetes.io/no-provisioner"), volume("pv1", "static", "a")},
			uses("p", "c9"), nil, func(s *cluster.State) { s.RemoveObject(cluster.VolumeKind, "", "pv1") }, "n0", ""},
		{"a driver publishes its capacity", []cluster.Object{waits, class("fast", "csi.example"), capacity("1Gi")},
			uses("p", "c9"), nil, set(tracked), "n0 n1", "n0"},
		{"capacity runs out", []cluster.Object{waits, class("fast", "csi.example"), capacity("1Gi"), tracked},
			uses("p", "c9"), nil, set(capacity("1Mi")), "n0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			for name, zone := range map[string]string{"n0": "a", "n1": "b"} {
				s.SetNode(schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Zone(zone).Obj(), ""))
			}
			for _, o := range c.before {
				s.SetObject(o)
			}
			if c.on != nil {
				s.Place(schema.ParsePod(c.on.Obj()), "n0")
			}
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
			feasible := func(k *engine.Class) (out string) {
				for _, name := range []string{"n0", "n1"} {
					for _, v := range e.Answers(k) {
						if v.OK && s.Node(v.Node).Name == name {
							if out != "" {
								out += " "
							}
							out += name
						}
					}
				}
				return out
			}
			k := e.Class(schema.ParsePod(c.pod.Obj()))
			if got := feasible(k); got != c.was {
				t.Fatalf("at first feasible: %q, want %q", got, c.was)
			}
			mark := s.Mark()
			c.change(s)
			if got := feasible(e.Class(schema.ParsePod(c.pod.Obj()))); got != c.now {
				t.Errorf("then feasible: %q, want %q", got, c.now)
			}
			s.Rollback(mark)
			if got := feasible(k); got != c.was {
				t.Errorf("after the rollback feasible: %q, want %q", got, c.was)
			}
		})
	}
}

// The pods of a StatefulSet are one class while no rule tells their claims
// apart: unbound, or bound to volumes of one zone.
func TestStatefulSetPodsShareAClass(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	s.SetObject(class("fast", "csi.example"))
	of := func(name, claimName string) *engine.Class {
		p := uses(name, claimName).Owner("apps/v1", "StatefulSet", "db").Label("statefulset.kubernetes.io/pod-name", name)
		return e.Class(schema.ParsePod(p.Obj()))
	}
	for _, c := range []string{"data-0", "data-1", "data-2"} {
		s.SetObject(claim(c, "fast", ""))
	}
	if of("db-0", "data-0") != of("db-1", "data-1") {
		t.Error("unbound claims split the class")
	}
	for name, zone := range map[string]string{"0": "a", "1": "a", "2": "b"} {
		s.SetObject(volume("pv-"+name, "fast", zone))
		s.SetObject(claim("data-"+name, "fast", "pv-"+name))
	}
	if of("db-0", "data-0") != of("db-1", "data-1") {
		t.Error("volumes of one zone split the class")
	}
	if of("db-0", "data-0") == of("db-2", "data-2") {
		t.Error("volumes of two zones are one class")
	}
}
