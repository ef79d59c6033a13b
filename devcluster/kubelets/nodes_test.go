package kubelets

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
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

// TestRealNodesAreLeftAlone: of two nodes, the one with a kubelet of its own gets no address, no lease and no
// condition, and its pods aren't run.
func TestRealNodesAreLeftAlone(t *testing.T) {
	k := newKubelets(fake.NewClientset(), Options{LeaseInterval: time.Minute})
	k.nodeChanged(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real", Labels: map[string]string{RealNode: "true"}}})
	if k.due.Len() != 0 {
		t.Errorf("%d calls are due for a real node", k.due.Len())
	}
	k.nodeChanged(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "played"}})
	if k.due.Len() == 0 {
		t.Error("no call is due for a simulated node")
	}
	k.due = nil
	for _, node := range []string{"real", "played"} {
		k.podChanged(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: node, UID: types.UID(node)}, Spec: v1.PodSpec{NodeName: node}, Status: v1.PodStatus{Phase: v1.PodPending}})
	}
	for _, job := range k.due {
		job.job(t.Context())
	}
	var patched []string
	for _, a := range k.client.(*fake.Clientset).Actions() {
		patched = append(patched, a.(clienttesting.PatchAction).GetName())
	}
	if len(patched) != 1 || patched[0] != "played" {
		t.Errorf("the pods %q were run, want that on the simulated node", patched)
	}
}
