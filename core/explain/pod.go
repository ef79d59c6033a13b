package explain

// This file explains to people where one pod stands: in the queue, on the way to its
// node, and how each rule judges it now. An explanation decides nothing: what it tries
// in the state is rolled back.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/step"
)

// Explanation is why a pod is where it is, or nowhere.
type Explanation struct {
	Pod string `json:"pod"` // namespace/name
	// PodGroup is the group with whose members the pod is placed, as namespace/name; "" for a pod that
	// is placed alone, or has a node.
	PodGroup string `json:"podGroup,omitempty"`
	Outcome  string `json:"outcome"` // step.Placed, Fits, step.Waits or step.Gated
	// Node is where the pod is, or is being bound to; "" while it waits or is gated.
	Node string `json:"node,omitempty"`
	// Message is "" for a pod that fits on a node, or has one, unless that can't resize it in place.
	Message string `json:"message,omitempty"` // as the condition has it
	// Attempts counts the decisions that found no node, and errors.
	Attempts int `json:"attempts,omitempty"`
	// Queue is the stage of a pod without a node: active, backoff, unschedulable,
	// gated, held (its victims are being asked to leave) or in flight.
	Queue   string     `json:"queue,omitempty"`
	Queued  *time.Time `json:"queued,omitempty"`  // first
	Tried   *time.Time `json:"tried,omitempty"`   // last
	Backoff *time.Time `json:"backoff,omitempty"` // ends then
	// Permissions are those that a pod with a node waits for before it is bound.
	Permissions []PermissionWait `json:"permissions,omitempty"`
	Nominated   string           `json:"nominated,omitempty"` // the node that it is to come to
	// Victims are the pods that have to leave the nominated node and are still there.
	Victims []string `json:"victims,omitempty"`
	// Preemption is why preempting other pods doesn't help, in kube-scheduler's words.
	Preemption string `json:"preemption,omitempty"`
	// Relax counts the nodes that one plugin alone rejects, the most nodes first: as many would
	// take the pod without that plugin. Nodes that two plugins reject are in no entry.
	Relax []Relaxed `json:"relax,omitempty"`
	// Reasons say which rules reject which nodes, the most nodes first.
	Reasons []step.Why `json:"reasons,omitempty"`
	// Details say what nodes that reject the pod lack beyond what Reasons say, the most nodes first;
	// maxDetails at most.
	Details []Detail `json:"details,omitempty"`
	// Devices are those that the pod's resource claims have.
	Devices []DeviceOf `json:"devices,omitempty"`
	// WaitsFor are the changes after which the pod is tried again, for each plugin that
	// rejects nodes.
	WaitsFor []WaitsFor `json:"waitsFor,omitempty"`
	// Reserved are the objects whose headroom keeps nodes from the pod that would take it.
	Reserved []Reserved `json:"kept,omitempty"`
	// Candidates are the nodes that all rules allow, the best first; maxCandidates at most.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Scaling is what node groups do for a pod that waits; nil for any other, and when Berth
	// only schedules.
	Scaling *Scaling `json:"scaling,omitempty"`
}

// PermissionWait is a plugin that a pod with a node waits for.
type PermissionWait struct {
	// Plugin implements Permit. All that are listed must allow the pod; one that refuses is enough
	// to take its node away.
	Plugin string    `json:"plugin"`
	Until  time.Time `json:"until"` // when the wait ends and the pod loses its node
}

// WaitsFor is a change that a plugin waits for, in words.
type WaitsFor struct {
	// Plugin rejects at least one node. Change is the plugin's own text (framework.Waker), for
	// people only.
	Plugin string `json:"plugin"`
	Change string `json:"change"`
}

// Relaxed is on how many nodes a plugin alone rejects a pod.
type Relaxed struct {
	Plugin string `json:"plugin"`
	Nodes  int    `json:"nodes"`
}

// Reserved is on how many nodes room is reserved for others that a pod would fit into.
type Reserved struct {
	For   string `json:"for"` // the object that asks for it, as kind namespace/name, or the pods that replace evicted ones
	Nodes int    `json:"nodes"`
}

// Candidate is a node that all rules allow, with what makes up its score.
type Candidate struct {
	Node string `json:"node"`
	// Score is the sum of Scores, which are weighted and normalized as kube-scheduler does it:
	// scores of different pods can't be compared.
	Score  int64                `json:"score"`
	Scores []engine.PluginScore `json:"scores"`
}

// maxCandidates is how many candidates an explanation lists.
const maxCandidates = 10

// Explain says where a pod stands, in O(pods + nodes × rules); ok is false when
// the core doesn't know the pod. A placed pod is explained as if it were to be
// placed now.
func (v *View) Explain(namespace, name string) (x Explanation, ok bool) {
	return v.explain(namespace, name, v.find(namespace, name))
}

// explain is Explain, of the pod that has been found by the name.
func (v *View) explain(namespace, name string, f sought) (x Explanation, ok bool) {
	x.Pod = namespace + "/" + name
	switch {
	case f.ours != nil:
		v.explainQueued(f.ours, &x)
	case f.foreign != nil:
		v.explainForeign(f.foreign, &x)
	case f.placed != nil:
		v.explainPlaced(f.placed, &x)
	default:
		return x, false
	}
	return x, true
}

// explainQueued explains a pod of our profiles that the API doesn't show on a node.
func (v *View) explainQueued(p *record.Description, x *Explanation) {
	uid := p.Parsed.UID
	if item := v.Queue.Get(uid); item != nil {
		x.Attempts, x.Queue = item.Attempts(), item.Stage().String()
		queued := item.Queued()
		x.Queued = &queued
		if tried := item.Tried(); !tried.IsZero() {
			x.Tried = &tried
		}
		if until := item.BackoffEnd(); until.After(v.Now()) {
			x.Backoff = &until
		}
	}
	x.Node, x.Nominated = p.Node, v.State.NominatedTo(uid)
	for _, w := range p.Permissions {
		x.Permissions = append(x.Permissions, PermissionWait(w))
	}
	for _, victim := range v.Victims.VictimsOf(uid) {
		if v := v.State.PodOn(victim); v != nil {
			x.Victims = append(x.Victims, v.Name())
		}
	}
	if gate := v.Scheduler.Gate(p.Parsed); gate != nil && p.Node == "" {
		x.Outcome, x.Message = string(step.Gated), cmp.Or(p.Condition, gate.Messages[0])
		return
	}
	if item := v.Queue.Get(uid); item != nil && item.WaitsWithGroup() != nil {
		v.explainMember(item, p.Condition, x)
		return
	}
	if v.explainNodes(p.Parsed, x); x.Outcome == string(step.Waits) {
		x.Scaling = v.explainScaling(p)
	}
}

// explainMember explains a member of a pod group that has no node: whether one would take it alone
// says nothing, since the members are placed together.
func (v *View) explainMember(item *queue.Item, condition string, x *Explanation) {
	g := item.WaitsWithGroup()
	x.PodGroup, x.Queue, x.Attempts = g.Key().String(), g.Item().Stage().String(), g.Item().Attempts()
	x.Outcome, x.Message = string(step.Waits), condition
	if why := g.Held(); why != "" {
		x.Outcome, x.Message = string(step.Gated), why
	}
}

// explainForeign explains a pod without a node that asks for a scheduler other than ours.
func (v *View) explainForeign(obj *v1.Pod, x *Explanation) {
	var ours []string
	for _, profile := range v.Profiles {
		ours = append(ours, profile.SchedulerName)
	}
	x.Outcome = string(step.Waits)
	x.Message = fmt.Sprintf("its schedulerName is %q; the profiles here are %s", obj.Spec.SchedulerName, strings.Join(ours, ", "))
}

// explainPlaced explains a pod that the API shows on a node, whether or not that node is
// known.
func (v *View) explainPlaced(pod *cluster.Pod, x *Explanation) {
	x.Outcome, x.Node = string(step.Placed), v.State.NodeNameOf(pod)
	if v.Scheduler.Responsible(pod) && v.State.NodeByName(x.Node) != nil {
		// With the name that it was bound by, no other node would be one for it.
		obj := pod.Object.DeepCopy()
		obj.Spec.NodeName = ""
		v.explainNodes(v.State.Schema.ParsePod(obj), x)
	}
	x.Message = v.resizeOf(pod)
}

// explainNodes says what the rules say about each node for the pod, wherever the pod is now:
// it is taken off its node, and its nomination back, while they are asked.
func (v *View) explainNodes(pod *cluster.Pod, x *Explanation) {
	x.Devices = v.devicesOf(pod)
	mark := v.State.Mark()
	defer v.State.Rollback(mark)
	// Otherwise the pod would compete with itself, for resources and devices and in its own (anti-)affinity.
	e := v.Scheduler.Engine(pod)
	e.TakeOff(pod)
	v.State.Nominate(pod, "")
	class := e.Class(pod)
	d := e.Diagnose(class)
	x.Reasons = step.WhyRejected(d)
	slices.SortStableFunc(x.Reasons, func(a, b step.Why) int { return cmp.Compare(b.Nodes, a.Nodes) })
	x.Candidates = v.candidates(e, class)
	x.Details = v.details(e, class)
	switch {
	case x.Node != "":
		x.Outcome = string(step.Placed)
	case len(x.Candidates) > 0:
		x.Outcome = "Fits"
	default:
		x.Outcome, x.Message = string(step.Waits), cmp.Or(e.Failure(class), d.Message())
		v.explainWait(pod, e, class, d, x)
		x.Reserved = v.reservedFrom(e, class)
	}
}

// candidates returns the best nodes that all rules allow, by falling score, then by name.
func (v *View) candidates(e *engine.Engine, class *engine.Class) []Candidate {
	var out []Candidate
	for n, scores := range e.Scores(class) {
		k := Candidate{Node: v.State.Node(n).Name, Scores: scores}
		for _, s := range scores {
			k.Score += s.Score
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Node, b.Node))
	})
	return out[:min(len(out), maxCandidates)]
}

// explainWait says what would help a class that fits on no node, for the reasons in d.
func (v *View) explainWait(pod *cluster.Pod, e *engine.Engine, class *engine.Class, d *engine.Diagnosis, x *Explanation) {
	if _, ok := e.Preempt(class); !ok {
		x.Preemption = e.PreemptionMessage(class)
	}
	if x.WaitsFor = v.largerThanAll(pod, x.Reasons); x.WaitsFor != nil {
		return // neither room nor the lifting of another rule helps
	}
	x.WaitsFor = waitsFor(e, d)
	if preempter := e.Profile().Preempter; x.Preemption == "" && preempter != nil {
		x.WaitsFor = append(x.WaitsFor, WaitsFor{preempter.Name(), "its preemption victims are gone"})
	}
	for plugin, nodes := range e.Relaxed(class) {
		x.Relax = append(x.Relax, Relaxed{plugin, nodes})
	}
	slices.SortFunc(x.Relax, func(a, b Relaxed) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Plugin, b.Plugin))
	})
}

// waitsFor returns the changes after which a class is tried again that fits on no node for
// the reasons in d: one for each plugin that rejects nodes.
func waitsFor(e *engine.Engine, d *engine.Diagnosis) (out []WaitsFor) {
	if all := d.Everywhere(); all != nil && all.OfPod {
		return []WaitsFor{{all.Plugin, "the pod itself changes"}}
	}
	for _, why := range step.WhyRejected(d) {
		if slices.ContainsFunc(out, func(x WaitsFor) bool { return x.Plugin == why.Plugin }) {
			continue
		}
		change := "anything in the cluster changes"
		for _, p := range e.Profile().Plugins {
			if waker, ok := p.Plugin.(framework.Waker); ok && p.Name() == why.Plugin {
				change = waker.WakesWhen()
			}
		}
		out = append(out, WaitsFor{why.Plugin, change})
	}
	return out
}

// reservedFrom returns, by whom room is reserved for, on how many nodes a class that fits on none
// would fit if it weren't. It leaves the state as it is.
func (v *View) reservedFrom(e *engine.Engine, class *engine.Class) (out []Reserved) {
	standIns := map[string][]*cluster.Pod{}
	for _, n := range v.State.Nominations() {
		if n.Pod.StandsIn() && class.LeavesRoomFor(n.Pod) {
			standIns[v.reservedFor(n.Pod)] = append(standIns[v.reservedFor(n.Pod)], n.Pod)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(standIns)) {
		mark := v.State.Mark()
		for _, p := range standIns[name] {
			v.State.Nominate(p, "")
		}
		if nodes := len(e.Feasible(class)); nodes > 0 {
			out = append(out, Reserved{For: name, Nodes: nodes})
		}
		v.State.Rollback(mark)
	}
	return out
}

// reservedFor names for people whom a stand-in keeps room for.
func (v *View) reservedFor(standIn *cluster.Pod) string {
	if v.Autoscaler != nil && v.Autoscaler.Homes.Knows(standIn) {
		return v.Autoscaler.Homes.Named(standIn)
	}
	return cmp.Or(v.PodGroups.Named(standIn), v.Headroom.Named(standIn.StandIn))
}
