package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// lateProvider carries out each call for nodes and each deletion at once, and answers when the
// client has stopped waiting.
type lateProvider struct{ *simulated.Provider }

func (p lateProvider) IncreaseSize(ctx context.Context, group string, delta int) error {
	return late(ctx, p.Provider.IncreaseSize(ctx, group, delta))
}

func (p lateProvider) DeleteNodes(ctx context.Context, group string, instances []nodegroup.Instance) error {
	return late(ctx, p.Provider.DeleteNodes(ctx, group, instances))
}

func late(ctx context.Context, err error) error {
	<-ctx.Done()
	return err
}

// TestAProviderThatAnswersAfterTheDeadline has nodes bought and deleted by a provider whose every
// answer is too late. Nothing of it is a failure: the delay after one, of ten minutes, and a backoff
// would be seen here as nodes that don't go, or don't come.
func TestAProviderThatAnswersAfterTheDeadline(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	dir := t.TempDir()
	groups, cloud := filepath.Join(dir, "groups.yaml"), filepath.Join(dir, "cloud.yaml")
	if err := os.WriteFile(groups, []byte(oneGroup), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := simulatedgroup.Load(groups)
	if err != nil {
		t.Fatal(err)
	}
	p := simulated.New(client.CoreV1().Nodes(), file, time.Now, slog.New(slog.DiscardHandler))
	go p.Run(t.Context(), 100*time.Millisecond)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = externalgrpc.NewServer(lateProvider{p}).Serve(t.Context(), listener, externalgrpc.ServerTLS{})
	}()
	if err := os.WriteFile(cloud, fmt.Appendf(nil, "address: %s\ngrpc_timeout: 500ms\n", listener.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, log := startBerth(t, c, "--cloud-provider=externalgrpc", "--cloud-config="+cloud, "--scan-interval=1s",
		"--scale-down-unneeded-time=2s", "--scale-down-delay-after-add=0s", "--scale-down-delay-after-failure=10m", "--node-delete-delay-after-taint=0s")

	for i := range 3 {
		create(t, client, pod(fmt.Sprint("large", i), "3"))
	}
	nodes := func(ctx context.Context, want int) bool {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == want
	}
	eventually(t, "three nodes, and a pod on each", func(ctx context.Context) bool {
		on := map[string]bool{}
		for i := range 3 {
			on[get(ctx, client, fmt.Sprint("large", i)).Spec.NodeName] = true
		}
		return len(on) == 3 && !on[""] && nodes(ctx, 3)
	})
	for i := range 3 {
		if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), fmt.Sprint("large", i), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all nodes to be gone", func(ctx context.Context) bool { return nodes(ctx, 0) })
	events, err := client.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "ScaleDownFailed" || e.Reason == "FailedToScaleUpGroup" || e.Reason == "ScaleUpTimedOut" {
			t.Errorf("event %s about %s: %s", e.Reason, e.Regarding.Name, e.Note)
		}
	}
	for _, want := range []string{"no answer to a scale-up", "no answer to a deletion of nodes"} {
		if !strings.Contains(logOf(t, log), want) {
			t.Errorf("the log has no %q", want)
		}
	}
}
