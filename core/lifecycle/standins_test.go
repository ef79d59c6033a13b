package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAStandInIsWhatItsTemplateSays of where its pods run and what they need, and nothing
// else.
func TestAStandInIsWhatItsTemplateSays(t *testing.T) {
	pod := testkit.Pod("p").Req("cpu", "2").Label("app", "web").Tolerate("gpu").Gate("kueue").Uses("claim").On("n").Owner("apps/v1", "ReplicaSet", "web-1").Obj()
	got := lifecycle.StandInShape("ns", &v1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec})
	switch {
	case got.Namespace != "ns" || got.Labels["app"] != "web" || len(got.Spec.Tolerations) != 1 || got.Spec.Containers[0].Resources.Requests.Cpu().Value() != 2:
		t.Errorf("of the template is left %+v", got)
	case got.Name != "" || got.UID != "" || got.OwnerReferences != nil || got.Spec.NodeName != "" || got.Spec.SchedulingGates != nil || got.Spec.Volumes != nil:
		t.Errorf("what concerns one pod, or no node, is kept: %+v", got)
	case *got.Spec.PreemptionPolicy != v1.PreemptNever || got.Spec.SchedulerName != v1.DefaultSchedulerName:
		t.Errorf("it may preempt by %s, for scheduler %q", *got.Spec.PreemptionPolicy, got.Spec.SchedulerName)
	}
	if pod.Spec.NodeName != "n" || pod.Spec.SchedulingGates == nil {
		t.Error("the template was changed")
	}
}

// nobody is responsible for no pod: each is looked at.
type nobody struct{}

func (nobody) Responsible(*cluster.Pod) bool      { return false }
func (nobody) Engine(*cluster.Pod) *engine.Engine { return nil }

// TestWatchLooksAtWhatMayHaveLostItsRoom: at the pods nominated to the nodes that changed, and
// to names of no node when a node went; at all when the changes are forgotten.
func TestWatchLooksAtWhatMayHaveLostItsRoom(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	pod := func(name string) *cluster.Pod { return s.Schema.ParsePod(testkit.Pod(name).Obj()) }
	node := func(name string) { s.SetNode(s.Schema.ParseNode(testkit.Node(name).Obj(), "")) }
	for _, name := range []string{"n1", "n2", "n3"} {
		node(name)
	}
	for name, on := range map[string]string{"a": "n1", "b": "n1", "c": "n2", "d": "nowhere"} {
		s.Nominate(pod(name), on)
	}
	w := lifecycle.RoomWatch{}
	w.Skip(s)
	for _, c := range []struct {
		name          string
		do            func()
		changes, pods string
		known         bool
	}{
		{"nothing happens", func() {}, "", "", true},
		{"a pod comes to n1", func() { s.Place(pod("x"), "n1") }, "PodAdded", "b a", true},
		{"one comes to n3", func() { s.Place(pod("y"), "n3") }, "PodAdded", "", true},
		{"a pod is nominated to n2 that fits beside all", func() { s.Nominate(pod("e"), "n2") }, "NominationAdded", "", true},
		{"and goes again", func() { s.Nominate(pod("e"), "") }, "NominationRemoved", "c", true},
		{"both change again", func() { s.Remove("pod-x"); s.Remove("pod-y"); s.Place(pod("x"), "n2") }, "PodRemoved PodRemoved PodAdded", "b a c", true},
		{"n2 goes", func() { s.RemoveNode("n2") }, "PodRemoved OrphanAdded NodeRemoved", "c d", true},
		{"the changes are forgotten", func() { s.Place(pod("z"), "n3"); s.Trim(s.Head()) }, "", "a b c d", false},
	} {
		c.do()
		var changes, pods []string
		known := w.EachEndangered(s, nobody{}, func(p *cluster.Pod) bool { return p.Object.Name == "e" }, func(x *cluster.Change) { changes = append(changes, x.Op.String()) }, func(p *cluster.Pod) { pods = append(pods, p.Object.Name) })
		got := fmt.Sprint(strings.Join(changes, " "), "; ", strings.Join(pods, " "), "; ", known)
		if want := fmt.Sprint(c.changes, "; ", c.pods, "; ", c.known); got != want {
			t.Errorf("%s: changes, pods and whether they are known: %s, want %s", c.name, got, want)
		}
	}
}
