package oracle

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// This file lets the PostFilter plugins answer for a pod that fits on no node: which claim
// DynamicResources would deallocate; on which nodes DefaultPreemption would have to delete
// which pods, and which of these nodes it would choose.

// Victims are the pods that preemption would delete on a node, the most important
// first, by name.
type Victims struct {
	Pods       []string
	Violations int // of disruption budgets
}

// nominator is kube-scheduler's record of nominated pods, by node. Only set changes it:
// the framework's own calls, which come with real scheduling, are left out.
type nominator map[string][]fwk.PodInfo

func (nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo              { return n[node] }

// set replaces all nominations. An error names a pod whose terms can't be parsed.
func (n nominator) set(pods []*v1.Pod) error {
	clear(n)
	for _, p := range pods {
		info, err := framework.NewPodInfo(p)
		if err != nil {
			return fmt.Errorf("reading nominated pod %s: %w", p.Name, err)
		}
		n[p.Status.NominatedNodeName] = append(n[p.Status.NominatedNodeName], info)
	}
	return nil
}

// postFilter runs the PostFilter plugins in their order, as RunPostFilterPlugins does: one
// that fails or makes room is the last. It fills in what they would do, or the part of the
// pod's message that says why they don't help.
func (e *evaluation) postFilter(ctx context.Context, out *Outcome) (err error) {
	var reasons []string
	for _, p := range e.framework.ListPlugins().PostFilter.Enabled {
		status := fwk.NewStatus(fwk.Unschedulable)
		switch p.Name {
		case names.DynamicResources:
			e.devices.freed = ""
			_, status = e.allocating.PostFilter(ctx, e.state, e.pod, e.fit.Diagnosis.NodeToStatus)
			out.Deallocated = e.devices.freed
		case names.DefaultPreemption:
			if status, err = e.preempt(ctx, e.state, e.pod, e.fit, out); err != nil {
				return err
			}
		}
		if !status.IsRejected() {
			e.fit.Diagnosis.PostFilterMsg = status.Message()
			return nil
		}
		reasons = append(reasons, status.Reasons()...)
	}
	e.fit.Diagnosis.PostFilterMsg = strings.Join(reasons, ", ")
	return nil
}

// preempt lets DefaultPreemption simulate every node on which deleting pods could help,
// where findCandidates of its evaluator stops when it has enough. It fills in the
// outcome's victims and choice, or its status says why preemption doesn't help.
func (o *Oracle) preempt(ctx context.Context, state fwk.CycleState, pod *v1.Pod, fit *framework.FitError, out *Outcome) (*fwk.Status, error) {
	if ok, why := o.preemption.PodEligibleToPreemptOthers(ctx, pod, fit.Diagnosis.NodeToStatus.Get(pod.Status.NominatedNodeName)); !ok {
		return fwk.NewStatus(fwk.Unschedulable, "preemption: "+why), nil
	}
	potential, err := fit.Diagnosis.NodeToStatus.NodesForStatusCode(o.lister.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	statuses := framework.NewDefaultNodeToStatus()
	if len(potential) > 0 {
		var budgets []*policyv1.PodDisruptionBudget
		if budgets, err = o.preemption.Evaluator.PdbLister.List(labels.Everything()); err != nil {
			return nil, err
		}
		// As many candidates are wanted as there are nodes and one more, so that the
		// simulation never stops early.
		candidates, refused, err := o.preemption.Evaluator.DryRunPreemption(ctx, state, pod, potential, budgets, 0, int32(len(potential)+1))
		if err != nil && len(candidates) == 0 {
			return fwk.AsStatus(err), nil
		}
		for _, c := range candidates {
			v := Victims{Violations: int(c.Victims().NumPDBViolations)}
			for _, p := range c.Victims().Pods {
				v.Pods = append(v.Pods, p.Name)
			}
			out.Victims[c.Name()] = v
		}
		if best := o.preemption.Evaluator.SelectCandidate(ctx, candidates); best != nil {
			out.Chosen = best.Name()
			return nil, nil
		}
		statuses = refused
	}
	statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Preemption is not helpful for scheduling"))
	text := (&framework.FitError{Pod: pod, NumAllNodes: fit.NumAllNodes, Diagnosis: framework.Diagnosis{NodeToStatus: statuses}}).Error()
	return fwk.NewStatus(fwk.Unschedulable, "preemption: "+text), nil
}
