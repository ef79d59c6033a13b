package simulated_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

const valid = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
seed: 3
groups:
- name: g
  min: 0
  max: 5
  launchDelay: {min: 10s, max: 10s}
  startup: {min: 5s, max: 5s}
  launchesPerSecond: 1
  template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}, taints: [{key: a, effect: NoSchedule}]}
`

func file(t *testing.T, text string) (*simulatedgroup.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return simulatedgroup.Load(path)
}

func TestLifeOfANode(t *testing.T) {
	ctx := context.Background()
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	nodes := fake.NewClientset().CoreV1().Nodes()
	p := simulated.New(nodes, f, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	count := func() (total, ready int) {
		p.Advance(ctx)
		list, err := nodes.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list.Items {
			if p.GroupOf(&n) != "g" {
				t.Errorf("node %s is of group %q", n.Name, p.GroupOf(&n))
			}
			for _, c := range n.Status.Conditions {
				if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
					ready++
				}
			}
		}
		return len(list.Items), ready
	}
	target := func() int {
		gs, err := p.Groups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return gs[0].Target
	}
	if err := p.IncreaseSize(ctx, "g", 2); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		after                    time.Duration
		total, ready, launch, to int
	}{{0, 0, 0, 2, 2}, {10 * time.Second, 1, 0, 1, 2}, {time.Second, 2, 0, 0, 2}, {4 * time.Second, 2, 1, 0, 2}, {time.Second, 2, 2, 0, 2}}
	for i, s := range steps {
		now = now.Add(s.after)
		if total, ready := count(); total != s.total || ready != s.ready || p.Launching("g") != s.launch || target() != s.to {
			t.Errorf("step %d: %d nodes, %d ready, %d launching, target %d; want %+v", i, total, ready, p.Launching("g"), target(), s)
		}
	}
	if err := p.IncreaseSize(ctx, "g", 4); err == nil || !strings.Contains(err.Error(), "its size is 2 and its max 5") {
		t.Errorf("beyond max: %v", err)
	}
	list, _ := nodes.List(ctx, metav1.ListOptions{})
	if err := p.DeleteNodes(ctx, "g", []nodegroup.Instance{{Node: list.Items[0].Name}, {Node: "never-was"}}); err != nil {
		t.Fatal(err)
	}
	if total, _ := count(); total != 1 || target() != 1 {
		t.Errorf("after deletion: %d nodes, target %d; want 1, 1", total, target())
	}
	// A new process finds what is there.
	again := simulated.New(nodes, f, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if err := again.Adopt(ctx); err != nil {
		t.Fatal(err)
	}
	if gs, _ := again.Groups(ctx); gs[0].Target != 1 {
		t.Errorf("after a restart the target is %d, want 1", gs[0].Target)
	}
}

func TestLaunchesThatFailLowerTheTarget(t *testing.T) {
	ctx := context.Background()
	f, err := file(t, strings.Replace(valid, "launchDelay:", "failureRate: 1\n  launchDelay:", 1))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	p := simulated.New(fake.NewClientset().CoreV1().Nodes(), f, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if err := p.IncreaseSize(ctx, "g", 2); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	p.Advance(ctx)
	if gs, _ := p.Groups(ctx); gs[0].Target != 0 {
		t.Errorf("target is %d after all launches failed, want 0", gs[0].Target)
	}
}

// TestLaunchesGoOnAfterFailures has the API refuse the first call of each kind, and
// somebody delete a node before it is ready.
func TestLaunchesGoOnAfterFailures(t *testing.T) {
	ctx := context.Background()
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	refused := map[string]bool{}
	client.PrependReactor("*", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		first := !refused[a.GetVerb()]
		refused[a.GetVerb()] = true
		return first, nil, errors.New("refused")
	})
	nodes := client.CoreV1().Nodes()
	now := time.Unix(1000, 0)
	p := simulated.New(nodes, f, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if err := p.IncreaseSize(ctx, "g", 2); err != nil {
		t.Fatal(err)
	}
	expect := func(after time.Duration, launching, target int) {
		t.Helper()
		now = now.Add(after)
		p.Advance(ctx)
		gs, err := p.Groups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := gs[0]; p.Launching("g") != launching || got.Target != target || len(got.Instances) != target {
			t.Errorf("after %s: %d launching, target %d, %d instances; want %d, %d", now.Sub(time.Unix(1000, 0)), p.Launching("g"), got.Target, len(got.Instances), launching, target)
		}
	}
	expect(11*time.Second, 1, 2) // one of the two is refused
	expect(0, 0, 2)
	gs, err := p.Groups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gone := gs[0].Instances[0].Node
	if err := client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("nodes"), "", gone); err != nil {
		t.Fatal(err)
	}
	expect(6*time.Second, 0, 2) // making it ready is refused, for another reason
	expect(0, 0, 1)
	if gs, err = p.Groups(ctx); err != nil || gs[0].Instances[0].Node == gone {
		t.Errorf("the instances are %v, %v; want the one whose node is there", gs[0].Instances, err)
	}
}
