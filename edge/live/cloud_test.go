package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// fakeProvider has one group with a target, and others; it fails what it is told to.
type fakeProvider struct {
	fails map[string]error // by call; not to be changed while calls are made
	// refuses fails calls by what they are about; nil for none.
	refuses func(call string) error
	groups  []nodegroup.Group

	mu     sync.Mutex
	target int      // of the first group; guarded by mu
	calls  []string // guarded by mu
}

func (p *fakeProvider) call(format string, args ...any) error {
	name := fmt.Sprintf(format, args...)
	p.mu.Lock()
	p.calls = append(p.calls, name)
	p.mu.Unlock()
	if p.refuses != nil {
		return p.refuses(name)
	}
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
	var names []string
	for _, x := range list {
		names = append(names, x.ID+"/"+x.Node)
	}
	return p.call("delete %s of %s", strings.Join(names, " "), id)
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

// TestAGroupIsUsedAsFarAsItCanBe has lists with one group each that isn't as it should be.
func TestAGroupIsUsedAsFarAsItCanBe(t *testing.T) {
	c, p, in := newFakeCloud()
	var log bytes.Buffer
	c.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	good := p.groups[0].Template
	for _, x := range []struct {
		name      string
		group     nodegroup.Group
		want, log string
	}{
		{"limits that can't be, and no others are known", nodegroup.Group{ID: "g", Min: 3, Max: 2, Template: good},
			"", `msg="a node group is unusable" group=g err="node group \"g\": min 3 is greater than max 2; set min to at most 2"`},
		{"the same again", nodegroup.Group{ID: "g", Min: 3, Max: 2, Template: good}, "", ""},
		{"nothing is wrong", nodegroup.Group{ID: "g", Min: 1, Max: 5, Template: good},
			"g: 1 to 5, template true", `msg="a node group is usable again" group=g`},
		{"limits that can't be: the last good ones hold", nodegroup.Group{ID: "g", Min: 9, Max: 2, Template: good},
			"g: 1 to 5, template true", `msg="a node group is unusable" group=g err="node group \"g\": min 9 is greater than max 2; set min to at most 2"`},
		{"a template that can't be, too", nodegroup.Group{ID: "g", Min: 9, Max: 2, Template: &v1.Node{}},
			`g: 1 to 5, template false, node group "g": template has no allocatable; set at least cpu, memory and pods, or no pod would ever fit`, ""},
		{"a template that the provider can't give", nodegroup.Group{ID: "g", Min: 2, Max: 4, TemplateError: "unavailable"},
			"g: 2 to 4, template false, unavailable", `msg="a node group is unusable" group=g err=unavailable`},
		{"a group without a name", nodegroup.Group{Max: 4, Template: good},
			"", `msg="a node group is unusable" group="" err="node group: name is empty; give each group a name"`},
	} {
		log.Reset()
		*in = nil
		p.groups = []nodegroup.Group{x.group}
		c.refresh(t.Context())
		got := ""
		for _, g := range (*in)[0].(step.GroupsSet).Groups {
			got = fmt.Sprintf("%s: %d to %d, template %t", g.ID, g.Min, g.Max, g.Template != nil)
			if g.TemplateError != "" {
				got += ", " + g.TemplateError
			}
		}
		if said := strings.TrimSpace(log.String()); got != x.want || said != x.log {
			t.Errorf("%s: got %q, logged %q, want %q and %q", x.name, got, said, x.want, x.log)
		}
	}
	p.fails["groups"] = errors.New("refused")
	*in = nil
	if c.refresh(t.Context()); len(*in) > 0 {
		t.Errorf("the groups can't be read, and the core is told %v", *in)
	}
}

// TestEachNodeDeletionHasItsOutcome has the provider refuse an instance that isn't a node, and
// then calls with one node among others: only that one has failed.
func TestEachNodeDeletionHasItsOutcome(t *testing.T) {
	c, p, _ := newFakeCloud()
	p.fails["delete i2/ of g"] = errors.New("refused")
	for _, call := range []string{"delete /n4 /n5 /n6 of g", "delete /n5 /n6 of g", "delete /n5 of g"} {
		p.fails[call] = errors.New("n5 is refused")
	}
	out := make(chan string)
	w := runCloud(t, c)
	w.DeleteNodes([]step.NodeDeletion{{Group: "g", Node: "n1"}, {Group: "g", Instance: "i2"}, {Group: "g", Node: "n3", Instance: "i3"}},
		func(d step.NodeDeletion, err error) { out <- fmt.Sprint(d.Node, d.Instance, " ", err) })
	for _, want := range []string{"n1 <nil>", "n3i3 <nil>", "i2 refused"} {
		if got := <-out; got != want {
			t.Errorf("outcome %q, want %q", got, want)
		}
	}
	w.DeleteNodes([]step.NodeDeletion{{Group: "g", Node: "n4"}, {Group: "g", Node: "n5"}, {Group: "g", Node: "n6"}},
		func(d step.NodeDeletion, err error) { out <- fmt.Sprint(d.Node, d.Instance, " ", err) })
	for _, want := range []string{"n4 <nil>", "n5 n5 is refused", "n6 <nil>"} {
		if got := <-out; got != want {
			t.Errorf("outcome %q, want %q", got, want)
		}
	}
	if want := []string{"delete /n1 i3/n3 of g", "delete i2/ of g", "delete /n4 /n5 /n6 of g", "delete /n4 of g", "delete /n5 /n6 of g", "delete /n5 of g", "delete /n6 of g"}; !slices.Equal(p.callsBut("groups"), want) {
		t.Errorf("calls %q, want %q", p.callsBut("groups"), want)
	}
}

// TestACallForManyNodesThatFailsIsOneLine and isn't made again for each node when it had no answer,
// nor when the nodes go together or not at all. The groups are read back at once.
func TestACallForManyNodesThatFailsIsOneLine(t *testing.T) {
	var nodes []step.NodeDeletion
	for i := range 14 {
		nodes = append(nodes, step.NodeDeletion{Group: "g", Node: fmt.Sprint("n", i)})
	}
	together := slices.Clone(nodes)
	for i := range together {
		together[i].Atomic = true
	}
	for _, x := range []struct {
		name  string
		nodes []step.NodeDeletion
		err   error
		want  string
	}{
		{"no answer", nodes, &nodegroup.UnknownOutcome{Err: errors.New("deadline exceeded")}, "no answer to a deletion of nodes"},
		{"the context ended", nodes, context.DeadlineExceeded, "no answer to a deletion of nodes"},
		{"refused together", together, errors.New("no"), "failed to delete nodes"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, p, _ := newFakeCloud()
			var log bytes.Buffer
			c.log = slog.New(slog.NewTextHandler(&log, nil))
			call := "delete /n0 /n1 /n2 /n3 /n4 /n5 /n6 /n7 /n8 /n9 /n10 /n11 /n12 /n13 of g"
			p.fails[call] = x.err
			told := 0
			list := make([]deletion, len(x.nodes))
			for i := range x.nodes {
				list[i] = deletion{x.nodes[i], func(_ step.NodeDeletion, err error) {
					if told++; !errors.Is(err, x.err) {
						t.Errorf("outcome %v, want %v", err, x.err)
					}
				}}
			}
			c.deleteNodes(t.Context(), "g", list)
			if told != len(x.nodes) || !slices.Equal(p.callsBut(""), []string{call}) || len(c.again) != 1 {
				t.Errorf("%d outcomes, calls %q, %d lists asked for; want 14, one and one", told, p.callsBut(""), len(c.again))
			}
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, x.want) || !strings.Contains(text, "nodes=14") || !strings.Contains(text, "and 4 more") {
				t.Errorf("logged %q; want one line with %q, the count, and ten names", text, x.want)
			}
		})
	}
}

// TestNodesThatAreRefusedOneByOneAreOneLine for each reason, and one for those that are deleted.
func TestNodesThatAreRefusedOneByOneAreOneLine(t *testing.T) {
	c, p, _ := newFakeCloud()
	var log bytes.Buffer
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	var list []deletion
	for i := range 14 {
		list = append(list, deletion{step.NodeDeletion{Group: "g", Node: fmt.Sprint("n", i)}, func(step.NodeDeletion, error) {}})
	}
	// Each call that has one of the first 12 fails, whatever else it has.
	p.refuses = func(call string) error {
		for i := range 12 {
			if strings.Contains(call, fmt.Sprintf("/n%d ", i)) {
				return errors.New("the quota is used up")
			}
		}
		return nil
	}
	c.deleteNodes(t.Context(), "g", list)
	text := log.String()
	if lines := strings.Count(text, "\n"); lines != 2 || !strings.Contains(text, `msg="failed to delete nodes" group=g nodes=12`) || !strings.Contains(text, `msg="deleted nodes" group=g nodes=2`) {
		t.Errorf("logged %d lines, want one for what is deleted and one for the refusal:\n%s", lines, text)
	}
	if len(c.again) != 1 {
		t.Errorf("%d lists are asked for, want one", len(c.again))
	}
}

// TestAFailedOrderIsReadBack: whether nodes come all the same isn't known.
func TestAFailedOrderIsReadBack(t *testing.T) {
	c, p, _ := newFakeCloud()
	p.fails["increase g by 2"] = errors.New("the connection was lost")
	lists := make(chan step.Input)
	c.put = func(in step.Input) { lists <- in }
	w := runCloud(t, c)
	<-lists
	outcome := make(chan error, 1)
	w.ScaleUp(step.ScaleUp{Group: "g", Nodes: 2}, func(err error) { outcome <- err })
	if err := <-outcome; err == nil {
		t.Fatal("the order came through, want a failure")
	}
	if got := targets([]step.Input{<-lists}); !slices.Equal(got, []int{3}) {
		t.Errorf("the core is told targets %v, want 3: the order was carried out", got)
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

// TestABadPriceIsLeftOut has prices that can't be before and after one that can.
func TestABadPriceIsLeftOut(t *testing.T) {
	c, p, in := newFakeCloud()
	for _, x := range []struct{ price, want float64 }{{math.NaN(), 0}, {-1, 0}, {2.5, 2.5}, {math.Inf(1), 2.5}, {math.NaN(), 2.5}, {0, 0}, {-1, 0}} {
		*in = nil
		p.groups[0].Price = x.price
		c.refresh(t.Context())
		if g := (*in)[0].(step.GroupsSet).Groups[0]; g.Price != x.want || g.Template == nil {
			t.Errorf("price %v: the core is told %v with template %t, want %v with one", x.price, g.Price, g.Template != nil, x.want)
		}
	}
}

// TestAGroupThatCantBeReadIsAsItWas: the core is told nothing of it, also not that it is gone.
func TestAGroupThatCantBeReadIsAsItWas(t *testing.T) {
	c, p, in := newFakeCloud()
	p.groups = append(p.groups, nodegroup.Group{ID: "b", Unreadable: "the provider hangs"})
	c.refresh(t.Context())
	if got := (*in)[0].(step.GroupsSet); len(got.Groups) != 1 || got.Groups[0].ID != "g" || !slices.Equal(got.Busy, []string{"b"}) || got.Says("b") {
		t.Errorf("the core is told of groups %v and that %q are as they were, want g and b", got.Groups, got.Busy)
	}
}

// TestGroupsThatAreGoneAreForgottenHere has a provider that makes and deletes a group with every list:
// only what the lists of the last seconds have is remembered.
func TestGroupsThatAreGoneAreForgottenHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, _ := newFakeCloud()
		for i := range 100 {
			p.groups[0].ID, p.groups[0].Price = fmt.Sprint("g", i), float64(i%2)-1 // half of them are wrong
			c.refresh(t.Context())
			time.Sleep(nodegroup.GoneAfter / 2)
		}
		if len(c.good) > 2 || len(c.wrong) > 2 || len(c.listed) > 2 {
			t.Errorf("%d good groups and what was wrong with %d are remembered, and when %d were listed, want two of each at most", len(c.good), len(c.wrong), len(c.listed))
		}
	})
}

// TestLimitsOutliveListsAtOnce has two lists that follow each other at once leave a group out, which
// then comes with limits that can't be: the last good ones hold.
func TestLimitsOutliveListsAtOnce(t *testing.T) {
	c, p, in := newFakeCloud()
	all := p.groups
	c.refresh(t.Context())
	p.groups = []nodegroup.Group{{ID: "another", Max: 5, Template: all[0].Template}}
	c.refresh(t.Context())
	c.refresh(t.Context())
	p.groups, *in = all, nil
	p.groups[0].Min = 9
	c.refresh(t.Context())
	if got := (*in)[0].(step.GroupsSet).Groups; len(got) != 1 || got[0].Min != 0 || got[0].Max != 5 {
		t.Errorf("the core is told of %+v, want the group with its last good limits", got)
	}
}

// TestNodesHaveTheirGroupsBeforeTheGroupsAreKnown has a provider that learns with each list of
// which group a node is: the core takes deletions under way back for nodes of no group.
func TestNodesHaveTheirGroupsBeforeTheGroupsAreKnown(t *testing.T) {
	c, _, in := newFakeCloud()
	groups := map[string]string{}
	feed := newNodeFeed(func(n *v1.Node) string { return groups[n.Name] }, func(inputs ...step.Input) { *in = append(*in, inputs...) })
	set := func(n *v1.Node) { feed.deliver(func() []step.Input { return []step.Input{feed.set(n)} }) }
	c.regroup = feed.regroup
	old, changed := testkit.Node("n1").Obj(), testkit.Node("n1").Label("k", "v").Obj()
	set(old)
	set(testkit.Node("n2").Obj())
	set(changed)
	groups["n1"] = "g"
	c.refresh(t.Context())
	c.refresh(t.Context()) // nothing has changed
	feed.deliver(func() []step.Input { return []step.Input{feed.gone(changed)} })
	groups["n2"] = "g"
	c.refresh(t.Context())
	var got []string
	for _, x := range *in {
		got = append(got, describe(x))
	}
	want := []string{"NodeSet n1 of ", "NodeSet n2 of ", "NodeSet n1 of ", "NodeSet n1 of g", "step.GroupsSet", "step.GroupsSet", "NodeGone n1", "NodeSet n2 of g", "step.GroupsSet"}
	if !slices.Equal(got, want) {
		t.Fatalf("the core is told %q, want %q", got, want)
	}
	if again := (*in)[3].(step.NodeSet).Node; again != changed {
		t.Errorf("with its group n1 is shown as %v, want it as it was shown last", again.Labels)
	}
}
