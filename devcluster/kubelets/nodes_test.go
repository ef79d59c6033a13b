package kubelets

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestWhatIsUnnoticedIsReportedAgain has a lease renewed of a node that is ready, with the taint
// of one that isn't and without: the node controller gets a change to act on only in the first.
func TestWhatIsUnnoticedIsReportedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		ready  v1.ConditionStatus
		taints []v1.Taint
		want   bool
	}{
		{"ready, and tainted", v1.ConditionTrue, []v1.Taint{{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}}, true},
		{"ready, with another taint", v1.ConditionTrue, []v1.Taint{{Key: "storm/whole", Effect: v1.TaintEffectNoSchedule}}, false},
		{"not ready", v1.ConditionFalse, []v1.Taint{{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}}, false},
	} {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}, Spec: v1.NodeSpec{Taints: c.taints},
			Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: c.ready}}}}
		client := fake.NewClientset(n)
		k := newKubelets(client, Options{LeaseInterval: time.Minute})
		k.nodes["n"] = n
		k.renew(t.Context(), "n", n.UID)
		got, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ready := got.Status.Conditions[0]
		if reported := !ready.LastHeartbeatTime.IsZero(); reported != c.want || ready.Status != c.ready || len(got.Status.Conditions) != 1 {
			t.Errorf("%s: reported again: %t, want %t; the conditions are %+v", c.name, reported, c.want, got.Status.Conditions)
		}
	}
}
