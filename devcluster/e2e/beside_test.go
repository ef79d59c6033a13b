package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
)

// This file runs Berth as it runs where kube-scheduler can't be replaced (docs/clouds/managed.md): both place pods of
// their own on the same nodes.

// ownProfile configures a Berth that places pods of its own name only.
const ownProfile = schedulerDefaults + "profiles: [{schedulerName: berth}]\n"

// overcommitted returns the nodes whose pods request more CPU than they have, by the API.
func overcommitted(ctx context.Context, t *testing.T, client kubernetes.Interface) (names []string) {
	t.Helper()
	nodes, err := api.Nodes(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		var requested int64
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Spec.NodeName == n.Name {
				requested += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			}
		}
		if requested > n.Status.Allocatable.Cpu().MilliValue() {
			names = append(names, n.Name)
		}
	}
	return names
}

// ofBerth returns a pod that Berth places.
func ofBerth(name, cpu string) *v1.Pod {
	p := pod(name, cpu)
	p.Spec.SchedulerName = "berth"
	return p
}

// TestBesideKubeScheduler has kube-scheduler and Berth place pods on the same nodes at the same time, for which there is
// just enough room. Each pod is placed by its own scheduler, and Berth sees what the other has placed. Every node
// whose room was given away twice is counted, and the node's explanation says by whom; so is the one that this
// test gives away, as a scheduler does that hasn't seen Berth's pod.
func TestBesideKubeScheduler(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	for i := range 4 {
		makeNode(t, client, fmt.Sprint("n", i), "8Gi")
	}
	startScheduler(t, c, schedulerConfig(t, c, schedulerDefaults))
	port := freePort(t)
	startBerth(t, c, "--config", schedulerConfig(t, c, ownProfile), "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port))
	server := fmt.Sprintf("https://127.0.0.1:%d", port)
	ask, reader := asking(t, server), tokenFor(t, client, "reader", "/metrics", "/api/v1alpha1/*", "/debug/status")
	conflicts := func(ctx context.Context) int {
		code, body := ask(ctx, "/metrics", reader)
		m := regexp.MustCompile(`(?m)^berth_scheduler_conflicts_total\{about="room"\} (\d+)$`).FindStringSubmatch(body)
		if code != http.StatusOK || m == nil {
			return -1
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var last string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%d conflicts are counted, and berth explain node says last:\n%s", conflicts(context.Background()), last)
		}
	})
	explained := func(ctx context.Context, node string) string {
		out, _ := exec.CommandContext(ctx, berth, "explain", "node", node, "--server", server, "--token-file", reader, "--insecure-skip-tls-verify").CombinedOutput()
		last = string(out)
		return last
	}
	within(t, "Berth to lead", time.Minute, func(ctx context.Context) bool { return conflicts(ctx) == 0 })

	// 16 CPUs, and as many pods of one CPU each.
	for i := range 8 {
		create(t, client, ofBerth(fmt.Sprint("ours-", i), "1"), pod(fmt.Sprint("theirs-", i), "1"))
	}
	// Where a node was given away twice, another has room: all pods find a node.
	eventually(t, "all pods to be placed", func(ctx context.Context) bool {
		pods, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
		return err == nil && len(pods.Items) == 0
	})
	twice := overcommitted(t.Context(), t, client)
	t.Logf("the room of %d nodes was given away twice: %q", len(twice), twice)
	eventually(t, "each conflict to be counted and explained", func(ctx context.Context) bool {
		for _, node := range twice {
			if !strings.Contains(explained(ctx, node), "scheduler default-scheduler has placed it there") {
				return false
			}
		}
		return conflicts(ctx) >= len(twice)
	})

	// Two pods of a whole node each: Berth sees the other's, and gives no place away twice.
	makeNode(t, client, "late-0", "8Gi")
	theirs := pod("theirs-whole", "4")
	theirs.Spec.NodeSelector = map[string]string{v1.LabelHostname: "late-0"}
	create(t, client, theirs)
	eventually(t, "kube-scheduler to place a pod", func(ctx context.Context) bool { return get(ctx, client, "theirs-whole").Spec.NodeName != "" })
	ours := ofBerth("ours-whole", "4")
	ours.Spec.NodeSelector = map[string]string{v1.LabelHostname: "late-0"}
	create(t, client, ours)
	eventually(t, "Berth to say that the node is full", func(ctx context.Context) bool {
		return strings.Contains(refusal(get(ctx, client, "ours-whole")), "Insufficient cpu")
	})

	// A scheduler that hasn't seen Berth's pod.
	makeNode(t, client, "late-1", "8Gi")
	ours = ofBerth("ours-first", "4")
	ours.Spec.NodeSelector = map[string]string{v1.LabelHostname: "late-1"}
	create(t, client, ours)
	eventually(t, "Berth to place a pod", func(ctx context.Context) bool { return get(ctx, client, "ours-first").Spec.NodeName == "late-1" })
	before := conflicts(t.Context())
	blind := pod("blind", "1")
	blind.Spec.SchedulerName = "blind"
	create(t, client, blind)
	if err := client.CoreV1().Pods(v1.NamespaceDefault).Bind(t.Context(), &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "blind"}, Target: v1.ObjectReference{Kind: "Node", Name: "late-1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the conflict to be counted and explained", func(ctx context.Context) bool {
		return conflicts(ctx) == before+1 && strings.Contains(explained(ctx, "late-1"), "scheduler blind has placed it there while others were placed; the node's pods request 125 % of its cpu")
	})
	if names := overcommitted(t.Context(), t, client); len(names) != len(twice)+1 {
		t.Errorf("the nodes %q request more than they have, want those of before and late-1", names)
	}
}
