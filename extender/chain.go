package extender

import (
	"context"
	"log/slog"
	"slices"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/framework"
)

// Chain are the extenders in the order in which they are asked.
type Chain struct {
	list []*Extender
	log  *slog.Logger
}

// NewChain returns the extenders of a configuration.
func NewChain(list []kubeschedulerv1.Extender, concerns []framework.Extender, log *slog.Logger) (*Chain, error) {
	c := &Chain{log: log}
	for i := range list {
		x, err := New(list[i], concerns[i])
		if err != nil {
			return nil, err
		}
		c.list = append(c.list, x)
	}
	return c, nil
}

// Ask puts a pod and the nodes that the rules allow to the extenders: each
// filters what those before it left, then all give scores. The error of one
// that is ignorable is logged and its filter left out; scores are never worth
// an error, as in kube-scheduler.
func (c *Chain) Ask(ctx context.Context, job core.Consult, nodes []*v1.Node) core.Consulted {
	out := core.Consulted{UID: job.UID, Failed: map[string]string{}}
	for _, x := range c.list {
		if len(nodes) == 0 {
			break
		}
		if x.cfg.FilterVerb == "" || !x.Concerns(job.Pod) {
			continue
		}
		allowed, failed, err := x.Filter(ctx, job.Pod, nodes)
		if err != nil {
			if x.cfg.Ignorable {
				c.log.Warn("an extender failed and is ignored", "extender", x.cfg.URLPrefix, "verb", x.cfg.FilterVerb, "err", err)
				continue
			}
			out.Err = err
			return out
		}
		for name, why := range failed {
			out.Failed[name] = why
		}
		nodes = allowed
	}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	out.Scores = c.prioritize(ctx, job, nodes)
	return out
}

// prioritize sums the weighted scores, scaled from 0 to 10 to those of plugins.
func (c *Chain) prioritize(ctx context.Context, job core.Consult, nodes []*v1.Node) map[string]int64 {
	out := map[string]int64{}
	for _, x := range c.list {
		if len(nodes) < 2 || x.cfg.PrioritizeVerb == "" || !x.Concerns(job.Pod) {
			continue
		}
		scores, err := x.Prioritize(ctx, job.Pod, nodes)
		if err != nil {
			c.log.Warn("an extender's scores are left out", "extender", x.cfg.URLPrefix, "err", err)
			continue
		}
		for name, s := range scores {
			out[name] += s * x.cfg.Weight * (framework.MaxScore / maxScore)
		}
	}
	return out
}

// Bind has the extender that binds the pod do so.
func (c *Chain) Bind(ctx context.Context, job core.Bind) error {
	i := slices.IndexFunc(c.list, func(x *Extender) bool { return x.cfg.BindVerb != "" })
	return c.list[i].Bind(ctx, &extenderv1.ExtenderBindingArgs{PodName: job.Name, PodNamespace: job.Namespace, PodUID: job.UID, Node: job.Node})
}
