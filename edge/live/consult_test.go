package live

import (
	"context"
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// slowExtender answers about pod slow when it is let, and about others at once.
type slowExtender struct {
	Extenders
	let chan struct{}
}

func (x *slowExtender) Ask(_ context.Context, question step.Consult, nodes []*v1.Node) step.Consulted {
	if question.UID == "slow" {
		<-x.let
	}
	out := step.Consulted{}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	return out
}

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
	c.nodes = corelisters.NewNodeLister(store)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	c.run(ctx, &wg)
	w := &workers{ctx: ctx, consultant: c}
	answers := make(chan string)
	for _, pod := range []string{"slow", "quick"} {
		w.Consult(step.Consult{UID: testkit.Pod(pod).UID[4:], Nodes: []string{"n2", "gone", "n1"}},
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
