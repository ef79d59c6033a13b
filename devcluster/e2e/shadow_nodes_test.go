package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/storm/checker"
)

// TestShadowOfNodes runs a shadow with a provider beside kube-scheduler and another autoscaler,
// under load that has nodes bought and removed. It runs under the rights of the kustomization
// shadow-nodes, which may only read, and has asked for nothing else; its report says that both
// would have bought and removed nodes, and what those cost.
func TestShadowOfNodes(t *testing.T) {
	t.Parallel()
	audit := auditLog(t)
	c, client := startClusterWithLog(t, audit)
	s, _, _ := startSwapped(t, c, client, strings.ReplaceAll(swapGroups, "max: 10,", "max: 10, pricePerHour: 0.4,"))

	port := freePort(t)
	_, log := startBerth(t, c, slices.Concat([]string{"--shadow", "--bind-address=127.0.0.1", fmt.Sprint("--secure-port=", port), "--max-node-provision-time=30s"}, s.groups, scaleSoon)...)
	within(t, "the shadow to know the cluster", time.Minute, logs(log, `"ready"`))

	calm := s.load()
	s.served("kube-scheduler and the other autoscaler")
	calm()
	if err := client.CoreV1().Pods(v1.NamespaceDefault).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all bought nodes to go", func(context.Context) (gone bool) {
		s.watch.Do(func(h *checker.History) { gone = h.Left() == 0 })
		return gone
	})

	token := tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status")
	report := func(ctx context.Context, args ...string) string {
		out, _ := exec.CommandContext(ctx, berth, append([]string{"shadow", "report", "--server", fmt.Sprintf("https://127.0.0.1:%d", port), "--token-file", token, "--insecure-skip-tls-verify"}, args...)...).CombinedOutput()
		return string(out)
	}
	var r struct {
		Nodes struct {
			Verdicts         counts
			Buying, Removing int
			Cluster, Berth   struct{ Hours, Cost float64 }
		}
	}
	eventually(t, "nothing to be open any more", func(ctx context.Context) bool {
		return json.Unmarshal([]byte(report(ctx, "-o", "json")), &r) == nil && r.Nodes.Buying == 0 && r.Nodes.Removing == 0 && len(r.Nodes.Verdicts) > 0
	})
	t.Logf("the report:\n%s", report(t.Context()))
	if v := r.Nodes.Verdicts; v["boughtByBoth"] < 4 || v["removedByBoth"] < 4 {
		t.Errorf("verdicts %v, want both to have bought and removed at least four nodes", v)
	}
	if r.Nodes.Cluster.Hours <= 0 || r.Nodes.Cluster.Cost <= 0 || r.Nodes.Berth.Hours <= 0 {
		t.Errorf("node hours and money are %+v", r.Nodes)
	}
	onlyRead(t, audit, "shadow-nodes")
	if text := logOf(t, log); strings.Contains(text, "forbidden") || strings.Contains(text, "a shadow only reads") {
		t.Errorf("the shadow has asked for more than reading:\n%s", text)
	}
}
