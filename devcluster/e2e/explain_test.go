package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/api"
)

// fourGroups are node groups of which two take a pod of 3 CPUs. A launch takes long enough to
// ask about it.
const fourGroups = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
seed: 1
groups:
- {name: small, max: 2, launchDelay: {min: 10s, max: 10s}, startup: {min: 1s, max: 1s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
- {name: large, max: 2, launchDelay: {min: 10s, max: 10s}, startup: {min: 1s, max: 1s}, template: {allocatable: {cpu: "16", memory: 64Gi, pods: "10"}}}
- {name: tiny, max: 2, template: {allocatable: {cpu: "1", memory: 8Gi, pods: "10"}}}
- {name: gpu, max: 2, template: {allocatable: {cpu: "16", memory: 64Gi, pods: "10"}, taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}}
`

// TestExplainNodeGroups asks a running Berth why pods wait and where its node groups stand,
// while nodes are launching and when they are there. Its nodes are the simulated provider's of the
// same process, as in TestWhatOperatorsWatch; other tests get theirs from a server.
func TestExplainNodeGroups(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	groups := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(groups, []byte(fourGroups), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	startBerth(t, c, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port), "--cloud-provider=simulated", "--cloud-config="+groups, "--scan-interval=2s",
		"--frequent-loops-enabled=false") // one plan for both pods, though they come one after the other
	token := tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status")
	explain := func(ctx context.Context, args ...string) string {
		args = append([]string{"explain", "--server", fmt.Sprintf("https://127.0.0.1:%d", port), "--token-file", token, "--insecure-skip-tls-verify"}, args...)
		out, _ := exec.CommandContext(ctx, berth, args...).CombinedOutput()
		return string(out)
	}
	says := func(out string, patterns ...string) bool {
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(out) {
				return false
			}
		}
		return true
	}
	var last string
	eventuallySays := func(what string, args []string, patterns ...string) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Logf("berth explain %v says last:\n%s\nwant all of %q", args, last, patterns)
			}
		}()
		eventually(t, what, func(ctx context.Context) bool { last = explain(ctx, args...); return says(last, patterns...) })
	}

	eventuallySays("the groups to be known", []string{"group"}, `(?m)^GROUP +TARGET`, `(?m)^small +0 +0 +0 +0 +2 +2 `)
	create(t, client, pod("p0", "3"), pod("p1", "3"))
	eventuallySays("nodes to be bought for a pod", []string{"pod", "default/p0"},
		`small +scaled up +small 0->2 at .* for 2 pod\(s\), plan \d+, chosen by least-waste`,
		`large +not chosen +chosen by least-waste: 2 of small for 2 pod\(s\) .* instead of 1 of large for 2 pod\(s\)`,
		`tiny +doesn't fit +Insufficient cpu; needs 3 cpu, an empty node has 1`,
		`gpu +doesn't fit +node\(s\) had untolerated taint\(s\)`,
		`upcoming: .*small.*room reserved for it; ordered .*no launch of the node group has been observed.*; given up at `,
		`last event: pod triggered scale-up: \[\{small 0->2 \(max: 2\)\}\]`)
	if out := explain(t.Context(), "group", "small"); !says(out, `target size 2, min 0, max 2`, `0 ready, 2 launching`, `can't grow: max node group size reached`, `Launching: the oldest ordered `, `small \(chosen\) +2 +2 `) {
		t.Errorf("while its nodes launch, group small is said to be:\n%s", out)
	}
	for _, name := range []string{"p0", "p1"} {
		eventually(t, name+" to run", func(ctx context.Context) bool { return get(ctx, client, name).Status.Phase == v1.PodRunning })
	}

	eventuallySays("the nodes to be counted", []string{"group", "small"}, `2 ready, 0 launching`, `Launch time: p50 1\d(\.\d)?s`, `Last scale-up: small 0->2 `, `ScaledUp group small nodes 2`)
	nodes, err := api.Nodes(t.Context(), client)
	if err != nil || len(nodes) != 2 {
		t.Errorf("there are %d nodes (%v), and the group is said to have 2", len(nodes), err)
	}
	create(t, client, pod("p2", "3"), pod("huge", "64"))
	eventuallySays("the next choice", []string{"pod", "default/p2"}, `small +can't be scaled up +max node group size reached`, `large +scaled up`)
	eventually(t, "an event that accounts for all groups", func(ctx context.Context) bool {
		list, err := client.EventsV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=NotTriggerScaleUp"})
		if err != nil || len(list.Items) == 0 {
			return false
		}
		last = list.Items[0].Note
		return list.Items[0].Regarding.Name == "huge" && last == "pod didn't trigger scale-up: 1 max node group size reached, 1 node(s) had untolerated taint(s), 2 Insufficient cpu"
	})
	if out := explain(t.Context(), "group", "smal"); !strings.Contains(out, "node group smal not found; similar names are small") {
		t.Errorf("a wrong name: %s", out)
	}
	var all struct {
		Items []struct {
			Name   string
			Target int
		}
	}
	if err := json.Unmarshal([]byte(explain(t.Context(), "group", "-o", "json")), &all); err != nil || len(all.Items) != 4 {
		t.Errorf("as JSON: %v, %+v", err, all)
	}
}
