package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRecall has three empty nodes be marked for removal, and creates a pod for one of them: that
// node stays, for the pod, and none is bought. The other two go.
func TestRecall(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	d := &drained{t: t, client: client, evicted: map[string]bool{}}
	startBerth(t, c, append(nodeGroups(t, c, oneGroup), "--scan-interval=1s", "--scale-down-unneeded-time=3s", "--scale-down-delay-after-add=0s",
		"--node-delete-delay-after-taint=20s")...)
	names := []string{"large0", "large1", "large2"}
	for _, name := range names {
		create(t, client, pod(name, "2200m"))
	}
	eventually(t, "the pods to have nodes", func(ctx context.Context) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return get(ctx, client, name).Spec.NodeName == "" })
	})
	nodesReady(t, client)
	for _, name := range names {
		d.must(client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	}
	var marked []string
	eventually(t, "three nodes to be marked", func(ctx context.Context) bool { _, marked, _ = d.nodes(ctx); return len(marked) == 3 })
	created := time.Now()
	create(t, client, pod("next", "2200m"))
	node := ""
	eventually(t, "the pod to have a node", func(ctx context.Context) bool { node = get(ctx, client, "next").Spec.NodeName; return node != "" })
	if took := time.Since(created); !slices.Contains(marked, node) {
		t.Errorf("after %s the pod is on %s; want one of those that were marked, %v", took, node, marked)
	}
	state := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(state)
		}
	})
	eventually(t, "that node to be alone, unmarked", func(ctx context.Context) bool {
		all, marked, others := d.nodes(ctx)
		state = fmt.Sprint(len(all), " nodes; marked: ", marked, others)
		if len(all) > 3 {
			t.Fatalf("%s: one was bought", state)
		}
		return len(all) == 1 && all[0].Name == node && len(marked)+len(others) == 0
	})
	list, err := client.EventsV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=ScaleDownCancelled"})
	d.must(err)
	if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind == "Node" && e.Regarding.Name == node && strings.Contains(e.Note, "pending pod default/next fits on it and would otherwise need a new node")
	}) {
		t.Errorf("of events %v none says of %s why its removal was cancelled", list.Items, node)
	}
}
