package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestPreemption has two pods of high priority preempt: first a victim that no disruption
// budget protects, then one that a finalizer keeps for a while, during which the pod waits
// nominated and no pod of lower priority gets the place.
func TestPreemption(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	_, log := startBerth(t, c, "-v=2", "--logging-format=json")
	makeNode(t, client, "n1", "8Gi")
	makeNode(t, client, "n2", "8Gi")
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]int32{"high": 1000, "middle": 10} {
		_, err := client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		must(err)
	}
	createBudget(t, client, "kept", "kept", "yes", 2)
	on := func(name, node string, labels map[string]string) *v1.Pod {
		p := pod(name, "2")
		p.Labels = labels
		p.Spec.NodeSelector = map[string]string{v1.LabelHostname: node}
		return p
	}
	b := on("b", "n2", nil)
	b.Finalizers = []string{"example.com/hold"}
	b.Spec.PriorityClassName = "middle" // so that a goes first
	// A watch records what is gone in the end: conditions of victims, nominations.
	var mu sync.Mutex
	conditions, nominated := map[string]string{}, map[string]string{}
	watch, err := client.CoreV1().Pods(v1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
	must(err)
	go func() {
		for e := range watch.ResultChan() {
			p, ok := e.Object.(*v1.Pod)
			if !ok {
				continue
			}
			mu.Lock()
			for _, c := range p.Status.Conditions {
				if c.Type == v1.DisruptionTarget {
					conditions[p.Name] = c.Reason + ": " + c.Message
				}
			}
			if at := p.Status.NominatedNodeName; at != "" {
				nominated[p.Name] = at
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(watch.Stop)
	seen := func(m map[string]string, name string) string { mu.Lock(); defer mu.Unlock(); return m[name] }

	kept := map[string]string{"kept": "yes"}
	create(t, client, on("kept-1", "n1", kept), on("kept-2", "n1", kept), on("a", "n2", nil), b)
	runs := func(name string) func(context.Context) bool {
		return func(ctx context.Context) bool { return get(ctx, client, name).Status.Phase == v1.PodRunning }
	}
	for _, name := range []string{"kept-1", "kept-2", "a", "b"} {
		eventually(t, name+" to run", runs(name))
	}
	eventually(t, "the budget to be counted", func(ctx context.Context) bool {
		b, err := client.PolicyV1().PodDisruptionBudgets(v1.NamespaceDefault).Get(ctx, "kept", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 2
	})

	// vip-1 gets a's place at once, vip-2 gets b's when b's finalizer is gone.
	high := func(name string) *v1.Pod {
		p := pod(name, "2")
		p.Spec.PriorityClassName = "high"
		return p
	}
	create(t, client, high("vip-1"))
	eventually(t, "the first to run", runs("vip-1"))
	create(t, client, high("vip-2"))
	eventually(t, "b to be deleted", func(ctx context.Context) bool { return get(ctx, client, "b").DeletionTimestamp != nil })
	eventually(t, "the nomination to be written", func(context.Context) bool { return seen(nominated, "vip-2") != "" })
	if p := get(ctx, client, "vip-2"); p.Spec.NodeName != "" || seen(nominated, "vip-2") != "n2" {
		t.Errorf("vip-2 is on %q and nominated to %q, though b is still there; want nowhere and n2", p.Spec.NodeName, seen(nominated, "vip-2"))
	}
	// A pod of lower priority doesn't get the place.
	create(t, client, pod("late", "2"))
	eventually(t, "the late pod's condition to say why", func(ctx context.Context) bool {
		return strings.Contains(refusal(get(ctx, client, "late")), "2 Insufficient cpu")
	})
	_, err = client.CoreV1().Pods(v1.NamespaceDefault).Patch(ctx, "b", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(err)
	eventually(t, "the second to run", runs("vip-2"))
	if at := get(ctx, client, "vip-2").Spec.NodeName; at != "n2" {
		t.Errorf("vip-2 runs on %s, want n2", at)
	}
	for _, name := range []string{"kept-1", "kept-2"} {
		if !runs(name)(ctx) {
			t.Errorf("%s was not kept, against its budget", name)
		}
	}
	for _, name := range []string{"a", "b"} {
		if got, want := seen(conditions, name), "PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod"; got != want {
			t.Errorf("%s had the condition %q, want %q", name, got, want)
		}
	}
	eventually(t, "events about both victims", func(ctx context.Context) bool {
		list, err := client.EventsV1().Events(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		var of []string
		for _, e := range list.Items {
			if e.Reason == "Preempted" && strings.HasPrefix(e.Note, "Preempted by pod ") && strings.HasSuffix(e.Note, " on node n2") {
				of = append(of, e.Regarding.Name)
			}
		}
		slices.Sort(of)
		return err == nil && slices.Equal(of, []string{"a", "b"})
	})
	// With -v=2 the log has each decision, here as JSON.
	raw, err := os.ReadFile(log)
	must(err)
	decisions := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		x := struct {
			Msg       string
			Pod, Node struct{ Namespace, Name string }
		}{}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("a line of the log is no JSON: %v: %s", err, line)
		}
		decisions[x.Msg+" "+x.Pod.Namespace+"/"+x.Pod.Name+" "+x.Node.Name] = true
	}
	for _, want := range []string{"Placed default/kept-1 n1", "Preempts default/vip-1 n2", "Preempts default/vip-2 n2", "Placed default/vip-2 n2"} {
		if !decisions[want] {
			t.Errorf("the log lacks %q; it has %v", want, slices.Sorted(maps.Keys(decisions)))
		}
	}
}
