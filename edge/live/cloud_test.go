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

// fakeProvider has one group, and fails what it is told to.
type fakeProvider struct {
	target int
	fails  map[string]error // by call
	calls  []string
	groups []nodegroup.Group
}

func (p *fakeProvider) call(format string, args ...any) error {
	name := fmt.Sprintf(format, args...)
	p.calls = append(p.calls, name)
	return p.fails[name]
}

func (p *fakeProvider) Groups(context.Context) ([]nodegroup.Group, error) {
	if err := p.call("groups"); err != nil {
		return nil, err
	}
	groups := slices.Clone(p.groups)
	groups[0].Target = p.target
	return groups, nil
}

func (p *fakeProvider) GroupOf(*v1.Node) string { return "" }

func (p *fakeProvider) IncreaseSize(_ context.Context, id string, delta int) error {
	p.target += delta
	return p.call("increase %s by %d", id, delta)
}

func (p *fakeProvider) DeleteNodes(_ context.Context, id string, list []nodegroup.Instance) error {
	return p.call("delete %s/%s of %s", list[0].ID, list[0].Node, id)
}

func (p *fakeProvider) DecreaseTargetSize(_ context.Context, id string, delta int) error {
	err := p.call("decrease %s by %d", id, delta)
	if err == nil {
		p.target -= delta
	}
	return err
}

func newFakeCloud() (*cloud, *fakeProvider, *[]step.Input) {
	p := &fakeProvider{target: 1, fails: map[string]error{}, groups: []nodegroup.Group{{ID: "g", Max: 5, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj()}}}
	in := &[]step.Input{}
	return newCloud(p, time.Hour, func(x step.Input) { *in = append(*in, x) }, slog.New(slog.DiscardHandler)), p, in
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
	var out []string
	c.deleteNodes(t.Context(), []step.NodeDeletion{{Group: "g", Node: "n1"}, {Group: "g", Instance: "i2"}, {Group: "g", Node: "n3", Instance: "i3"}},
		func(d step.NodeDeletion, err error) { out = append(out, fmt.Sprint(d.Node, d.Instance, " ", err)) })
	if want := []string{"n1 <nil>", "i2 refused", "n3i3 <nil>"}; !slices.Equal(out, want) {
		t.Errorf("outcomes %q, want %q", out, want)
	}
	if want := []string{"delete /n1 of g", "delete i2/ of g", "delete i3/n3 of g"}; !slices.Equal(p.calls, want) {
		t.Errorf("calls %q, want %q", p.calls, want)
	}
}

// TestADecreasedTargetIsReadBack whether the provider did it or not.
func TestADecreasedTargetIsReadBack(t *testing.T) {
	c, p, in := newFakeCloud()
	p.target = 3
	c.decreaseTarget(t.Context(), step.TargetDecrease{Group: "g", Nodes: 2})
	p.fails["decrease g by 1"] = errors.New("refused")
	c.decreaseTarget(t.Context(), step.TargetDecrease{Group: "g", Nodes: 1})
	if got := targets(*in); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("the core was told targets %v, want [1 1]", got)
	}
}

// TestGroupsAreNeverOlderThanTheLastScaleUp hands calls to the goroutine of the
// cloud: the groups read after a scale-up's outcome have its nodes.
func TestGroupsAreNeverOlderThanTheLastScaleUp(t *testing.T) {
	p := &fakeProvider{target: 1, groups: []nodegroup.Group{{ID: "g", Max: 5, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj()}}}
	order := make(chan string, 10)
	c := newCloud(p, time.Hour, func(in step.Input) { order <- fmt.Sprint("groups at ", targets([]step.Input{in})[0]) }, slog.New(slog.DiscardHandler))
	w := &workers{ctx: t.Context(), cloud: c}
	w.ScaleUp(step.ScaleUp{Group: "g", Nodes: 2}, func(err error) { order <- fmt.Sprint("scaled up: ", err) })
	w.DecreaseTarget(step.TargetDecrease{Group: "g", Nodes: 1})
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	c.run(ctx, &wg)
	for _, want := range []string{"groups at 1", "scaled up: <nil>", "groups at 2"} {
		if got := <-order; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	stop()
	wg.Wait()
}
