package scaledown

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file says which candidates' pods have to be judged anew in a pass. What a verdict
// depends on, beside the pod: its controller, the disruption budgets that cover it, its pod group, and, of a
// terminating pod, the time. (A pod that is old enough to be evicted stays so.) A changed pod
// touches its node, which undoes the candidate.

// doubts are what has changed since the last pass that verdicts depend on.
type doubts struct {
	pods   bool // budgets may cover other pods, or a pod group has changed
	owners map[owner]bool
}

// owner names a controller of pods.
type owner struct {
	kind            cluster.WorkloadKind
	namespace, name string
}

// appendOwners appends the controllers of pods to an empty list, each once, in order.
func appendOwners(out []owner, pods []*cluster.Pod) []owner {
next:
	for _, p := range pods {
		ref := metav1.GetControllerOfNoCopy(p.Object)
		if ref == nil {
			continue
		}
		o := owner{cluster.WorkloadKind(ref.Kind), p.Object.Namespace, ref.Name}
		for i := range out {
			if out[i] == o {
				continue next
			}
		}
		out = append(out, o)
	}
	return out
}

// about reports whether the pods of a candidate have to be judged anew.
func (d *doubts) about(c *candidate) bool {
	if c.ages || c.recount || d.pods {
		return true
	}
	if len(d.owners) > 0 {
		for i := range c.owners {
			if d.owners[c.owners[i]] {
				return true
			}
		}
	}
	return false
}

// add records changes.
func (d *doubts) add(changes []cluster.Change) {
	for i := range changes {
		c := &changes[i]
		switch {
		case c.Object != nil:
			_, group := c.Object.PodGroup()
			d.pods = d.pods || group || coversOthers(c.Object)
		case c.Workload != nil || c.OldWorkload != nil:
			w := c.Workload
			if w == nil {
				w = c.OldWorkload
			}
			if d.owners == nil {
				d.owners = map[owner]bool{}
			}
			d.owners[owner{w.Kind, w.Namespace, w.Name}] = true
		}
	}
}

// coversOthers reports whether a changed object is a disruption budget that may cover other pods
// than before. Most changes are of how many disruptions it allows.
func coversOthers(o *cluster.ObjectChange) bool {
	now, isNow := o.New.(*policyv1.PodDisruptionBudget)
	old, wasOld := o.Old.(*policyv1.PodDisruptionBudget)
	if !isNow && !wasOld {
		return false
	}
	return !isNow || !wasOld || !equality.Semantic.DeepEqual(now.Spec.Selector, old.Spec.Selector) ||
		!equality.Semantic.DeepEqual(now.Status.DisruptedPods, old.Status.DisruptedPods)
}
