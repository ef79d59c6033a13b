package explain_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// resizing returns a pod that requests 4 CPUs, of which its node has allocated one, with the reason why not more.
func resizing(name, node, reason string) *v1.Pod {
	pod := testkit.Pod(name).Req("cpu", "4").Owner("apps/v1", "ReplicaSet", name).On(node).Obj()
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, AllocatedResources: v1.ResourceList{"cpu": resource.MustParse("1")},
		Resources: &v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: reason})
	return pod
}

// TestOverviewSaysWhichResizesArePending has a pod that moves, one that is too large for its node, and one that
// has to wait.
func TestOverviewSaysWhichResizesArePending(t *testing.T) {
	p := newHandPlanned(t, func(a *core.Autoscale) { a.MoveResizesAfter = time.Minute })
	if got := p.View().Overview().Resizes; got != nil {
		t.Errorf("without resizes there are %+v", got)
	}
	full := step.PodSet{Pod: testkit.Pod("full").Req("cpu", "2").On("n1").Obj()}
	var in []step.Input
	for _, name := range []string{"web", "large"} {
		rs := testkit.ReplicaSet(name)
		rs.Spec.Replicas, rs.Status.Replicas = new(int32(1)), 1
		in = append(in, step.WorkloadSet{Workload: cluster.WorkloadOf(rs)})
	}
	p.step(0, in...)
	p.step(0, full, step.PodSet{Pod: resizing("web", "n1", v1.PodReasonDeferred)}, step.PodSet{Pod: resizing("far", "gone", v1.PodReasonDeferred)})
	large := resizing("large", "n2", v1.PodReasonInfeasible)
	large.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("6")
	p.step(59*time.Second, step.PodSet{Pod: large})
	p.step(time.Second)
	got := p.View().Overview().Resizes
	if got == nil || got.Deferred != 2 || got.Infeasible != 1 || got.Moving != 1 || len(got.Pods) != 2 {
		t.Fatalf("got %+v, want 2 deferred, one infeasible, one moving and 2 pods, since the node of the third isn't known", got)
	}
	text := ""
	for _, x := range got.Pods {
		text += fmt.Sprintf("%s %s %s %d %t %s; %s\n", x.Pod, x.Node, x.Reason, x.Since.Unix(), x.Moves, x.Lack, x.Why)
	}
	want := `default/web n1 deferred 1000 true node n1 lacks 2 cpu; it is being evicted, and node n4 has room for its replacement
default/large n2 infeasible 1059 false node n2 is too small: it never has 6 cpu for one pod; it moves at 00:18:39 at the earliest (--move-pending-resizes-after)
`
	if text != want {
		t.Errorf("the pods are\n%s\nwant\n%s", text, want)
	}
}
