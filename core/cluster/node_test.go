package cluster_test

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

func TestParseNode(t *testing.T) {
	s := cluster.NewSchema()
	b := testkit.Node("n").Alloc("cpu", "4", "memory", "1Gi", "pods", "30", "example.com/gpu", "2")
	b.Status.DeclaredFeatures = []string{"a", "b"}
	n := s.ParseNode(b.Obj(), "g")
	if got := n.Allocatable.String(); n.Name != "n" || n.Group != "g" || n.AllowedPods != 30 || got != "cpu=4000 memory=1073741824 example.com/gpu=2" {
		t.Errorf("%s of group %s takes %d pods and has %s", n.Name, n.Group, n.AllowedPods, got)
	}
	if fmt.Sprint(n.Features) != "[a b]" || len(n.Problems) > 0 {
		t.Errorf("its features are %v, its problems %v", n.Features, n.Problems)
	}
	bad := s.ParseNode(testkit.Node("n").Alloc("cpu", "-1", "pods", "-3").Obj(), "")
	if got := fmt.Sprint(bad.Problems); got != "[status.allocatable[cpu] is -1, treated as 0 status.allocatable[pods] is -3, treated as 0]" || bad.AllowedPods != 0 {
		t.Errorf("problems %s, %d pods", got, bad.AllowedPods)
	}
}

// TestRankOfANode pins down what ties between equal nodes are broken by: with
// other values every recording would be decided otherwise.
func TestRankOfANode(t *testing.T) {
	s := cluster.NewSchema()
	for name, want := range map[string]uint64{"n0": 0xa6fde02cb3, "n1": 0xc1c502251d, "": 0xecba3df2c3} {
		if got := s.ParseNode(testkit.Node(name).Obj(), "").Hash; got != want {
			t.Errorf("the hash of %q is %#x, want %#x", name, got, want)
		}
	}
}

func TestReadinessAndTaints(t *testing.T) {
	with := func(conditions ...v1.NodeCondition) *v1.Node {
		n := testkit.Node("n").Taint("gpu", "", v1.TaintEffectNoSchedule).Obj()
		n.Status.Conditions = conditions
		return n
	}
	pressure := v1.NodeCondition{Type: v1.NodeMemoryPressure, Status: v1.ConditionTrue}
	for _, c := range []struct {
		name string
		node *v1.Node
		want bool
	}{
		{"ready", with(pressure, v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue}), true},
		{"not ready", with(v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse}), false},
		{"unknown", with(v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionUnknown}), false},
		{"nothing said", with(pressure), false},
	} {
		n := cluster.NewSchema().ParseNode(c.node, "")
		if n.Ready() != c.want {
			t.Errorf("%s: Ready is %v, want %v", c.name, n.Ready(), c.want)
		}
		if !n.HasTaint("gpu") || n.HasTaint("spot") {
			t.Errorf("%s: HasTaint of gpu is %v, of spot %v; want true, false", c.name, n.HasTaint("gpu"), n.HasTaint("spot"))
		}
	}
}

func TestCopiesOfANode(t *testing.T) {
	s := cluster.NewSchema()
	n := s.ParseNode(testkit.Node("n").Label("disk", "ssd").Taint("gpu", "old", v1.TaintEffectNoSchedule).Taint("spot", "", v1.TaintEffectNoExecute).Obj(), "g")
	before := fmt.Sprint(n.Object)

	m := n.Renamed("m")
	if m.Name != "m" || m.Object.Name != "m" || m.Object.UID != "m" || m.Group != "g" || m.Hash == n.Hash {
		t.Errorf("renamed: %s %s %s of group %q, hash %x", m.Name, m.Object.Name, m.Object.UID, m.Group, m.Hash)
	}
	if got := fmt.Sprint(m.Object.Labels); got != "map[disk:ssd kubernetes.io/hostname:m]" {
		t.Errorf("renamed, its labels are %s", got)
	}
	bare := testkit.Node("bare").Obj()
	bare.Labels = nil
	if got := s.ParseNode(bare, "").Renamed("m").Object.Labels[v1.LabelHostname]; got != "m" {
		t.Errorf("a node without labels is renamed to hostname %q", got)
	}
	taints := func(n *cluster.NodeInfo) string { return fmt.Sprint(n.Object.Spec.Taints) }
	if got := taints(n.WithTaint(v1.Taint{Key: "gpu", Value: "new", Effect: v1.TaintEffectNoSchedule})); got != "[{spot  NoExecute <nil>} {gpu new NoSchedule <nil>}]" {
		t.Errorf("with another taint of a key it has %s", got)
	}
	if got := taints(n.WithoutTaint("gpu")); got != "[{spot  NoExecute <nil>}]" {
		t.Errorf("without a taint it has %s", got)
	}
	if after := fmt.Sprint(n.Object); after != before {
		t.Errorf("the node itself is now %s, and was %s", after, before)
	}
}

// TestUpdatesOfNodes changes one thing of a node that the state holds: is it a
// change?
func TestUpdatesOfNodes(t *testing.T) {
	node := func() *testkit.NodeBuilder {
		b := testkit.Node("n").Alloc("cpu", "4").Label("disk", "ssd").Taint("gpu", "x", v1.TaintEffectNoSchedule)
		b.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
		b.Status.Images = []v1.ContainerImage{{Names: []string{"web:1"}, SizeBytes: 5}}
		b.Status.Conditions[0].Status = v1.ConditionTrue
		return b
	}
	change := func(do func(b *testkit.NodeBuilder)) *testkit.NodeBuilder {
		b := node()
		do(b)
		return b
	}
	for _, c := range []struct {
		name  string
		to    *testkit.NodeBuilder
		group string
		same  bool
		// template says that they differ as templates do.
		template bool
	}{
		{name: "nothing", to: node(), same: true},
		{name: "group", to: node(), group: "g"},
		{name: "UID", to: change(func(b *testkit.NodeBuilder) { b.UID = "another" })},
		{name: "it is being deleted", to: change(func(b *testkit.NodeBuilder) { b.DeletionTimestamp = &metav1.Time{} })},
		{name: "creation", to: change(func(b *testkit.NodeBuilder) { b.CreationTimestamp = metav1.Unix(5, 0) })},
		{name: "label", to: node().Label("disk", "hdd")},
		{name: "annotation of ours", to: change(func(b *testkit.NodeBuilder) { b.Annotations = nil })},
		{name: "annotation of others", to: change(func(b *testkit.NodeBuilder) { b.Annotations["cni.example/heartbeat"] = "7" }), same: true},
		{name: "cordon", to: node().Cordon()},
		{name: "provider's ID", to: change(func(b *testkit.NodeBuilder) { b.Spec.ProviderID = "x" })},
		{name: "another taint", to: node().Taint("spot", "", v1.TaintEffectNoSchedule)},
		{name: "value of a taint", to: change(func(b *testkit.NodeBuilder) { b.Spec.Taints[0].Value = "y" })},
		{name: "effect of a taint", to: change(func(b *testkit.NodeBuilder) { b.Spec.Taints[0].Effect = v1.TaintEffectNoExecute })},
		{name: "time of a taint", to: change(func(b *testkit.NodeBuilder) { b.Spec.Taints[0].TimeAdded = &metav1.Time{} }), same: true},
		{name: "allocatable", to: node().Alloc("cpu", "5")},
		{name: "allocatable of nothing", to: node().Alloc("example.com/gpu", "0"), same: true},
		{name: "pods", to: node().Alloc("pods", "5")},
		{name: "capacity", to: change(func(b *testkit.NodeBuilder) { b.Status.Capacity = b.Status.Allocatable }), same: true, template: true},
		{name: "CSI drivers of a template", to: change(func(b *testkit.NodeBuilder) {
			b.Annotations["capacity.cluster-autoscaler.kubernetes.io/csi-driver"] = "disks=3"
		})},
		{name: "image", to: change(func(b *testkit.NodeBuilder) { b.Status.Images[0].SizeBytes = 6 })},
		{name: "feature", to: change(func(b *testkit.NodeBuilder) { b.Status.DeclaredFeatures = []string{"a"} })},
		{name: "readiness", to: change(func(b *testkit.NodeBuilder) { b.Status.Conditions[0].Status = v1.ConditionFalse })},
		{name: "heartbeat", to: change(func(b *testkit.NodeBuilder) { b.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(5, 0) }), same: true},
		{name: "another condition", to: change(func(b *testkit.NodeBuilder) {
			b.Status.Conditions = append(b.Status.Conditions, v1.NodeCondition{Type: v1.NodeDiskPressure, Status: v1.ConditionTrue})
		}), same: true},
	} {
		s := newState()
		setNode(s, node())
		from := s.Head()
		info := s.Schema.ParseNode(c.to.Obj(), c.group)
		s.SetNode(info)
		if got := s.Head() == from; got != c.same {
			t.Errorf("%s: left no trace is %v, want %v", c.name, got, c.same)
		}
		if got := s.NodeByName("n").NodeInfo == info; got == c.same {
			t.Errorf("%s: the state holds the new node is %v, want %v", c.name, got, !c.same)
		}
		if got := s.Schema.ParseNode(node().Obj(), "").SameTemplate(info); got != (c.same && !c.template) {
			t.Errorf("%s: SameTemplate is %v, want %v", c.name, got, !got)
		}
	}
}

// TestCopiesOfANodeSayWhatTheirObjectsSay compares copies with what is parsed of their objects.
func TestCopiesOfANodeSayWhatTheirObjectsSay(t *testing.T) {
	schema := cluster.NewSchema()
	parse := func(n *v1.Node) *cluster.NodeInfo { return schema.ParseNode(n, "g") }
	taint := v1.Taint{Key: "new", Effect: v1.TaintEffectNoSchedule}
	plain := parse(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	tainted := parse(testkit.Node("n").Zone("a").Taint("old", "x", v1.TaintEffectNoExecute).Obj())
	for name, copied := range map[string]*cluster.NodeInfo{
		"renamed, without labels": plain.Renamed("m"), "renamed": tainted.Renamed("m"), "with a first taint": plain.WithTaint(taint),
		"with another taint": tainted.WithTaint(taint), "without its taint": tainted.WithoutTaint("old"),
	} {
		if want := parse(copied.Object); !reflect.DeepEqual(copied, want) {
			t.Errorf("%s: the copy is\n%+v\nand its object says\n%+v", name, copied, want)
		}
		for _, key := range []string{v1.LabelHostname, v1.LabelTopologyZone, "other"} {
			if _, has := copied.Object.Labels[key]; copied.HasLabel(key) != has {
				t.Errorf("%s: it has the label %s: %t, want %t", name, key, !has, has)
			}
		}
	}
}

// TestWhatIsEvaluatedOfANodeLiesTogether says where in the memory of a Node, which starts a cache
// line, that is what rules read of every node.
func TestWhatIsEvaluatedOfANodeLiesTogether(t *testing.T) {
	const line = 64
	if size := unsafe.Sizeof(cluster.Node{}); size%line != 0 {
		t.Errorf("a Node has %d bytes, want whole cache lines of %d", size, line)
	}
	if lines := cluster.EvaluatedTo/line - cluster.EvaluatedFrom/line + 1; lines > 2 {
		t.Errorf("bytes %d to %d of a Node are read of every one: %d cache lines, want 2", cluster.EvaluatedFrom, cluster.EvaluatedTo, lines)
	}
}
