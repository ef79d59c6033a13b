package extender

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berthproject/berth/core/framework"
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
func (c *Chain) Ask(ctx context.Context, job step.Consult, nodes []*v1.Node) step.Consulted {
	if job.Candidates != nil {
		return c.preempt(ctx, job)
	}
	out := step.Consulted{UID: job.UID, Failed: map[string]string{}}
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
				c.log.Warn("an extender failed and is ignored", "extender", x.name, "verb", x.cfg.FilterVerb, "err", err)
				continue
			}
			out.Err = err
			return out
		}
		maps.Copy(out.Failed, failed)
		nodes = allowed
	}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	out.Scores = c.prioritize(ctx, job, nodes)
	return out
}

// prioritize sums the weighted scores, scaled from 0 to 10 to those of plugins.
func (c *Chain) prioritize(ctx context.Context, job step.Consult, nodes []*v1.Node) map[string]int64 {
	out := map[string]int64{}
	for _, x := range c.list {
		if len(nodes) < 2 || x.cfg.PrioritizeVerb == "" || !x.Concerns(job.Pod) {
			continue
		}
		scores, err := x.Prioritize(ctx, job.Pod, nodes)
		if err != nil {
			c.log.Warn("an extender's scores are left out", "extender", x.name, "err", err)
			continue
		}
		for name, s := range scores {
			out[name] += s * x.cfg.Weight * (framework.MaxScore / maxScore)
		}
	}
	return out
}

// Bind has the extender that binds the pod do so.
func (c *Chain) Bind(ctx context.Context, job step.Bind) error {
	i := slices.IndexFunc(c.list, func(x *Extender) bool { return x.cfg.BindVerb != "" })
	return c.list[i].Bind(ctx, &extenderv1.ExtenderBindingArgs{PodName: job.Name, PodNamespace: job.Namespace, PodUID: job.UID, Node: job.Node})
}

// preempt puts the candidates for preemption to the extenders, each of which may
// drop nodes and change the victims on others (callExtenders in kube-scheduler).
func (c *Chain) preempt(ctx context.Context, job step.Consult) step.Consulted {
	out := step.Consulted{UID: job.UID}
	objects := map[string]*v1.Pod{}
	left := map[string]*extenderv1.MetaVictims{}
	for _, k := range job.Candidates {
		v := &extenderv1.MetaVictims{NumPDBViolations: int64(k.Violations)}
		for _, p := range k.Victims {
			objects[string(p.UID)] = p
			v.Pods = append(v.Pods, &extenderv1.MetaPod{UID: string(p.UID)})
		}
		left[k.Node] = v
	}
	for _, x := range c.list {
		if len(left) == 0 {
			break
		}
		if x.cfg.PreemptVerb == "" || !x.Concerns(job.Pod) {
			continue
		}
		answer, err := x.Preempt(ctx, victimArgs(x, job.Pod, left, objects))
		if err == nil {
			err = complete(answer, x.cfg.Ignorable)
		}
		if err != nil {
			if x.cfg.Ignorable {
				c.log.Warn("an extender failed and is ignored", "extender", x.name, "verb", x.cfg.PreemptVerb, "err", err)
				continue
			}
			out.Err = err
			return out
		}
		left = answer
	}
	for _, node := range slices.Sorted(maps.Keys(left)) {
		a := step.Agreed{Node: node, Violations: int(left[node].NumPDBViolations)}
		for _, p := range left[node].Pods {
			a.Pods = append(a.Pods, types.UID(p.UID))
		}
		out.Agreed = append(out.Agreed, a)
	}
	return out
}

// complete drops nodes without victims, or takes them for an error.
func complete(answer map[string]*extenderv1.MetaVictims, drop bool) error {
	for _, node := range slices.Sorted(maps.Keys(answer)) {
		if v := answer[node]; v == nil || len(v.Pods) == 0 {
			if !drop {
				return fmt.Errorf("expected at least one victim pod on node %q", node)
			}
			delete(answer, node)
		}
	}
	return nil
}

// victimArgs are UIDs only for extenders that know the pods.
func victimArgs(x *Extender, pod *v1.Pod, left map[string]*extenderv1.MetaVictims, objects map[string]*v1.Pod) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pod}
	if x.cfg.NodeCacheCapable {
		args.NodeNameToMetaVictims = left
		return args
	}
	args.NodeNameToVictims = map[string]*extenderv1.Victims{}
	for node, v := range left {
		w := &extenderv1.Victims{NumPDBViolations: v.NumPDBViolations}
		for _, p := range v.Pods {
			if o := objects[p.UID]; o != nil {
				w.Pods = append(w.Pods, o)
			}
		}
		args.NodeNameToVictims[node] = w
	}
	return args
}
