package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// fakeProvider has one group with a target, and others; it fails what it is told to.
type fakeProvider struct {
	fails  map[string]error // by call
	groups []nodegroup.Group

	mu     sync.Mutex
	target int      // of the first group; guarded by mu
	calls  []string // guarded by mu
}

func (p *fakeProvider) call(format string, args ...any) error {
	name := fmt.Sprintf(format, args...)
	p.mu.Lock()
	p.calls = append(p.calls, name)
	p.mu.Unlock()
	return p.fails[name]
}

// callsBut returns the calls so far without those of one name.
func (p *fakeProvider) callsBut(name string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(x string) bool { return x == name })
}

func (p *fakeProvider) grow(delta int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target += delta
}

func (p *fakeProvider) Groups(context.Context) ([]nodegroup.Group, error) {
	if err := p.call("groups"); err != nil {
		return nil, err
	}
	groups := slices.Clone(p.groups)
	p.mu.Lock()
	defer p.mu.Unlock()
	groups[0].Target = p.target
	return groups, nil
}

func (p *fakeProvider) GroupOf(*v1.Node) string { return "" }

func (p *fakeProvider) IncreaseSize(_ context.Context, id string, delta int) error {
	p.grow(delta)
	return p.call("increase %s by %d", id, delta)
}

func (p *fakeProvider) DeleteNodes(_ context.Context, id string, list []nodegroup.Instance) error {
	return p.call("delete %s/%s of %s", list[0].ID, list[0].Node, id)
}

func (p *fakeProvider) DecreaseTargetSize(_ context.Context, id string, delta int) error {
	err := p.call("decrease %s by %d", id, delta)
	if err == nil {
		p.grow(-delta)
	}
	return err
}

func newFakeCloud() (*cloud, *fakeProvider, *[]step.Input) {
	p := &fakeProvider{target: 1, fails: map[string]error{}, groups: []nodegroup.Group{{ID: "g", Max: 5, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj()}}}
	in := &[]step.Input{}
	return newCloud(p, time.Hour, func(x step.Input) { *in = append(*in, x) }, slog.New(slog.DiscardHandler)), p, in
}

// runCloud starts a cloud, and ends it with the test. It returns workers that have no other.
func runCloud(t *testing.T, c *cloud) *workers {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	c.run(ctx, &wg)
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return &workers{ctx: ctx, cloud: c}
}

// targets returns the targets of the first group in each GroupsSet.
func targets(inputs []step.Input) (out []int) {
	for _, in := range inputs {
		out = append(out, in.(step.GroupsSet).Groups[0].Target)
	}
	return out
}

// TestGroupsThatCannotBeUsedAreLeftOut has a provider with a group that isn't valid,
// and one whose groups can't be read.
func TestGroupsThatCannotBeUsedAreLeftOut(t *testing.T) {
	c, p, in := newFakeCloud()
	p.groups = append(p.groups, nodegroup.Group{ID: "no template", Max: 1})
	c.refresh(t.Context())
	p.fails["groups"] = errors.New("refused")
	c.refresh(t.Context())
	if len(*in) != 1 {
		t.Fatalf("the core was told %v, want the groups once", *in)
	}
	if groups := (*in)[0].(step.GroupsSet).Groups; len(groups) != 1 || groups[0].ID != "g" {
		t.Errorf("got %+v, want group g alone", groups)
	}
}

// TestEachNodeDeletionHasItsOutcome has the provider refuse the second of three.
func TestEachNodeDeletionHasItsOutcome(t *testing.T) {
	c, p, _ := newFakeCloud()
	p.fails["delete i2/ of g"] = errors.New("refused")
	out := make(chan string)
	w := runCloud(t, c)
	w.DeleteNodes([]step.NodeDeletion{{Group: "g", Node: "n1"}, {Group: "g", Instance: "i2"}, {Group: "g", Node: "n3", Instance: "i3"}},
		func(d step.NodeDeletion, err error) { out <- fmt.Sprint(d.Node, d.Instance, " ", err) })
	for _, want := range []string{"n1 <nil>", "i2 refused", "n3i3 <nil>"} {
		if got := <-out; got != want {
			t.Errorf("outcome %q, want %q", got, want)
		}
	}
	if want := []string{"delete /n1 of g", "delete i2/ of g", "delete i3/n3 of g"}; !slices.Equal(p.callsBut("groups"), want) {
		t.Errorf("calls %q, want %q", p.callsBut("groups"), want)
	}
}

// TestADecreasedTargetIsReadBack whether the provider did it or not.
func TestADecreasedTargetIsReadBack(t *testing.T) {
	c, p, _ := newFakeCloud()
	p.target = 3
	p.fails["decrease g by 1"] = errors.New("refused")
	lists := make(chan step.Input)
	c.put = func(in step.Input) { lists <- in }
	w := runCloud(t, c)
	for _, x := range []struct{ by, want int }{{0, 3}, {2, 1}, {1, 1}} {
		if x.by > 0 {
			w.DecreaseTarget(step.TargetDecrease{Group: "g", Nodes: x.by})
		}
		if got := targets([]step.Input{<-lists}); !slices.Equal(got, []int{x.want}) {
			t.Errorf("after the target was lowered by %d the core is told targets %v, want %d", x.by, got, x.want)
		}
	}
}
