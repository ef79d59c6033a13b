package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// logs reports whether a log has a text.
func logs(path, what string) func(context.Context) bool {
	return func(context.Context) bool {
		raw, _ := os.ReadFile(path)
		return bytes.Contains(raw, []byte(what))
	}
}

// TestFailover kills the leader while it binds 2,000 pods. The Berth that stands by knows
// the cluster already, and binds the rest when the Lease has expired: every pod is bound,
// and none ever changes its node.
func TestFailover(t *testing.T) {
	t.Parallel()
	const nodes, pods = 20, 2000
	c, client := startCluster(t)
	first, _ := startBerth(t, c)
	ctx := t.Context()
	for i := range nodes {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{v1.LabelHostname: fmt.Sprint("n", i)}}}
		n.Status.Allocatable = list("cpu", "64", "memory", "64Gi", "pods", "110")
		if _, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	on := map[types.UID]string{}
	moved := 0
	bound := func() int { mu.Lock(); defer mu.Unlock(); return len(on) }
	factory := informers.NewSharedInformerFactory(client, 0)
	look := func(obj any) {
		p := obj.(*v1.Pod)
		if p.Spec.NodeName == "" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if at, known := on[p.UID]; known && at != p.Spec.NodeName {
			moved++
		}
		on[p.UID] = p.Spec.NodeName
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	create(t, client, pod("early", "10m"))
	eventually(t, "the first Berth to lead", func(context.Context) bool { return bound() == 1 })
	_, log := startBerth(t, c)
	logged := func(what string) func(context.Context) bool { return logs(log, what) }
	eventually(t, "the second Berth to stand by", logged("standing by: another instance is the leader"))

	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for i := k; i < pods; i += 8 {
				if _, err := client.CoreV1().Pods(v1.NamespaceDefault).Create(ctx, pod(fmt.Sprint("p", i), "10m"), metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	eventually(t, "some of the pods to be bound", func(context.Context) bool { return bound() > pods/4 })
	first.Kill()
	killed := time.Now()
	wg.Wait()
	within(t, "the second Berth to take over", time.Minute, logged("taking over"))
	took := time.Since(killed)
	eventually(t, "all pods to be bound", func(context.Context) bool { return bound() == pods+1 })
	t.Logf("taken over %s after the kill, all bound %s after it", took.Round(100*time.Millisecond), time.Since(killed).Round(100*time.Millisecond))
	all, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	per := map[string]int{}
	for i := range all.Items {
		per[all.Items[i].Spec.NodeName]++
	}
	for node, n := range per {
		if node == "" || n > 110 {
			t.Errorf("%d pods are on %q", n, node)
		}
	}
	if len(all.Items) != pods+1 || moved > 0 {
		t.Errorf("%d pods, %d of them moved; want %d and none", len(all.Items), moved, pods+1)
	}
	raw, _ := os.ReadFile(log)
	m := regexp.MustCompile(`"taking over" nodes=(\d+) pods=(\d+)`).FindSubmatch(raw)
	if m == nil {
		t.Fatalf("the second Berth doesn't log what it knew:\n%s", raw)
	}
	if known, _ := strconv.Atoi(string(m[1])); known != nodes {
		t.Errorf("it knew %d nodes when it took over, want %d", known, nodes)
	}
	if known, _ := strconv.Atoi(string(m[2])); known < pods/4 {
		t.Errorf("it knew %d pods on nodes when it took over, want more than %d", known, pods/4)
	}
}

// TestFailoverInMidPreemption kills the leader when it has told the victims of 20 pods to leave,
// each on a node of its own, and none has left: finalizers keep them. The Berth that takes over
// finds the nominations, tells no further pod to leave, gives the room to nobody of lower
// priority, and binds each of the 20 where it is nominated.
func TestFailoverInMidPreemption(t *testing.T) {
	t.Parallel()
	const nodes = 20
	c, client := startCluster(t)
	first, _ := startBerth(t, c)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}, metav1.CreateOptions{})
	must(err)
	for i := range nodes {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{v1.LabelHostname: fmt.Sprint("n", i)}}}
		n.Status.Allocatable = list("cpu", "4", "memory", "8Gi", "pods", "10")
		_, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		must(err)
	}
	nodesReady(t, client)
	// Two pods fill a node; one has to leave for a pod of high priority.
	for i := range 2 * nodes {
		p := pod(fmt.Sprint("low-", i), "2")
		p.Finalizers = []string{"example.com/hold"}
		create(t, client, p)
	}
	pods := func(ctx context.Context, prefix string) (out []v1.Pod) {
		all, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		for _, p := range all.Items {
			if strings.HasPrefix(p.Name, prefix) {
				out = append(out, p)
			}
		}
		return out
	}
	count := func(list []v1.Pod, is func(*v1.Pod) bool) (n int) {
		for i := range list {
			if is(&list[i]) {
				n++
			}
		}
		return n
	}
	onANode := func(p *v1.Pod) bool { return p.Spec.NodeName != "" }
	leaving := func(p *v1.Pod) bool { return p.DeletionTimestamp != nil }
	nominated := func(p *v1.Pod) bool { return p.Status.NominatedNodeName != "" }
	eventually(t, "all nodes to be full", func(ctx context.Context) bool { return count(pods(ctx, "low-"), onANode) == 2*nodes })
	_, log := startBerth(t, c)
	eventually(t, "the second Berth to stand by", logs(log, "standing by: another instance is the leader"))
	for i := range nodes {
		p := pod(fmt.Sprint("high-", i), "2")
		p.Spec.PriorityClassName = "high"
		create(t, client, p)
	}
	eventually(t, "the victims to be told and the nominations to be written", func(ctx context.Context) bool {
		return count(pods(ctx, "low-"), leaving) == nodes && count(pods(ctx, "high-"), nominated) == nodes
	})
	first.Kill()
	at, told := map[string]string{}, map[string]bool{} // where pods are nominated, and victims
	for _, p := range pods(ctx, "high-") {
		at[p.Name] = p.Status.NominatedNodeName
	}
	for _, p := range pods(ctx, "low-") {
		told[p.Name] = leaving(&p)
	}
	create(t, client, pod("late", "2"))
	within(t, "the second Berth to take over", time.Minute, logs(log, `"taking over"`))
	eventually(t, "the second Berth to decide", func(ctx context.Context) bool { return refusal(get(ctx, client, "late")) != "" })
	for name, victim := range told {
		if victim {
			_, err := client.CoreV1().Pods(v1.NamespaceDefault).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			must(err)
		}
	}
	eventually(t, "the pods of high priority to be bound", func(ctx context.Context) bool { return count(pods(ctx, "high-"), onANode) == nodes })
	for _, p := range pods(ctx, "high-") {
		if p.Spec.NodeName != at[p.Name] {
			t.Errorf("%s is on %s; it was nominated to %s", p.Name, p.Spec.NodeName, at[p.Name])
		}
	}
	for _, p := range pods(ctx, "low-") {
		if leaving(&p) {
			t.Errorf("%s was told to leave, too (a victim of the first Berth: %t)", p.Name, told[p.Name])
		}
	}
	if left := len(pods(ctx, "low-")); left != nodes {
		t.Errorf("%d pods of low priority are left, want %d", left, nodes)
	}
	if p := get(ctx, client, "late"); p.Spec.NodeName != "" {
		t.Errorf("the late pod of low priority is on %s", p.Spec.NodeName)
	}
}
