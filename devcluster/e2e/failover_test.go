package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// TestFailover kills the leader while it binds 2,000 pods. The Berth that stands by knows
// the cluster already, and binds the rest when the Lease has expired: every pod is bound,
// and none ever changes its node.
func TestFailover(t *testing.T) {
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
	logged := func(what string) func(context.Context) bool {
		return func(context.Context) bool {
			raw, _ := os.ReadFile(log)
			return bytes.Contains(raw, []byte(what))
		}
	}
	eventually(t, "the second Berth to stand by", logged("standing by: another Berth leads"))

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
