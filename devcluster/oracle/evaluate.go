package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// This file has the plugins evaluate one pod, in the order of kube-scheduler's
// schedulePod: PreEnqueue, PreFilter, Filter with nominated pods, PreScore, Score, and
// Reserve for devices. What must hold: each node of the cluster has an answer, also one
// that PreFilter has ruled out, unless an error ends the attempt before.

// Outcome is what kube-scheduler's plugins answer about a pod.
type Outcome struct {
	// Held is the plugin that keeps the pod out of the queue, with its reasons; OK means none does.
	// The other answers are about the pod as if it had been let in.
	Held  Answer
	Nodes map[string]Answer // by the node's name
	// Error ends the attempt to place the pod: that of PreFilter, with which no node has an answer, or
	// that of the first node with one, by name; then nodes that would be feasible have no answer.
	// kube-scheduler filters nodes at the same time, so its error may be that of another node.
	Error string
	// Message is the text of the pod's condition when no node is feasible and
	// preemption can't make one feasible.
	Message string
	// Victims are the pods that preemption would delete, by node; Chosen is the node
	// that it would choose, "" for none.
	Victims map[string]Victims
	Chosen  string
	// Deallocated is the claim (namespace/name) that DynamicResources would deallocate or delete when no
	// node is feasible; of several it takes any.
	Deallocated string
}

// Answer is what kube-scheduler's plugins say about a pod and a node.
type Answer struct {
	OK       bool             // the node is feasible
	Plugin   string           // that rejects, when not OK
	Messages []string         // its reasons, when not OK
	Error    string           // of the plugin about this node, when not OK and no reason
	Total    int64            // when OK: the weighted sum of normalised scores
	Scores   map[string]int64 // when OK: by plugin, weighted and normalised
	Raw      map[string]int64 // when OK: by plugin, as Score returned them
	// Allocations are what the pod's claims that aren't allocated would get, when OK.
	Allocations []Allocation
}

// evaluation is one pod on its way through the extension points.
type evaluation struct {
	*Oracle
	pod     *v1.Pod
	state   fwk.CycleState
	fit     *framework.FitError // what the condition of the pod would say
	answers map[string]Answer   // by the node's name
}

// Evaluate returns the answer about a pod for each node, and when no node is feasible
// what preemption would do. An error is one of asking: those of plugins are answers.
func (o *Oracle) Evaluate(ctx context.Context, pod *v1.Pod) (*Outcome, error) {
	nodes, err := o.lister.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b fwk.NodeInfo) int { return strings.Compare(a.Node().Name, b.Node().Name) })
	e := &evaluation{
		Oracle: o, pod: pod, state: framework.NewCycleState(), answers: map[string]Answer{},
		fit: &framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}},
	}
	out := &Outcome{Held: e.preEnqueue(ctx), Nodes: e.answers}
	feasible, failed := e.filter(ctx, nodes)
	if out.Error = failed; failed != "" {
		return out, nil
	}
	if len(feasible) > 0 {
		return out, e.score(ctx, feasible)
	}
	out.Victims = map[string]Victims{}
	if err := e.postFilter(ctx, out); err != nil {
		return nil, err
	}
	out.Message = e.fit.Error()
	return out, nil
}

// preEnqueue returns the answer of the first plugin that keeps the pod out of the queue.
func (e *evaluation) preEnqueue(ctx context.Context) Answer {
	for _, p := range e.framework.PreEnqueuePlugins() {
		if status := p.PreEnqueue(ctx, e.pod); !status.IsSuccess() {
			return Answer{Plugin: p.Name(), Messages: status.Reasons()}
		}
	}
	return Answer{OK: true}
}

// filter returns the feasible nodes, and answers for the others; or the error that ends
// the attempt.
func (e *evaluation) filter(ctx context.Context, nodes []fwk.NodeInfo) (feasible []fwk.NodeInfo, failed string) {
	diagnosis := &e.fit.Diagnosis
	result, status, narrowing := e.framework.RunPreFilterPlugins(ctx, e.state, e.pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, status.AsError().Error()
		}
		for _, n := range nodes {
			a := rejection(status)
			if a.Plugin == "" { // several name nodes, and none is left
				a.Plugin = firstOf(narrowing)
			}
			e.answers[n.Node().Name] = a
		}
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		return nil, ""
	}
	// The status of nodes that a PreFilterResult leaves out, worded as in schedule_one.go.
	absent := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing)))
	diagnosis.NodeToStatus.SetAbsentNodesStatus(absent)
	for _, n := range nodes {
		name := n.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			e.answers[name] = Answer{Plugin: firstOf(narrowing), Messages: absent.Reasons()}
			continue
		}
		status := e.framework.RunFilterPluginsWithNominatedPods(ctx, e.state, e.pod, n)
		switch {
		case status.IsSuccess():
			feasible = append(feasible, n)
		case status.IsRejected():
			e.answers[name] = rejection(status)
			diagnosis.NodeToStatus.Set(name, status)
		default:
			problem := status.AsError().Error()
			e.answers[name] = Answer{Plugin: status.Plugin(), Error: problem}
			failed = cmp.Or(failed, problem)
		}
	}
	return feasible, failed
}

// firstOf returns the first of the plugins that together leave out nodes, by name: kube-scheduler
// counts the pod as rejected by all of them.
func firstOf(narrowing sets.Set[string]) string {
	if len(narrowing) == 0 {
		return ""
	}
	return sets.List(narrowing)[0]
}

// rejection returns the answer of a plugin that rejects.
func rejection(status *fwk.Status) Answer {
	return Answer{Plugin: status.Plugin(), Messages: status.Reasons()}
}

// score answers for the feasible nodes.
func (e *evaluation) score(ctx context.Context, feasible []fwk.NodeInfo) error {
	if status := e.framework.RunPreScorePlugins(ctx, e.state, e.pod, feasible); !status.IsSuccess() {
		return fmt.Errorf("prescore of pod %s: %w", e.pod.Name, status.AsError())
	}
	scores, status := e.framework.RunScorePlugins(ctx, e.state, e.pod, feasible)
	if !status.IsSuccess() {
		return fmt.Errorf("score of pod %s: %w", e.pod.Name, status.AsError())
	}
	byName := map[string]fwk.NodeInfo{}
	for _, n := range feasible {
		byName[n.Node().Name] = n
	}
	for _, s := range scores {
		a := Answer{OK: true, Total: s.TotalScore, Scores: map[string]int64{}, Raw: map[string]int64{}}
		for _, x := range s.Scores {
			a.Scores[x.Name] = x.Score
			raw, status := e.scorers[x.Name].Score(ctx, e.state, e.pod, byName[s.Name])
			if !status.IsSuccess() {
				return fmt.Errorf("raw score of pod %s: %w", e.pod.Name, status.AsError())
			}
			a.Raw[x.Name] = raw
		}
		e.answers[s.Name] = a
	}
	// Reserve changes what Score has read.
	for _, n := range feasible {
		a, err := e.answers[n.Node().Name], error(nil)
		if a.Allocations, err = e.allocate(n.Node().Name); err != nil {
			return err
		}
		e.answers[n.Node().Name] = a
	}
	return nil
}
