package extender

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
)

// Chain are the extenders of a configuration, in the order in which they are asked.
// Its methods may be called by several goroutines.
type Chain struct {
	extenders []*Extender
	log       *slog.Logger
}

// NewChain returns the extenders of a configuration; concerns has, by index,
// the pods that each concerns. An error says which extender's TLS settings can't be used.
func NewChain(list []kubeschedulerv1.Extender, concerns []framework.Extender, log *slog.Logger) (*Chain, error) {
	c := &Chain{log: log}
	sent := &nodeEncodings{}
	for i := range list {
		x, err := New(list[i], concerns[i])
		if err != nil {
			return nil, err
		}
		x.nodes = sent
		c.extenders = append(c.extenders, x)
	}
	return c, nil
}

// Concerned names the extenders that a pod concerns, by their places in the configuration.
func (c *Chain) Concerned(pod *v1.Pod) string {
	var out strings.Builder
	for i, x := range c.extenders {
		if x.Concerns(pod) {
			fmt.Fprint(&out, i, " ")
		}
	}
	return out.String()
}

// Ask asks the extenders that a pod concerns: about the nodes that the rules allow, or,
// when the question has candidates for preemption, about those. Each
// extender filters what those before it have left, then all give scores.
//
// When an extender fails that isn't ignorable, its error is the answer's, and no other
// extender is asked. When an ignorable one fails, its error is logged, and the nodes stay
// as they were before it. An extender that fails to give scores is left out of the sum,
// ignorable or not. All of this is as in kube-scheduler.
func (c *Chain) Ask(ctx context.Context, question step.Consult, nodes []*v1.Node) step.Consulted {
	if question.Candidates != nil {
		return c.preempt(ctx, question)
	}
	out := step.Consulted{UID: question.UID, Number: question.Number, Failed: map[string]string{}}
	for _, x := range c.extenders {
		if len(nodes) == 0 {
			break
		}
		if x.cfg.FilterVerb == "" || !x.Concerns(question.Pod) {
			continue
		}
		allowed, failed, err := x.Filter(ctx, question.Pod, nodes)
		if err != nil {
			if x.cfg.Ignorable {
				c.logIgnored(x, x.cfg.FilterVerb, err)
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
	out.Scores = c.prioritize(ctx, question.Pod, nodes)
	return out
}

// logIgnored logs that an ignorable extender has failed.
func (c *Chain) logIgnored(x *Extender, verb string, err error) {
	c.log.Warn("an extender failed and is ignored", "extender", x.name, "verb", verb, "err", err)
}

// prioritize returns the sum of the extenders' scores by node: weighted, and scaled
// from the 0 to 10 of extenders to the 0 to 100 of plugins. One node needs no scores.
func (c *Chain) prioritize(ctx context.Context, pod *v1.Pod, nodes []*v1.Node) map[string]int64 {
	out := map[string]int64{}
	for _, x := range c.extenders {
		if len(nodes) < 2 || x.cfg.PrioritizeVerb == "" || !x.Concerns(pod) {
			continue
		}
		scores, err := x.Prioritize(ctx, pod, nodes)
		if err != nil {
			c.log.Warn("an extender's scores are ignored", "extender", x.name, "err", err)
			continue
		}
		for name, s := range scores {
			out[name] += s * x.cfg.Weight * (framework.MaxScore / maxScore)
		}
	}
	return out
}

// Bind has the extender bind the pod that binds. The configuration has exactly one
// such extender when a Bind asks for it (step.Bind.Extender).
func (c *Chain) Bind(ctx context.Context, bind step.Bind) error {
	i := slices.IndexFunc(c.extenders, func(x *Extender) bool { return x.cfg.BindVerb != "" })
	return c.extenders[i].Bind(ctx, &extenderv1.ExtenderBindingArgs{PodName: bind.Name, PodNamespace: bind.Namespace, PodUID: bind.UID, Node: bind.Node})
}
