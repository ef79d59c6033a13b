package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/edge/live"
)

// watched is a Berth that somebody watches.
type watched struct {
	t      *testing.T
	client kubernetes.Interface
	web    *http.Client
	server string
	token  string
}

// get returns what a path answers, with and without the token.
func (w *watched) get(ctx context.Context, path, token string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.web.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// scrapes waits until a scrape has all lines.
func (w *watched) scrapes(lines ...string) {
	w.t.Helper()
	var missing []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the scrape lacks: %s", strings.Join(missing, "\n"))
		}
	}()
	eventually(w.t, "the scrape to have all lines", func(ctx context.Context) bool {
		_, body := w.get(ctx, "/metrics", w.token)
		missing = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(body, "\n"+line+"\n") })
		return len(missing) == 0
	})
}

// says waits until the status ConfigMap says something.
func (w *watched) says(what string, ok func(*live.Status) bool) {
	w.t.Helper()
	var text string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the status is\n%s", text)
		}
	}()
	eventually(w.t, what, func(ctx context.Context) bool {
		cm, err := w.client.CoreV1().ConfigMaps("kube-system").Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
		if err != nil || cm.Annotations["cluster-autoscaler.kubernetes.io/last-updated"] == "" {
			return false
		}
		text = cm.Data["status"]
		var s live.Status
		return yaml.Unmarshal([]byte(text), &s) == nil && len(s.NodeGroups) == 1 && ok(&s)
	})
}

// TestWhatOperatorsWatch scrapes a Berth with the rights of deploy/, reads its status and
// its events, while a node is bought for a pod and removed after it.
func TestWhatOperatorsWatch(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	groups := filepath.Join(t.TempDir(), "groups.yaml")
	const one = "apiVersion: berth.dev/v1alpha1\nkind: SimulatedNodeGroups\ngroups:\n- {name: a, max: 10, template: {allocatable: {cpu: \"4\", memory: 8Gi, pods: \"10\"}}}\n"
	if err := os.WriteFile(groups, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	startBerth(t, c, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port),
		"--cloud-provider=simulated", "--cloud-config="+groups, "--scan-interval=2s", "--emit-per-nodegroup-metrics",
		"--scale-down-unneeded-time=5s", "--scale-down-delay-after-add=0s", "--node-delete-delay-after-taint=1s")
	token, err := os.ReadFile(tokenFor(t, client, "watcher", "/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t, client: client, server: fmt.Sprintf("https://127.0.0.1:%d", port), token: string(token),
		web: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}

	w.scrapes(`cluster_autoscaler_cluster_safe_to_autoscale 1`, `cluster_autoscaler_nodes_count{state="ready"} 0`, `cluster_autoscaler_max_nodes_count 10`, `cluster_autoscaler_node_group_max_count{node_group="a"} 10`)
	create(t, client, pod("wants", "3"))
	eventually(t, "the pod to run", func(ctx context.Context) bool { return get(ctx, client, "wants").Status.Phase == v1.PodRunning })
	w.scrapes(`cluster_autoscaler_nodes_count{state="ready"} 1`, `cluster_autoscaler_nodes_count{state="unregistered"} 0`, `cluster_autoscaler_node_group_target_count{node_group="a"} 1`,
		`cluster_autoscaler_scaled_up_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name=""} 1`, `cluster_autoscaler_unschedulable_pods_count{type="unschedulable"} 0`,
		`cluster_autoscaler_scaled_down_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="empty"} 0`, `cluster_autoscaler_errors_total{type="cloudProviderError"} 0`)
	w.says("the status to have the node", func(s *live.Status) bool {
		g := s.NodeGroups[0]
		return s.AutoscalerStatus == "Running" && s.ClusterWide.Health.Status == "Healthy" && s.ClusterWide.Health.NodeCounts.Registered.Ready == 1 && g.Name == "a" &&
			g.Health.CloudProviderTarget == 1 && g.Health.MaxSize == 10 && g.ScaleUp.Status == "NoActivity" && !s.ClusterWide.ScaleDown.LastProbeTime.IsZero()
	})
	if code, body := w.get(t.Context(), "/health-check", ""); code != http.StatusOK || body != "OK" {
		t.Errorf("/health-check: %d %s", code, body)
	}

	if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), "wants", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node to go", func(ctx context.Context) bool {
		nodes, err := api.Nodes(ctx, client)
		return err == nil && len(nodes) == 0
	})
	w.scrapes(`cluster_autoscaler_scaled_down_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="empty"} 1`, `cluster_autoscaler_nodes_count{state="ready"} 0`,
		`cluster_autoscaler_node_group_target_count{node_group="a"} 0`, `cluster_autoscaler_pending_node_deletions 0`, `cluster_autoscaler_unneeded_nodes_count 0`)
	w.says("the status to have no node any more", func(s *live.Status) bool {
		return s.NodeGroups[0].Health.CloudProviderTarget == 0 && s.ClusterWide.Health.NodeCounts.Registered.Total == 0 && s.ClusterWide.ScaleDown.Status == "NoCandidates"
	})
	eventually(t, "events about the node group and the node", func(ctx context.Context) bool {
		list, err := client.EventsV1().Events("kube-system").List(ctx, metav1.ListOptions{})
		seen := map[string]bool{}
		for _, e := range list.Items {
			if e.Regarding.Kind == "ConfigMap" && e.Regarding.Name == "cluster-autoscaler-status" && e.Regarding.UID != "" {
				seen[e.Reason] = true
			}
		}
		return err == nil && seen["ScaledUpGroup"] && seen["ScaleDownEmpty"]
	})
}
