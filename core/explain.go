package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// Explanation is why a pod is where it is, or nowhere.
type Explanation struct {
	Pod      string `json:"pod"`     // namespace/name
	Outcome  string `json:"outcome"` // step.Placed, Fits, step.Waits or step.Gated
	Node     string `json:"node,omitempty"`
	Message  string `json:"message,omitempty"` // as the condition has it
	Attempts int    `json:"attempts,omitempty"`
	// Queue is where a pod without a node is: active, backoff, unschedulable,
	// gated, held (its victims are being told to leave) or in flight.
	Queue   string     `json:"queue,omitempty"`
	Queued  *time.Time `json:"queued,omitempty"`  // first
	Tried   *time.Time `json:"tried,omitempty"`   // last
	Backoff *time.Time `json:"backoff,omitempty"` // ends then
	// Permissions are those that it waits for on its node.
	Permissions []PermissionWait `json:"permissions,omitempty"`
	Nominated   string           `json:"nominated,omitempty"` // the node that it is to come to
	// Victims are the pods that have to leave that node, and haven't.
	Victims []string `json:"victims,omitempty"`
	// Preemption is why taking the place of others doesn't help.
	Preemption string `json:"preemption,omitempty"`
	// Relax says what would help: so many nodes would take the pod if one plugin
	// alone let them.
	Relax []Relaxed `json:"relax,omitempty"`
	// Reasons say which rules reject which nodes, the most nodes first.
	Reasons []step.Why `json:"reasons,omitempty"`
	// WaitsFor are the changes that have the pod tried again, by the plugins that
	// reject nodes for it.
	WaitsFor []WaitsFor `json:"waitsFor,omitempty"`
	// Candidates are the nodes that would do, the best first.
	Candidates []Candidate `json:"candidates,omitempty"`
}

// PermissionWait is a plugin that a pod with a node waits for.
type PermissionWait struct {
	Plugin string    `json:"plugin"`
	Until  time.Time `json:"until"` // then the node is taken away from it
}

// WaitsFor is a change that a plugin waits for, in words.
type WaitsFor struct {
	Plugin string `json:"plugin"`
	Change string `json:"change"`
}

// Relaxed is what lifting one rule would bring.
type Relaxed struct {
	Plugin string `json:"plugin"`
	Nodes  int    `json:"nodes"`
}

// Candidate is a node that would do, with what makes up its score.
type Candidate struct {
	Node   string               `json:"node"`
	Score  int64                `json:"score"`
	Scores []engine.PluginScore `json:"scores"`
}

// most candidates that are told.
const mostCandidates = 10

// Explain says where a pod stands, in O(pods + nodes × rules); ok is false when
// the core doesn't know it. For a placed pod it is as if the pod were to be
// placed now.
func (c *Core) Explain(namespace, name string) (x Explanation, ok bool) {
	x.Pod = namespace + "/" + name
	for _, p := range c.pods { // names are unique
		if p.parsed.Object.Namespace != namespace || p.parsed.Object.Name != name {
			continue
		}
		if item := c.queue.Get(p.parsed.UID); item != nil {
			x.Attempts, x.Queue = item.Attempts(), item.Stage().String()
			queued := item.Queued()
			x.Queued = &queued
			if tried := item.Tried(); !tried.IsZero() {
				x.Tried = &tried
			}
			if until := item.BackoffEnd(); until.After(c.turn.Now) {
				x.Backoff = &until
			}
		}
		x.Node, x.Nominated = p.node(), c.state.NominatedTo(p.parsed.UID)
		for _, w := range p.binding.Permissions() {
			x.Permissions = append(x.Permissions, PermissionWait(w))
		}
		for _, uid := range c.preemption.VictimsOf(p.parsed.UID) {
			if v := c.state.PodOn(uid); v != nil {
				x.Victims = append(x.Victims, v.Name())
			}
		}
		if gate := c.sched.Gate(p.parsed); gate != nil {
			x.Outcome, x.Message = "Gated", p.reports.Condition()
			return x, true
		}
		c.explain(p.parsed, &x)
		return x, true
	}
	for _, p := range c.others {
		if p.Namespace == namespace && p.Name == name {
			var ours []string
			for _, profile := range c.cfg.Profiles {
				ours = append(ours, profile.SchedulerName)
			}
			x.Outcome = "Waits"
			x.Message = fmt.Sprintf("it asks for the scheduler %q, and those here are %s", p.Spec.SchedulerName, strings.Join(ours, ", "))
			return x, true
		}
	}
	var placed *cluster.Pod
	c.state.Pods(func(p *cluster.Pod) {
		if p.Object.Namespace == namespace && p.Object.Name == name {
			placed = p
		}
	})
	if placed == nil {
		return x, false
	}
	x.Outcome, x.Node = "Placed", placed.Object.Spec.NodeName
	if c.sched.Responsible(placed) && c.state.NodeByName(x.Node) != nil {
		c.explain(placed, &x)
	}
	return x, true
}

// whys lists the reasons of a diagnosis.
func whys(d *engine.Diagnosis) (out []step.Why) {
	for _, n := range d.Counts() {
		w := step.Why{Plugin: n.Plugin, Message: n.Message, Nodes: n.Nodes}
		if s := n.Nearest; s != nil {
			w.Short = &step.Shortfall{Resource: s.Resource, Needed: s.Needed, Available: s.Available, Node: s.Node}
		}
		out = append(out, w)
	}
	if e := d.Everywhere(); e != nil {
		for _, m := range e.Messages {
			out = append(out, step.Why{Plugin: e.Plugin, Message: m, Nodes: d.Nodes()})
		}
	}
	return out
}

// waitsFor says what wakes a pod of which d says why it waits.
func waitsFor(e *engine.Engine, d *engine.Diagnosis) (out []WaitsFor) {
	if e := d.Everywhere(); e != nil && e.OfPod {
		return []WaitsFor{{e.Plugin, "the pod itself changes"}}
	}
	for _, w := range whys(d) {
		if slices.ContainsFunc(out, func(x WaitsFor) bool { return x.Plugin == w.Plugin }) {
			continue
		}
		change := "anything in the cluster changes"
		for _, p := range e.Profile().Plugins {
			if k, ok := p.Plugin.(framework.Waker); ok && p.Name() == w.Plugin {
				change = k.WakesWhen()
			}
		}
		out = append(out, WaitsFor{w.Plugin, change})
	}
	return out
}

func (c *Core) explain(p *cluster.Pod, x *Explanation) {
	mark := c.state.Mark()
	defer c.state.Rollback(mark)
	c.state.Remove(p.UID)
	c.state.Nominate(p, "")
	e := c.sched.Engine(p)
	class := e.Class(p)
	d := e.Diagnose(class)
	x.Reasons = whys(d)
	slices.SortStableFunc(x.Reasons, func(a, b step.Why) int { return b.Nodes - a.Nodes })
	for n, scores := range e.Scores(class) {
		k := Candidate{Node: c.state.Node(n).Name, Scores: scores}
		for _, s := range scores {
			k.Score += s.Score
		}
		x.Candidates = append(x.Candidates, k)
	}
	slices.SortFunc(x.Candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Node, b.Node))
	})
	x.Candidates = x.Candidates[:min(len(x.Candidates), mostCandidates)]
	switch {
	case x.Node != "":
		x.Outcome = "Placed"
	case len(x.Candidates) > 0:
		x.Outcome = "Fits"
	default:
		x.Outcome, x.Message = "Waits", d.Message()
		if _, ok := e.Preempt(class); !ok {
			x.Preemption = e.PreemptionMessage(class)
		}
		x.WaitsFor = waitsFor(e, d)
		if x.Preemption == "" && e.Profile().Preempter != nil {
			x.WaitsFor = append(x.WaitsFor, WaitsFor{e.Profile().Preempter.Name(), "the pods that have to leave for it are gone"})
		}
		for plugin, nodes := range e.Relaxed(class) {
			x.Relax = append(x.Relax, Relaxed{plugin, nodes})
		}
		slices.SortFunc(x.Relax, func(a, b Relaxed) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Plugin, b.Plugin)) })
	}
}
