package explain_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPodLines lists a pod that is placed, one that no node takes, and one of another scheduler.
func TestPodLines(t *testing.T) {
	c := newCore(t, core.DefaultConfig())
	foreign := testkit.Pod("foreign").Obj()
	foreign.Spec.SchedulerName = "another"
	c.Step(time.Unix(1, 0), door.Must(
		step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "2", "pods", "10").Obj()},
		step.PodSet{Pod: testkit.Pod("placed").On("n1").Obj()},
		step.PodSet{Pod: testkit.Pod("orphan").On("gone").Obj()},
		step.PodSet{Pod: testkit.Pod("big").Req("cpu", "9").Obj()},
		step.PodSet{Pod: foreign})...)
	var got []string
	for _, p := range append(c.View().PendingLines(), c.View().PlacedLines()...) {
		got = append(got, fmt.Sprintf("%s on %q: %s %s %s, %d attempts", p.Object.Name, p.Node, p.State, p.Plugin, p.Reason, p.Attempts))
		if one, _, ok := c.View().PodDetail(p.Object.Namespace, p.Object.Name); !ok || !reflect.DeepEqual(one, p) {
			t.Errorf("the line of %s alone is %+v, in the list %+v", p.Object.Name, one, p)
		}
	}
	for node, pod := range map[string]string{"n1": "placed", "gone": "orphan"} {
		if on := c.View().LinesOn(node); len(on) != 1 || on[0].Object.Name != pod || on[0].Node != node {
			t.Errorf("on %s is %+v", node, on)
		}
	}
	if on := c.View().LinesOn("none"); len(on) > 0 {
		t.Errorf("on a node that isn't there is %+v", on)
	}
	if one, _, ok := c.View().PodDetail("default", "none"); ok {
		t.Errorf("a pod that isn't there has the line %+v", one)
	}
	slices.Sort(got)
	want := []string{`big on "": Rejected NodeResourcesFit Insufficient cpu, 1 attempts`, `foreign on "": Unmanaged  another, 0 attempts`, `orphan on "gone":   , 0 attempts`, `placed on "n1":   , 0 attempts`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	overview := 0
	for _, p := range c.View().Overview().Pending {
		overview += p.Pods
	}
	if overview != len(c.View().PendingLines()) {
		t.Errorf("the overview counts %d pending pods, and %d are listed", overview, len(c.View().PendingLines()))
	}
}

// TestAPodWithTheNameOfAStandIn: whoever asks for a pod that is called as a stand-in gets the pod, in every order of a map.
func TestAPodWithTheNameOfAStandIn(t *testing.T) {
	c := newCore(t, autoscaling(func(*core.Autoscale) {}))
	template := &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1}}
	template.Template.Spec = testkit.Pod("web").Req("cpu", "9").Obj().Spec
	buffer := &autoscalingapi.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}}
	buffer.Spec.PodTemplateRef, buffer.Spec.Replicas = &autoscalingapi.LocalObjectRef{Name: "web"}, new(int32(1))
	var standIn string
	r := c.Step(time.Unix(1, 0), door.Must(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "2", "pods", "10").Obj()}, step.ObjectSet{Object: template}, step.ObjectSet{Object: buffer})...)
	for now := int64(2); now < 9; now++ {
		for _, d := range r.Decisions {
			if d.Kind == step.RoomMissing {
				standIn = strings.TrimPrefix(d.Pod, "default/")
			}
		}
		r = c.Step(time.Unix(now, 0))
	}
	if standIn == "" {
		t.Fatal("there is no stand-in")
	}
	if line, _, ok := c.View().PodDetail("default", standIn); ok {
		t.Errorf("a stand-in is listed as a pod: %+v", line)
	}
	c.Step(time.Unix(9, 0), door.Must(step.PodSet{Pod: testkit.Pod(standIn).On("n1").Obj()})...)
	line, x, ok := c.View().PodDetail("default", standIn)
	if !ok || line.Node != "n1" || x.Node != "n1" {
		t.Errorf("a pod with the name of a stand-in: %t, %+v, %+v", ok, line, x)
	}
}

// TestNodeRowsHaveAllResources of the nodes, and the sums are theirs.
func TestNodeRowsHaveAllResources(t *testing.T) {
	p := newHandPlanned(t, func(*core.Autoscale) {})
	p.step(0, step.NodeSet{Node: testkit.Node("gpus").Alloc("cpu", "8", "memory", "8Gi", "pods", "20", "example.com/gpu", "4").Obj()},
		step.PodSet{Pod: testkit.Pod("a").Req("cpu", "1", "example.com/gpu", "3").On("gpus").Obj()})
	rows := p.View().NodeRows()
	i := slices.IndexFunc(rows, func(r explain.NodeRow) bool { return r.Node == "gpus" })
	if row := rows[i]; len(rows) != 6 || row.MaxPods != 20 || row.Object.Name != "gpus" || fmt.Sprint(row.Extended) != "[{example.com/gpu {3 4}}]" {
		t.Errorf("of %d rows the one of gpus is %+v", len(rows), row)
	}
	for _, row := range rows {
		if one, ok := p.View().NodeRow(row.Node); !ok || !reflect.DeepEqual(one, row) {
			t.Errorf("the row of %s alone is %+v, in the list %+v", row.Node, one, row)
		}
	}
	if one, ok := p.View().NodeRow("none"); ok {
		t.Errorf("a node that isn't there has the row %+v", one)
	}
	uses, unpriced := p.View().Utilization()
	if fmt.Sprint(uses) != "[{cpu {1000 28000}} {memory {0 51539607552}} {example.com/gpu {3 4}}]" || unpriced != 2 {
		t.Errorf("got %v, and %d nodes without a price", uses, unpriced)
	}
	if capacity := p.View().GroupCapacity("g"); fmt.Sprint(capacity) != "[{cpu {0 4000}}]" || p.View().GroupCapacity("none") != nil {
		t.Errorf("a node of g has %v", capacity)
	}
}

// TestWhatIfs removes nodes and adds pods, and nothing has happened.
func TestWhatIfs(t *testing.T) {
	p := newHandPlanned(t, func(*core.Autoscale) {})
	p.step(0, step.PodSet{Pod: testkit.Pod("a").Req("cpu", "3").Owner("apps/v1", "ReplicaSet", "rs").On("n1").Obj()},
		step.PodSet{Pod: testkit.Pod("b").Req("cpu", "3").Owner("apps/v1", "ReplicaSet", "rs").On("n2").Obj()})
	dump := func() string { var b strings.Builder; p.State().Dump(&b); return b.String() }
	before := dump()
	one, err := p.View().WithoutNodes([]string{"n1"})
	if err != nil || len(one.Pods) != 1 || one.Pods[0].Home == "" || one.Price != 0.4 {
		t.Errorf("without n1: %+v, %v", one, err)
	}
	// Without all but n1 and n2 there is no room for either pod on the other's node.
	all, err := p.View().WithoutNodes([]string{"n0", "n2", "n3", "n4"})
	if err != nil || len(all.Pods) != 1 || all.Pods[0].Pod != "default/b" || all.Pods[0].Home != "" || !strings.Contains(all.Pods[0].Why, "Insufficient cpu") {
		t.Errorf("without four nodes: %+v, %v", all, err)
	}
	if _, err := p.View().WithoutNodes([]string{"n1", "none"}); err == nil || err.Error() != "node none not found" {
		t.Errorf("without a node that isn't there: %v", err)
	}
	more, ok := p.View().MorePods("default", "a", 10)
	if !ok || more.Placed != 3 || fmt.Sprint(more.Nodes) != "map[n0:1 n3:1 n4:1]" || !strings.Contains(more.Why, "Insufficient cpu") {
		t.Errorf("ten more: %+v, %v", more, ok)
	}
	if len(more.Groups) != 1 || more.Groups[0].Group != "g" || more.Groups[0].Answer != explain.WouldTake {
		t.Errorf("ten more: the groups answer %+v, want that g would take the rest", more.Groups)
	}
	if few, _ := p.View().MorePods("default", "a", 2); len(few.Groups) != 0 {
		t.Errorf("two more: the groups answer %+v though all find a node", few.Groups)
	}
	if _, ok := p.View().MorePods("default", "none", 1); ok {
		t.Error("there is more of a pod that isn't there")
	}
	if after := dump(); after != before {
		t.Errorf("the state has changed:\n%s\nto\n%s", before, after)
	}
	if _, err := newCore(t, core.DefaultConfig()).View().WithoutNodes([]string{"n1"}); err == nil {
		t.Error("a Berth that only schedules removes nodes")
	}
}
