package simulated_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
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

// TestAnInstanceIsKnownByItsID: a protocol may have no other name for one.
func TestAnInstanceIsKnownByItsID(t *testing.T) {
	p := newGroupOfTwo(t)
	groups, err := p.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteNodes(t.Context(), "g", []nodegroup.Instance{{ID: groups[0].Instances[1].ID}}); err != nil {
		t.Fatal(err)
	}
	after, err := p.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after[0].Target != 1 || len(after[0].Instances) != 1 || after[0].Instances[0] != groups[0].Instances[0] {
		t.Errorf("of %v one was deleted by its ID, and %v is left", groups[0].Instances, after[0].Instances)
	}
}

// groupOfTwo is a provider with the group of valid, whose clock the test moves.
type groupOfTwo struct {
	*simulated.Provider
	t     *testing.T
	nodes clientv1.NodeInterface
	now   time.Time
}

// newGroupOfTwo returns a provider that two nodes were just ordered of.
func newGroupOfTwo(t *testing.T) *groupOfTwo {
	t.Helper()
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	p := &groupOfTwo{t: t, nodes: fake.NewClientset().CoreV1().Nodes(), now: time.Unix(1000, 0)}
	p.Provider = simulated.New(p.nodes, f, func() time.Time { return p.now }, slog.New(slog.DiscardHandler))
	if err := p.IncreaseSize(t.Context(), "g", 2); err != nil {
		t.Fatal(err)
	}
	return p
}

// state lets time pass and returns what the API and the provider have then.
func (p *groupOfTwo) state(after time.Duration) string {
	p.t.Helper()
	p.now = p.now.Add(after)
	p.Advance(p.t.Context())
	list, err := p.nodes.List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	ready := 0
	for _, n := range list.Items {
		if p.GroupOf(&n) != "g" {
			p.t.Errorf("node %s is of group %q, want g", n.Name, p.GroupOf(&n))
		}
		for _, c := range n.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
				ready++
			}
		}
	}
	return fmt.Sprintf("%d nodes, %d ready, %d launching, target %d", len(list.Items), ready, p.Launching("g"), target(p.t, p.Provider))
}

// target returns the target of the first group.
func target(t *testing.T, p *simulated.Provider) int {
	t.Helper()
	groups, err := p.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return groups[0].Target
}

// TestLifeOfNodes follows two nodes from their order to their deletion. They launch a
// second apart, as the rate limit says.
func TestLifeOfNodes(t *testing.T) {
	p := newGroupOfTwo(t)
	for i, s := range []struct {
		after time.Duration
		want  string
	}{
		{0, "0 nodes, 0 ready, 2 launching, target 2"},
		{10 * time.Second, "1 nodes, 0 ready, 1 launching, target 2"},
		{time.Second, "2 nodes, 0 ready, 0 launching, target 2"},
		{4 * time.Second, "2 nodes, 1 ready, 0 launching, target 2"},
		{time.Second, "2 nodes, 2 ready, 0 launching, target 2"},
	} {
		if got := p.state(s.after); got != s.want {
			t.Errorf("step %d: got %s, want %s", i, got, s.want)
		}
	}
	if err := p.IncreaseSize(t.Context(), "g", 4); err == nil || !strings.Contains(err.Error(), "its size is 2 and its maximum 5") {
		t.Errorf("an order beyond max: got %v", err)
	}
	list, err := p.nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteNodes(t.Context(), "g", []nodegroup.Instance{{Node: list.Items[0].Name}, {Node: "never-was"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := p.state(0), "1 nodes, 1 ready, 0 launching, target 1"; got != want {
		t.Errorf("after a deletion: got %s, want %s", got, want)
	}
}

// TestADeletionIsCarriedOut whatever becomes of the call that deletes the Node object: an instance
// whose Node object alone was deleted would count as a node that is coming, and pods would wait for
// it.
func TestADeletionIsCarriedOut(t *testing.T) {
	away := errors.New("the API server is away")
	for _, x := range []struct {
		name   string
		delete func(context.Context, func(context.Context) error) error
		cut    bool   // the caller has gone meanwhile
		then   string // before the next attempt
	}{
		{"the caller is gone", func(ctx context.Context, do func(context.Context) error) error {
			return errors.Join(ctx.Err(), do(context.WithoutCancel(ctx)))
		}, true, "0 nodes"},
		{"the answer is lost", func(ctx context.Context, do func(context.Context) error) error { return errors.Join(do(ctx), away) }, false, "0 nodes"},
		{"the call is lost", func(context.Context, func(context.Context) error) error { return away }, false, "1 nodes"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newGroupOfTwo(t)
			f, err := file(t, valid)
			if err != nil {
				t.Fatal(err)
			}
			api := &deleting{NodeInterface: p.nodes, delete: x.delete}
			p.Provider = simulated.New(api, f, func() time.Time { return p.now }, slog.New(slog.DiscardHandler))
			if err := p.IncreaseSize(t.Context(), "g", 1); err != nil {
				t.Fatal(err)
			}
			if got, want := p.state(time.Minute), "1 nodes, 0 ready, 0 launching, target 1"; got != want {
				t.Fatalf("before: got %s, want %s", got, want)
			}
			groups, err := p.Groups(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cut := context.WithCancel(t.Context())
			defer cut()
			if x.cut {
				cut()
			}
			if err := p.DeleteNodes(ctx, "g", groups[0].Instances); err != nil {
				t.Error(err)
			}
			if got, want := p.state(0), x.then+", 0 ready, 0 launching, target 0"; got != want {
				t.Errorf("after the deletion: got %s, want %s", got, want)
			}
			api.delete = nil
			if got, want := p.state(0), "0 nodes, 0 ready, 0 launching, target 0"; got != want {
				t.Errorf("when the API server is back: got %s, want %s", got, want)
			}
		})
	}
}

// TestDeletionsAreConcurrent deletes 500 nodes in one call. Each deletion at the API waits until 50
// are under way, so that the call doesn't return unless they are made at the same time.
func TestDeletionsAreConcurrent(t *testing.T) {
	const nodes, together = 500, 50
	var instances []nodegroup.Instance
	for i := range nodes {
		instances = append(instances, nodegroup.Instance{Node: fmt.Sprint("node-", i)})
	}
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	var underWay, deleted atomic.Int64
	enough := make(chan struct{})
	api := &deleting{delete: func(ctx context.Context, _ func(context.Context) error) error {
		if underWay.Add(1) == together {
			close(enough)
		}
		select {
		case <-enough:
		case <-ctx.Done():
		}
		deleted.Add(1)
		return nil
	}}
	p := simulated.New(api, f, time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.DeleteNodes(ctx, "g", instances); err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil || deleted.Load() != nodes {
		t.Errorf("%d of %d nodes were deleted, %v; want all, %d at a time", deleted.Load(), nodes, ctx.Err(), together)
	}
}

// TestANodeIsNotRegisteredForADeletedInstance deletes an instance while its Node object is being
// created.
func TestANodeIsNotRegisteredForADeletedInstance(t *testing.T) {
	p := newGroupOfTwo(t)
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	api := &meanwhile{NodeInterface: p.nodes}
	p.Provider = simulated.New(api, f, func() time.Time { return p.now }, slog.New(slog.DiscardHandler))
	if err := p.IncreaseSize(t.Context(), "g", 1); err != nil {
		t.Fatal(err)
	}
	groups, err := p.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	api.do = func() {
		if err := p.DeleteNodes(t.Context(), "g", []nodegroup.Instance{{ID: groups[0].Instances[0].ID}}); err != nil {
			t.Error(err)
		}
	}
	p.state(time.Minute)
	if got, want := p.state(time.Second), "0 nodes, 0 ready, 0 launching, target 0"; got != want {
		t.Errorf("after the deletion: got %s, want %s", got, want)
	}
}

// meanwhile is an API in which something happens while a node is created.
type meanwhile struct {
	clientv1.NodeInterface
	do func()
}

func (m *meanwhile) Create(ctx context.Context, n *v1.Node, o metav1.CreateOptions) (*v1.Node, error) {
	m.do()
	return m.NodeInterface.Create(ctx, n, o)
}

// deleting is an API with a way of its own to delete a node, nil for the usual one.
type deleting struct {
	clientv1.NodeInterface
	delete func(ctx context.Context, do func(context.Context) error) error
}

func (a *deleting) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	do := func(ctx context.Context) error { return a.NodeInterface.Delete(ctx, name, o) }
	if a.delete == nil {
		return do(ctx)
	}
	return a.delete(ctx, do)
}

// TestAdoptFindsTheNodesThatExist has a new process take over from one whose first node
// is registered: what was ordered and isn't registered is lost.
func TestAdoptFindsTheNodesThatExist(t *testing.T) {
	p := newGroupOfTwo(t)
	if got, want := p.state(10*time.Second), "1 nodes, 0 ready, 1 launching, target 2"; got != want {
		t.Fatalf("before the restart: got %s, want %s", got, want)
	}
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	again := simulated.New(p.nodes, f, func() time.Time { return p.now }, slog.New(slog.DiscardHandler))
	if err := again.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := target(t, again); got != 1 {
		t.Errorf("after the restart: got the target %d, want 1", got)
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

// TestLaunchesGoOnAfterFailures has the API refuse the first call of each kind, that to make a node
// ready for one that somebody deleted before.
func TestLaunchesGoOnAfterFailures(t *testing.T) {
	ctx := context.Background()
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	refused := map[string]bool{}
	gone := ""
	client.PrependReactor("*", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if p, ok := a.(clienttesting.PatchAction); ok && p.GetName() != gone {
			return false, nil, nil
		}
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
	gone = gs[0].Instances[0].Node
	if err := client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("nodes"), "", gone); err != nil {
		t.Fatal(err)
	}
	expect(6*time.Second, 0, 2) // making it ready is refused, for another reason
	expect(0, 0, 1)
	if gs, err = p.Groups(ctx); err != nil || gs[0].Instances[0].Node == gone {
		t.Errorf("the instances are %v, %v; want the one whose node is there", gs[0].Instances, err)
	}
}

// TestSeenGroupsAreThoseOfTheAPI: nodes that another process makes and removes are counted, each
// time the groups are asked for, and nothing is written.
func TestSeenGroupsAreThoseOfTheAPI(t *testing.T) {
	f, err := file(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientset()
	s := simulated.Seen{Provider: simulated.New(api.CoreV1().Nodes(), f, time.Now, slog.New(slog.DiscardHandler))}
	target := func() int {
		t.Helper()
		groups, err := s.Groups(t.Context())
		if err != nil || len(groups) != 1 || len(groups[0].Instances) != groups[0].Target {
			t.Fatalf("groups %+v, %v; want one, with its instances", groups, err)
		}
		return groups[0].Target
	}
	before := target()
	for _, name := range []string{"a", "b"} {
		n := &v1.Node{}
		n.Name, n.Labels = name, map[string]string{simulatedgroup.GroupLabel: "g"}
		if _, err := api.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	both := target()
	if err := api.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	api.ClearActions()
	if one := target(); before != 0 || both != 2 || one != 1 {
		t.Errorf("the targets were %d, %d and %d; want 0, 2 and 1", before, both, one)
	}
	for _, a := range api.Actions() {
		if a.GetVerb() != "list" {
			t.Errorf("asking for groups did %s %s, want list only", a.GetVerb(), a.GetResource().Resource)
		}
	}
}
