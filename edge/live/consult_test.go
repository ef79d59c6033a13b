package live

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// slowExtender answers about pod slow when it is let, and about others at once.
type slowExtender struct {
	Extenders
	let chan struct{}
}

func (x *slowExtender) Ask(_ context.Context, question step.Consult, nodes []*v1.Node) step.Consulted {
	if question.Pod.Name == "slow" {
		<-x.let
	}
	out := step.Consulted{}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	return out
}

// Concerned implements Extenders.
func (x *slowExtender) Concerned(*v1.Pod) string { return "slow" }

// TestASlowExtenderDelaysItsOwnPodsOnly asks about two pods, and about a node that is
// gone.
func TestASlowExtenderDelaysItsOwnPodsOnly(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, name := range []string{"n1", "n2"} {
		if err := store.Add(testkit.Node(name).Obj()); err != nil {
			t.Fatal(err)
		}
	}
	x := &slowExtender{let: make(chan struct{})}
	c := newConsultant(x)
	c.nodes, c.pods = corelisters.NewNodeLister(store), podsNamed(t, "slow", "quick")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	c.run(ctx, &wg)
	w := &workers{ctx: ctx, consultant: c}
	answers := make(chan string)
	for _, pod := range []string{"slow", "quick"} {
		w.Consult(step.Consult{UID: testkit.Pod(pod).UID, Pod: testkit.Pod(pod).Obj(), Nodes: []string{"n2", "gone", "n1"}},
			func(a step.Consulted) { answers <- fmt.Sprint(pod, " ", a.Nodes) })
	}
	if got := <-answers; got != "quick [n2 n1]" {
		t.Errorf("got %s, want quick [n2 n1]", got)
	}
	close(x.let)
	if got := <-answers; got != "slow [n2 n1]" {
		t.Errorf("got %s, want slow [n2 n1]", got)
	}
	stop()
	wg.Wait()
}

// podsNamed returns a lister of pods.
func podsNamed(t *testing.T, names ...string) corelisters.PodLister {
	t.Helper()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, name := range names {
		if err := store.Add(testkit.Pod(name).Obj()); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewPodLister(store)
}

// hung are extenders of which the first, which has a say in pods named p, answers when the
// context ends, and the other at once.
type hung struct{ Extenders }

func (hung) Concerned(pod *v1.Pod) string {
	if pod.Name == "p" {
		return "hung"
	}
	return "quick"
}

func (hung) Ask(ctx context.Context, question step.Consult, _ []*v1.Node) step.Consulted {
	if question.Pod.Name != "p" {
		return step.Consulted{UID: question.UID}
	}
	<-ctx.Done()
	return step.Consulted{Err: ctx.Err()}
}

// TestAHungExtenderDoesntHoldUpTheLoop hands out more questions than an extender that hangs
// will ever answer: none may wait, for the loop decides about all other pods. A pod that another
// extender has a say in gets its answer.
func TestAHungExtenderDoesntHoldUpTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsultant(hung{})
		c.nodes, c.pods = corelisters.NewNodeLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})), podsNamed(t, "p", "other")
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		c.run(ctx, &wg)
		w := &workers{ctx: ctx, consultant: c}
		for range 20_000 {
			w.Consult(step.Consult{UID: testkit.Pod("p").UID, Pod: testkit.Pod("p").Obj()}, func(step.Consulted) {})
		}
		answered := false
		w.Consult(step.Consult{UID: testkit.Pod("other").UID, Pod: testkit.Pod("other").Obj()}, func(a step.Consulted) { answered = a.Err == nil })
		synctest.Wait()
		if !answered {
			t.Error("the pod of the other extender has no answer")
		}
		stop()
		wg.Wait() // nobody asks the extender about what is left
	})
}

// TestNobodyIsAskedAboutAPodThatIsGone asks about a pod that isn't there any more, and about
// one whose name another has: an answer is owed all the same.
func TestNobodyIsAskedAboutAPodThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsultant(hung{})
		c.pods = podsNamed(t, "again")
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		c.run(ctx, &wg)
		gone, again := testkit.Pod("gone").Obj(), testkit.Pod("again").Obj()
		again.UID = "earlier"
		answers := make(chan step.Consulted, 2)
		for _, pod := range []*v1.Pod{gone, again} {
			c.ask(consultJob{step.Consult{UID: pod.UID, Pod: pod}, func(a step.Consulted) { answers <- a }})
		}
		synctest.Wait()
		for _, pod := range []string{"gone", "again"} {
			select {
			case a := <-answers:
				if a.Err == nil {
					t.Errorf("%s: got %+v, want an error: the pod isn't one that no node is for", pod, a)
				}
			default:
				t.Errorf("%s: there is no answer", pod)
			}
		}
		stop()
		wg.Wait()
	})
}
