package extender

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berthproject/berth/core/step"
)

// This file asks extenders about preemption. What must hold: a candidate that is left has
// victims, and they are the last answer's, whether they were among those asked about or
// not; the core checks them against the cluster of then.

// candidates are the nodes that a pod may preempt on, with the victims there.
// Extenders know pods by UID; what they are sent may need the objects.
type candidates struct {
	pod     *v1.Pod                            // that preempts
	victims map[string]*extenderv1.MetaVictims // by node
	objects map[string]*v1.Pod                 // victims as the question has them, by UID
}

// candidatesOf returns the candidates of a question.
func candidatesOf(question step.Consult) *candidates {
	c := &candidates{pod: question.Pod, victims: map[string]*extenderv1.MetaVictims{}, objects: map[string]*v1.Pod{}}
	for _, k := range question.Candidates {
		v := &extenderv1.MetaVictims{NumPDBViolations: int64(k.Violations)}
		for _, p := range k.Victims {
			c.objects[string(p.UID)] = p
			v.Pods = append(v.Pods, &extenderv1.MetaPod{UID: string(p.UID)})
		}
		c.victims[k.Node] = v
	}
	return c
}

// args returns what an extender is sent: UIDs only when it knows the pods itself.
func (c *candidates) args(x *Extender) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: c.pod}
	if x.cfg.NodeCacheCapable {
		args.NodeNameToMetaVictims = c.victims
		return args
	}
	args.NodeNameToVictims = map[string]*extenderv1.Victims{}
	for node, v := range c.victims {
		whole := &extenderv1.Victims{NumPDBViolations: v.NumPDBViolations}
		for _, p := range v.Pods {
			if obj := c.objects[p.UID]; obj != nil {
				whole.Pods = append(whole.Pods, obj)
			}
		}
		args.NodeNameToVictims[node] = whole
	}
	return args
}

// agreed returns the candidates that are left, by the nodes' names.
func (c *candidates) agreed() (out []step.Agreed) {
	for _, node := range slices.Sorted(maps.Keys(c.victims)) {
		a := step.Agreed{Node: node, Violations: int(c.victims[node].NumPDBViolations)}
		for _, p := range c.victims[node].Pods {
			a.Pods = append(a.Pods, types.UID(p.UID))
		}
		out = append(out, a)
	}
	return out
}

// preempt asks the extenders about the candidates for preemption in turn. Each may drop
// nodes and change the victims on others (callExtenders in kube-scheduler).
func (c *Chain) preempt(ctx context.Context, question step.Consult) step.Consulted {
	out := step.Consulted{UID: question.UID, Number: question.Number}
	left := candidatesOf(question)
	for _, x := range c.extenders {
		if len(left.victims) == 0 {
			break
		}
		if x.cfg.PreemptVerb == "" || !x.Concerns(question.Pod) {
			continue
		}
		answer, err := x.Preempt(ctx, left.args(x))
		if err == nil && x.cfg.Ignorable {
			maps.DeleteFunc(answer, func(_ string, v *extenderv1.MetaVictims) bool { return noVictims(v) })
		} else if err == nil {
			err = checkVictims(answer)
		}
		if err != nil {
			if x.cfg.Ignorable {
				c.logIgnored(x, x.cfg.PreemptVerb, err)
				continue
			}
			out.Err = err
			return out
		}
		left.victims = answer
	}
	out.Agreed = left.agreed()
	return out
}

// noVictims reports whether an answer leaves a node without saying who is to leave it.
func noVictims(v *extenderv1.MetaVictims) bool { return v == nil || len(v.Pods) == 0 }

// checkVictims returns an error when a node that is left has no victims.
func checkVictims(answer map[string]*extenderv1.MetaVictims) error {
	for _, node := range slices.Sorted(maps.Keys(answer)) {
		if noVictims(answer[node]) {
			return fmt.Errorf("expected at least one victim pod on node %q", node)
		}
	}
	return nil
}
