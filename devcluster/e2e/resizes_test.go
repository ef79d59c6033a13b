package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// running returns the pods of a Deployment that run.
func running(ctx context.Context, client kubernetes.Interface, name string) (out []*v1.Pod) {
	list, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		if p := &list.Items[i]; p.Status.Phase == v1.PodRunning && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out
}

// TestADeferredResizeMovesItsPod has a pod on a full node grow in place. The kubelet defers that: Berth says what the node
// lacks, buys another node, and evicts the pod once that has room for it. Its replacement runs there, and is resized there.
func TestADeferredResizeMovesItsPod(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	port := freePort(t)
	startBerth(t, c, append(nodeGroups(t, c, oneGroup), "--scan-interval=1s", "--move-pending-resizes-after=10s", "--scale-down-unneeded-time=1h",
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port))...)
	token := tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status")
	create(t, client, pod("ballast", "3"))
	single(t, client, "grows", "1", "", nil)
	eventually(t, "both pods to run", func(ctx context.Context) bool {
		return len(running(ctx, client, "grows")) == 1 && get(ctx, client, "ballast").Status.Phase == v1.PodRunning
	})
	full, old := get(t.Context(), client, "ballast").Spec.NodeName, running(t.Context(), client, "grows")[0]
	if old.Spec.NodeName != full {
		t.Fatalf("the pods are on %s and %s, want both on one node", full, old.Spec.NodeName)
	}

	resize := func(p *v1.Pod, cpu string) {
		t.Helper()
		p = p.DeepCopy()
		p.Spec.Containers[0].Resources.Requests = list("cpu", cpu)
		if _, err := client.CoreV1().Pods(p.Namespace).UpdateResize(t.Context(), p.Name, p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	resize(old, "2")
	said := ""
	eventually(t, "berth explain to say what the node lacks", func(ctx context.Context) bool {
		out, _ := exec.CommandContext(ctx, berth, "explain", "pod", "default/"+old.Name, "--server", fmt.Sprintf("https://127.0.0.1:%d", port), "--token-file", token, "--insecure-skip-tls-verify").CombinedOutput()
		said = string(out)
		return strings.Contains(said, fmt.Sprintf("its in-place resize is deferred: node %s lacks 1 cpu", full))
	})
	if running := running(t.Context(), client, "grows"); len(running) == 1 && running[0].UID == old.UID && !strings.Contains(said, "(--move-pending-resizes-after)") && !strings.Contains(said, "it is to move") {
		t.Errorf("of the pod berth explain says\n%s", said)
	}

	var moved *v1.Pod
	eventually(t, "the replacement to run on another node", func(ctx context.Context) bool {
		list := running(ctx, client, "grows")
		if len(list) == 1 && list[0].UID != old.UID {
			moved = list[0]
		}
		return moved != nil
	})
	if moved.Spec.NodeName == full {
		t.Errorf("the replacement is on %s again", full)
	}
	for _, reason := range []string{"ResizeWaitsForRoom", "ResizeMovesPod"} {
		eventually(t, "the event "+reason, func(ctx context.Context) bool {
			events, err := client.EventsV1().Events(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
			return err == nil && len(events.Items) > 0 && events.Items[0].Regarding.Name == old.Name
		})
	}
	resize(moved, "2")
	eventually(t, "the resize to be carried out", func(ctx context.Context) bool {
		p := get(ctx, client, moved.Name)
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].AllocatedResources.Cpu().String() == "2"
	})
}
