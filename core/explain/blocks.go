package explain

// This file says which pods keep a node that stays because of one: all of them, since a plan
// ends at the first, and what would change it for each. It asks the rules that plans ask, of
// the node as it is now.

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
)

// PodBlock is a pod that keeps its node.
type PodBlock struct {
	Pod string `json:"pod"` // namespace/name
	// Rule is the first rule that keeps the pod; others may keep it once this one no longer does.
	Rule string `json:"rule"` // of core/autoscaler/drainability, or DisruptionBudget
	Why  string `json:"why"`  // in words that follow the pod's name
	// Change says what would let it go.
	// It is a command where one is enough, with the pod's own namespace and name.
	Change string `json:"change"`
}

// disruptionBudget is the rule of a block that a budget makes.
const disruptionBudget = "DisruptionBudget"

// blocks returns the pods that keep a node, by name.
func (v *View) blocks(n *cluster.Node) (out []PodBlock) {
	rules := v.drainRules()
	for _, p := range n.Pods {
		judged := rules.Judge(p)
		if judged.Outcome == drainability.Evict {
			if b := v.refusingBudget(p); b != nil {
				out = append(out, PodBlock{p.Name(), disruptionBudget, fmt.Sprintf("is covered by disruption budget %s, which allows no disruptions now", b.Name), unblock(disruptionBudget, p)})
			}
			continue
		}
		if judged.Outcome == drainability.Block || judged.Outcome == drainability.WaitFor {
			change := v.unblockMembers(judged.Rule, p)
			if change == "" {
				change = unblock(judged.Rule, p)
			}
			out = append(out, PodBlock{p.Name(), judged.Rule, judged.Why, change})
		}
	}
	slices.SortFunc(out, func(a, b PodBlock) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// refusingBudget returns a disruption budget that doesn't allow a pod to be evicted now; nil
// when none refuses it.
func (v *View) refusingBudget(p *cluster.Pod) *cluster.Budget {
	for _, b := range v.State.Budgets(p.Object.Namespace) {
		if b.Covers(p) && b.Status.DisruptionsAllowed <= 0 {
			return b
		}
	}
	return nil
}

// annotate returns the command that sets an annotation of a pod.
func annotate(p *cluster.Pod, annotation string) string {
	return fmt.Sprintf("kubectl -n %s annotate pod %s --overwrite %s", p.Object.Namespace, p.Object.Name, annotation)
}

// unblockMembers says what would let a member of a pod group go that waits for others' successors; "" for
// other pods.
func (v *View) unblockMembers(rule string, p *cluster.Pod) string {
	key, whole := v.State.SurgesWhole(p)
	g := v.State.PodGroup(key)
	if rule != "PodGroup" || !whole || g.Spec.ParentCompositePodGroupName != nil {
		return ""
	}
	first, why := v.State.WhyNoSuccessors(key)
	switch {
	case why == "":
		return ""
	case first == nil:
		return "run Berth without --surge; or, if it may go without waiting for the others, run: " + annotate(p, cluster.SafeToEvictAnnotation+"=true")
	}
	return fmt.Sprintf("make %s the only pod of a Deployment with the annotation %s: \"true\"; or, if it may go without waiting for the others, run: %s",
		first.Name(), cluster.SurgeAnnotation, annotate(first, cluster.SafeToEvictAnnotation+"=true"))
}

// unblock says what would let a pod go that a rule keeps.
func unblock(rule string, p *cluster.Pod) string {
	annotate := func(annotation string) string { return annotate(p, annotation) }
	allow := annotate(cluster.SafeToEvictAnnotation + "=true")
	switch rule {
	case "DoNotDisrupt":
		return annotate(cluster.DoNotDisruptAnnotation + "-")
	case "NotSafeToEvict":
		return annotate(cluster.SafeToEvictAnnotation + "-")
	case "OnCompletion":
		return "wait for it to finish, or run: " + allow
	case "LocalStorage":
		return fmt.Sprintf("%s; or set --skip-nodes-with-local-storage=false", annotate(cluster.LocalVolumesAnnotation+"="+strings.Join(localVolumes(p), ",")))
	case "System":
		return fmt.Sprintf("create a disruption budget that covers it; or %s; or set --skip-nodes-with-system-pods=false", allow)
	case "Replicated":
		if metav1.GetControllerOfNoCopy(p.Object) != nil {
			return allow + "; or set --skip-nodes-with-custom-controller-pods=false"
		}
		return "wait for it to finish; or, if it may be lost, run: " + allow
	case "ReplicaCount":
		return "restore its controller or raise its replicas, or lower --min-replica-count"
	case disruptionBudget:
		return "get more pods of the budget ready, or relax the budget"
	}
	return allow
}

// localVolumes returns the names of the volumes that LocalVolumesAnnotation has to list for a
// pod to go: those on the node's disk. One that is in memory does no harm there.
func localVolumes(p *cluster.Pod) (names []string) {
	for i := range p.Object.Spec.Volumes {
		if v := &p.Object.Spec.Volumes[i]; v.EmptyDir != nil || v.HostPath != nil {
			names = append(names, v.Name)
		}
	}
	return names
}
