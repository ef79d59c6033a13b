package comparison

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// This file is the truth: what the API shows, in a state of its own, with engines that judge
// nodes there. Parsed nodes, pods and objects are shared with the core's state; nobody
// writes to them.

// truth is the state with the engines over it.
type truth struct {
	state *cluster.State
	sched *scheduler.Scheduler
}

func newTruth(schema *cluster.Schema, profiles []*framework.Profile, how engine.Options) (*truth, error) {
	state := cluster.New(schema)
	sched, err := scheduler.New(state, profiles, how)
	return &truth{state, sched}, err
}

// observe takes in what is read as it stands.
func (t *truth) observe(in step.Input) {
	switch in := in.(type) {
	case step.NodeGone:
		t.state.RemoveNode(in.Name)
	case step.WorkloadSet:
		t.state.SetWorkload(in.Workload)
	case step.WorkloadGone:
		t.state.RemoveWorkload(in.Kind, in.Namespace, in.Name)
	case step.ObjectSet:
		if cluster.KindOf(in.Object) != cluster.NoObject {
			t.state.SetObject(in.Object)
		}
	case step.ObjectGone:
		t.state.RemoveObject(in.Kind, in.Namespace, in.Name)
	}
}

// judgement is what the rules say about a node for a pod, and what Berth would choose.
type judgement struct {
	why   *framework.Reason // why the node isn't allowed, nil when it is
	score int64             // of the node, when it is allowed
	// best is Berth's choice, nil when it finds no node; bestScore its score.
	best      *cluster.Node
	bestScore int64
	// earlierFits reports whether the node of an earlier decision takes the pod, and
	// earlierScore what it scores.
	earlierFits  bool
	earlierScore int64
	scores       map[cluster.NodeIndex][]engine.PluginScore // nil unless asked for
}

// unknownNode is why a node isn't allowed that the API hasn't shown.
func unknownNode(name string) *framework.Reason {
	return &framework.Reason{Messages: []string{"node " + name + " isn't known"}}
}

// judge says what the rules say about a node for a pod as it was before it was bound, and what
// Berth would choose, in the truth without the pod. It changes nothing. explained asks, once
// both scores are known, whether the scores of single plugins are wanted: they cost O(nodes).
func (t *truth) judge(pod *cluster.Pod, node, earlier string, explained func(*judgement) bool) judgement {
	mark := t.state.Mark()
	defer t.state.Rollback(mark)
	nominated := t.state.NominatedTo(pod.UID)
	t.takeOff(pod, node)
	t.state.Nominate(pod, "") // what is kept for a pod is no obstacle to it
	e := t.sched.Engine(pod)
	class := e.Class(pod)
	var out judgement
	if n := t.state.NodeByName(node); n == nil {
		out.why = unknownNode(node)
	} else if out.why = e.Explain(class, n.Index); out.why == nil {
		out.score = scoreOf(e, class, n)
	}
	if n := t.state.NodeByName(earlier); n != nil && e.Explain(class, n.Index) == nil {
		out.earlierFits, out.earlierScore = true, scoreOf(e, class, n)
		if t.anchor(pod, n) {
			class = e.Class(pod)
		}
	}
	out.best, out.bestScore = t.choose(e, class, nominated)
	if explained(&out) {
		out.scores = e.Scores(class)
	}
	return out
}

// takeOff takes a pod off the node on which the other scheduler has put it, with the devices that its claims got
// there: they are written before the binding, and with them no other node would do.
func (t *truth) takeOff(pod *cluster.Pod, node string) {
	if t.state.ClaimsDevices(pod) && t.state.NodeByName(node) != nil {
		t.state.Place(pod, node)
		t.sched.Engine(pod).TakeOff(pod)
	}
	t.state.Remove(pod.UID)
}

// anchor keeps the members of a pod's group in the topology domain of a node, where Berth has room for all of
// them, if the group requires one and the API shows no member on a node: it reports whether it does. A single
// pod might go elsewhere, and a member mustn't be measured by that. It is taken back with the judgement.
func (t *truth) anchor(pod *cluster.Pod, n *cluster.Node) bool {
	if pod.Group == nil || cluster.RequiredTopology(t.state.PodGroup(*pod.Group)) == "" || t.state.PlacedMembers(*pod.Group) > 0 {
		return false
	}
	stub := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Group.Namespace, Name: "anchor", UID: "pod-group/anchor"}}
	stub.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &pod.Group.Name}
	t.state.PlaceAt(t.state.Schema.ParsePod(stub), n.Index)
	return true
}

// choose returns Berth's choice for a class, and its score: the node that the pod is nominated
// to, if that takes it, and otherwise the best. The node is nil when there is none.
func (t *truth) choose(e *engine.Engine, class *engine.Class, nominated string) (*cluster.Node, int64) {
	if n := t.state.NodeByName(nominated); n != nil && e.Explain(class, n.Index) == nil {
		return n, scoreOf(e, class, n)
	}
	best, ok := e.Best(class)
	if !ok {
		return nil, 0
	}
	return t.state.Node(best.Node), best.Score
}

// scoreOf returns the score of a node that all rules allow.
func scoreOf(e *engine.Engine, class *engine.Class, n *cluster.Node) int64 {
	return e.AnswersFor(class, []cluster.NodeIndex{n.Index})[0].Score
}
