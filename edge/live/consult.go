package live

import (
	"context"
	"sync"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Extenders are asked about pods that concern them, and bind some of them.
type Extenders interface {
	Ask(ctx context.Context, job step.Consult, nodes []*v1.Node) step.Consulted
	Bind(ctx context.Context, job step.Bind) error
}

// consultations are how many pods extenders are asked about at a time.
const consultations = 16

// consultant puts pods to the extenders. A slow one delays the pods that it
// concerns and no other.
type consultant struct {
	extenders Extenders
	nodes     corelisters.NodeLister
	work      chan step.Consult
	done      func(step.Input)
}

func (c *consultant) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, consultations, c.work, func(job step.Consult) {
		c.done(c.extenders.Ask(ctx, job, c.objects(job.Nodes)))
	})
}

// objects returns the nodes that still exist.
func (c *consultant) objects(names []string) []*v1.Node {
	out := make([]*v1.Node, 0, len(names))
	for _, name := range names {
		if n, err := c.nodes.Get(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}
