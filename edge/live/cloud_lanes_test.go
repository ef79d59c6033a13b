package live

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// slowProvider has groups whose calls end when the test says so. Each call is told of when
// it begins.
type slowProvider struct {
	began chan string // call
	ends  map[string]chan struct{}
	ids   []string
}

func newSlowProvider(ids ...string) *slowProvider {
	p := &slowProvider{began: make(chan string, 100), ends: map[string]chan struct{}{}, ids: ids}
	for _, id := range append(ids, "groups") {
		p.ends[id] = make(chan struct{}, 100)
	}
	return p
}

func (p *slowProvider) do(ctx context.Context, call, until string) error {
	p.began <- call
	select {
	case <-p.ends[until]:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *slowProvider) Groups(ctx context.Context) (out []nodegroup.Group, err error) {
	for _, id := range p.ids {
		out = append(out, nodegroup.Group{ID: id, Max: 9, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj()})
	}
	return out, p.do(ctx, "groups", "groups")
}

func (p *slowProvider) GroupOf(*v1.Node) string { return "" }

func (p *slowProvider) IncreaseSize(ctx context.Context, id string, delta int) error {
	return p.do(ctx, fmt.Sprintf("%s by %d", id, delta), id)
}

func (p *slowProvider) DeleteNodes(ctx context.Context, id string, list []nodegroup.Instance) error {
	var names []string
	for _, x := range list {
		names = append(names, x.Node)
	}
	return p.do(ctx, fmt.Sprintf("delete %s of %s", strings.Join(names, " and "), id), id)
}

func (p *slowProvider) DecreaseTargetSize(ctx context.Context, id string, _ int) error {
	return p.do(ctx, "decrease "+id, id)
}

// slowCloud is a cloud over such a provider. Its inputs and outcomes come in one order.
type slowCloud struct {
	*slowProvider
	*workers
	cloud *cloud
	in    chan string
}

func newSlowCloud(t *testing.T, ids ...string) *slowCloud {
	s := &slowCloud{slowProvider: newSlowProvider(ids...), in: make(chan string, 100)}
	s.cloud = newCloud(s.slowProvider, time.Hour, func(in step.Input) {
		x := in.(step.GroupsSet)
		text := "groups"
		for _, g := range x.Groups {
			text += " " + g.ID
		}
		s.in <- fmt.Sprint(text, ", busy ", x.Busy)
	}, slog.New(slog.DiscardHandler))
	s.workers = runCloud(t, s.cloud)
	return s
}

func (s *slowCloud) order(group string, nodes int) {
	s.ScaleUp(step.ScaleUp{Group: group, Nodes: nodes}, func(err error) { s.in <- fmt.Sprintf("%s by %d: %v", group, nodes, err) })
}

// deletionsThatWait returns how many deletions the last waiting call of a group has.
func (s *slowCloud) deletionsThatWait(group string) int {
	l := &s.cloud.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	if call := l.open[group]; call != nil {
		return len(call.deletions)
	}
	return 0
}

// next expects what comes next of a channel.
func next(t *testing.T, from <-chan string, want string) {
	t.Helper()
	if got := <-from; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// TestAGroupThatHangsHoldsUpNoOther has the calls of one group hang: other groups get their
// nodes, and the list comes without it. Its own calls keep their order.
func TestAGroupThatHangsHoldsUpNoOther(t *testing.T) {
	s := newSlowCloud(t, "hangs", "well")
	next(t, s.began, "groups")
	s.ends["groups"] <- struct{}{}
	next(t, s.in, "groups hangs well, busy []")

	s.order("hangs", 1)
	next(t, s.began, "hangs by 1")
	s.order("hangs", 2)
	s.workers.DeleteNodes([]step.NodeDeletion{{Group: "hangs", Node: "n"}, {Group: "well", Node: "m"}}, func(d step.NodeDeletion, err error) {
		s.in <- fmt.Sprintf("deleted %s: %v", d.Node, err)
	})
	next(t, s.began, "delete m of well")
	s.ends["well"] <- struct{}{}
	next(t, s.in, "deleted m: <nil>")
	s.order("well", 3)
	next(t, s.began, "well by 3")
	s.ends["well"] <- struct{}{}
	next(t, s.in, "well by 3: <nil>")

	s.cloud.readAgain()
	next(t, s.began, "groups")
	s.ends["groups"] <- struct{}{}
	next(t, s.in, "groups well, busy [hangs]")

	for _, x := range []struct{ outcome, began string }{{"hangs by 1: <nil>", "hangs by 2"}, {"hangs by 2: <nil>", "delete n of hangs"}, {"deleted n: <nil>", ""}} {
		s.ends["hangs"] <- struct{}{}
		next(t, s.in, x.outcome)
		if x.began != "" {
			next(t, s.began, x.began)
		}
	}
}

// TestDeletionsOfAGroupGoInOneCall: those of one Step; each is owed an outcome of its own.
func TestDeletionsOfAGroupGoInOneCall(t *testing.T) {
	s := newSlowCloud(t, "a", "b")
	next(t, s.began, "groups")
	s.workers.DeleteNodes([]step.NodeDeletion{{Group: "a", Node: "a1"}, {Group: "b", Node: "b1"}, {Group: "a", Node: "a2"}}, func(d step.NodeDeletion, err error) {
		s.in <- fmt.Sprintf("deleted %s: %v", d.Node, err)
	})
	calls := []string{<-s.began, <-s.began}
	slices.Sort(calls)
	if want := []string{"delete a1 and a2 of a", "delete b1 of b"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
	s.ends["a"] <- struct{}{}
	next(t, s.in, "deleted a1: <nil>")
	next(t, s.in, "deleted a2: <nil>")
	s.ends["b"] <- struct{}{}
	next(t, s.in, "deleted b1: <nil>")
}

// TestDeletionsThatWaitGoInOneCall gives nodes up one after the other while a call of their
// group is under way. An order between them keeps its place.
func TestDeletionsThatWaitGoInOneCall(t *testing.T) {
	s := newSlowCloud(t, "a")
	next(t, s.began, "groups")
	s.ends["groups"] <- struct{}{}
	next(t, s.in, "groups a, busy []")
	remove := func(node string) {
		s.workers.DeleteNodes([]step.NodeDeletion{{Group: "a", Node: node}}, func(d step.NodeDeletion, err error) {
			s.in <- fmt.Sprintf("deleted %s: %v", d.Node, err)
		})
	}
	remove("a1")
	next(t, s.began, "delete a1 of a")
	remove("a2")
	remove("a3")
	s.order("a", 1)
	remove("a4")
	remove("a5")
	for s.deletionsThatWait("a") < 2 { // a call that was taken from the channel may not be in its lane yet
		runtime.Gosched()
	}
	s.cloud.readAgain()
	next(t, s.began, "groups")
	s.ends["groups"] <- struct{}{}
	next(t, s.in, "groups, busy [a]")
	for _, x := range []struct {
		outcomes []string
		began    string
	}{
		{[]string{"deleted a1: <nil>"}, "delete a2 and a3 of a"},
		{[]string{"deleted a2: <nil>", "deleted a3: <nil>"}, "a by 1"},
		{[]string{"a by 1: <nil>"}, "delete a4 and a5 of a"},
		{[]string{"deleted a4: <nil>", "deleted a5: <nil>"}, ""},
	} {
		s.ends["a"] <- struct{}{}
		for _, want := range x.outcomes {
			next(t, s.in, want)
		}
		if x.began != "" {
			next(t, s.began, x.began)
		}
	}
}

// TestGroupsAreNeverOlderThanTheOutcomeOfACall has calls begin and end while the groups are
// read: the list says nothing about their groups.
func TestGroupsAreNeverOlderThanTheOutcomeOfACall(t *testing.T) {
	s := newSlowCloud(t, "a", "b", "c")
	next(t, s.began, "groups")
	s.order("a", 1)
	next(t, s.began, "a by 1")
	s.ends["a"] <- struct{}{}
	next(t, s.in, "a by 1: <nil>")
	s.order("b", 1)
	next(t, s.began, "b by 1")
	s.ends["groups"] <- struct{}{}
	next(t, s.in, "groups c, busy [a b]")

	s.cloud.readAgain()
	next(t, s.began, "groups")
	s.ends["b"] <- struct{}{}
	next(t, s.in, "b by 1: <nil>")
	s.ends["groups"] <- struct{}{}
	next(t, s.in, "groups a c, busy [b]")

	s.cloud.readAgain()
	next(t, s.began, "groups")
	s.ends["groups"] <- struct{}{}
	next(t, s.in, "groups a b c, busy []")
}

// TestSoManyGroupsAreCalledAtATime has more groups than workers.
func TestSoManyGroupsAreCalledAtATime(t *testing.T) {
	var ids []string
	for i := range cloudWorkers + 3 {
		ids = append(ids, fmt.Sprintf("g%02d", i))
	}
	s := newSlowCloud(t, ids...)
	next(t, s.began, "groups")
	for _, id := range ids {
		s.order(id, 1)
	}
	var began []string
	for range cloudWorkers {
		began = append(began, <-s.began)
	}
	s.ends["groups"] <- struct{}{}
	<-s.in
	s.cloud.readAgain() // by the time that it is, everything that could begin has begun
	next(t, s.began, "groups")
	for range 3 {
		s.ends[began[0][:3]] <- struct{}{}
		next(t, s.in, began[0]+": <nil>")
		began = append(began[1:], <-s.began)
	}
	if slices.Sort(began); len(slices.Compact(began)) != cloudWorkers {
		t.Errorf("calls under way: %q, want %d", began, cloudWorkers)
	}
}
