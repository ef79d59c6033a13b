package live

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/berthproject/berth/core/step"
)

// Extenders are asked about the pods that concern them, and bind some of them
// (edge/extender). Both methods are called by several goroutines.
type Extenders interface {
	// Ask asks the extenders about a pod and the nodes that the rules allow. Their
	// errors are in the answer.
	Ask(ctx context.Context, question step.Consult, nodes []*v1.Node) step.Consulted
	// Bind has the extender bind that does so for the pod.
	Bind(ctx context.Context, bind step.Bind) error
}

// consultant asks extenders about pods, several at a time: a slow extender delays the
// pods that it concerns, and no other.
type consultant struct {
	extenders Extenders
	nodes     corelisters.NodeLister // set before run
	backlog   chan consultJob
}

// consultJob is a question, with what delivers its answer to the core.
type consultJob struct {
	question step.Consult
	answer   func(step.Consulted)
}

func newConsultant(extenders Extenders) *consultant {
	return &consultant{extenders: extenders, backlog: make(chan consultJob, 1<<12)}
}

func (c *consultant) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, consultWorkers, c.backlog, func(j consultJob) {
		j.answer(c.extenders.Ask(ctx, j.question, c.existing(j.question.Nodes)))
	})
}

// existing returns the nodes of these names that still exist, in the same order.
func (c *consultant) existing(names []string) []*v1.Node {
	out := make([]*v1.Node, 0, len(names))
	for _, name := range names {
		if n, err := c.nodes.Get(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}
