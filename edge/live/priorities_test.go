package live

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// prioritiesMap is the ConfigMap with a text under the key; without the key for "".
func prioritiesMap(text string) *v1.ConfigMap {
	c := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-autoscaler-priority-expander", UID: "u"}}
	if text != "" {
		c.Data = map[string]string{"priorities": text}
	}
	return c
}

// prioritized returns the expander priority of a live edge, what it says, and the
// priorities that it reads.
func prioritized(t *testing.T, events func(step.Event)) (expander.Chain, *priorities) {
	t.Helper()
	scale := core.DefaultAutoscale()
	scale.Expander = "priority"
	chain, p, err := newChain(&Options{Core: core.Config{Autoscale: &scale}, Namespace: "kube-system", Log: slog.New(slog.DiscardHandler)}, events)
	if err != nil {
		t.Fatal(err)
	}
	return chain, p
}

// chosenBy returns which of the groups a and b a chain chooses; "" for either, by chance.
func chosenBy(chain expander.Chain) string {
	options := []expander.Option{{Group: &cluster.NodeGroup{ID: "a"}}, {Group: &cluster.NodeGroup{ID: "b"}}}
	chosen := map[int]bool{}
	for seed := range uint64(64) {
		chosen[chain.Choose(expander.Round{Seed: seed}, options)] = true
	}
	switch {
	case len(chosen) > 1:
		return ""
	case chosen[0]:
		return "a"
	default:
		return "b"
	}
}

// TestPrioritiesFollowTheirConfigMap changes it step by step: what can't be read leaves
// what held before and is told by an event, and so is a group without a priority.
func TestPrioritiesFollowTheirConfigMap(t *testing.T) {
	var events []string
	chain, p := prioritized(t, func(e step.Event) {
		if !e.Warning || e.Kind != "ConfigMap" || e.Name != "cluster-autoscaler-priority-expander" || e.Namespace != "kube-system" || e.UID != "u" {
			t.Errorf("the event is %+v, want a warning about the ConfigMap", e)
		}
		events = append(events, e.Reason)
	})
	for i, x := range []struct {
		does func()
		want string // the group that is chosen
		says string // reasons of events
	}{
		{func() {}, "", ""},
		{func() { p.set(prioritiesMap("2: [a]\n1: [.*]")) }, "a", ""},
		{func() { p.set(prioritiesMap("1: [a]\n2: [b]")) }, "b", ""},
		{func() { p.set(prioritiesMap("1: [a")) }, "b", "PriorityConfigMapInvalid"},
		{func() { p.set(prioritiesMap("")) }, "b", "PriorityConfigMapInvalid"},
		{func() { p.set(prioritiesMap("1: [a]")) }, "a", "PriorityConfigMapNotMatchedGroup"},
		{func() { p.gone() }, "", ""},
		{func() { p.set(prioritiesMap("1: [c]")) }, "", "PriorityConfigMapNotMatchedGroup PriorityConfigMapNotMatchedGroup PriorityConfigMapNoGroupMatched"},
	} {
		events = nil
		x.does()
		if got := chosenBy(chain); got != x.want || strings.Join(events, " ") != x.says {
			t.Errorf("step %d: %q is chosen, and events say %q; want %q and %q", i, got, events, x.want, x.says)
		}
	}
}

// watching is a context that ends before the test, and who is waited for then.
type watching struct {
	context.Context
	sync.WaitGroup
}

func following(t *testing.T) *watching {
	ctx, stop := context.WithCancel(context.Background())
	b := &watching{Context: ctx}
	t.Cleanup(b.Wait)
	t.Cleanup(stop)
	return b
}

// TestPrioritiesAreWatched has an API whose ConfigMap is created, changed and deleted
// while the cache runs, which may read nothing but that ConfigMap.
func TestPrioritiesAreWatched(t *testing.T) {
	client := fake.NewClientset(prioritiesMap("1: [a]"))
	watching := make(chan struct{}, 1)
	client.PrependWatchReactor("configmaps", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		if got := a.(clienttesting.WatchAction).GetWatchRestrictions().Fields.String(); got != "metadata.name=cluster-autoscaler-priority-expander" || a.GetNamespace() != "kube-system" {
			t.Errorf("%s in the namespace %q are watched", got, a.GetNamespace())
		}
		w, err := client.Tracker().Watch(a.GetResource(), a.GetNamespace())
		watching <- struct{}{}
		return true, w, err
	})
	told := make(chan struct{}, 10)
	chain, p := prioritized(t, func(step.Event) { told <- struct{}{} })
	ctx := following(t)
	p.watch(ctx.Context, &ctx.WaitGroup, client, time.Minute)
	if got := chosenBy(chain); got != "a" {
		t.Errorf("at first %q is chosen, want a", got)
	}
	<-watching
	<-told // b has no priority
	maps := client.CoreV1().ConfigMaps("kube-system")
	if _, err := maps.Update(t.Context(), prioritiesMap("1: ["), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-told // it can't be read
	if got := chosenBy(chain); got != "a" {
		t.Errorf("after a change that can't be read %q is chosen, want a as before", got)
	}
}

// TestTheLeaderWatchesPriorities starts an instance whose configuration names the expander
// priority: it reads the ConfigMap when it becomes the leader, and not before.
func TestTheLeaderWatchesPriorities(t *testing.T) {
	i, becomeLeader := newInstance(), make(chan struct{})
	read := make(chan struct{}, 10)
	i.client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		read <- struct{}{}
		return false, nil, nil
	})
	scale := core.DefaultAutoscale()
	scale.Expander = "priority"
	_, provider, _ := newFakeCloud()
	i.start(t, Options{Core: core.Config{Autoscale: &scale}, Namespace: "kube-system", Provider: provider, BecomeLeader: becomeLeader})
	i.knows(1, 1)
	if len(read) > 0 {
		t.Error("the ConfigMap is read by an instance that stands by")
	}
	close(becomeLeader)
	<-read
	i.stop()
	if err := <-i.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestALeaderDoesNotWaitForPrioritiesForever has an API that refuses to show the
// ConfigMap, and a context that ends.
func TestALeaderDoesNotWaitForPrioritiesForever(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	chain, p := prioritized(t, func(step.Event) {})
	ctx := following(t)
	p.watch(ctx.Context, &ctx.WaitGroup, client, time.Millisecond)
	if got := chosenBy(chain); got != "" {
		t.Errorf("%q is chosen, want either", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	p.watch(ended, &ctx.WaitGroup, client, time.Hour)
}

// TestExpandersThatAreNamedAreThere makes chains of what a configuration names.
func TestExpandersThatAreNamedAreThere(t *testing.T) {
	for _, x := range []struct {
		names      string
		grpc       expander.Strategy
		strategies int
		priorities bool
		err        string
	}{
		{names: "", strategies: 0},
		{names: "price,random", strategies: 2},
		{names: "priority,least-waste", strategies: 2, priorities: true},
		{names: "grpc,priority", grpc: expander.Random{}, strategies: 2, priorities: true},
		{names: "grpc", err: "expander grpc is not available here"},
	} {
		scale := core.DefaultAutoscale()
		scale.Expander = x.names
		chain, p, err := newChain(&Options{Core: core.Config{Autoscale: &scale}, GRPCExpander: x.grpc}, nil)
		if len(chain) != x.strategies || x.err == "" && (p != nil) != x.priorities || (err == nil) != (x.err == "") || err != nil && err.Error() != x.err {
			t.Errorf("%q: %d strategies, priorities: %t, %v; want %d, %t, %q", x.names, len(chain), p != nil, err, x.strategies, x.priorities, x.err)
		}
	}
	if chain, p, err := newChain(&Options{}, nil); chain != nil || p != nil || err != nil {
		t.Errorf("without an autoscaler there are %v, %v and %v", chain, p, err)
	}
	(*priorities)(nil).watch(t.Context(), nil, nil, 0) // does nothing
}
