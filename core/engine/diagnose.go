package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Diagnosis is why a class fits nowhere.
type Diagnosis struct {
	Nodes      int               // nodes looked at
	Everywhere *framework.Reason // set when the class is rejected on all nodes at once
	Counts     []Count           // by message, sorted as kube-scheduler words them
	outside    bool              // something beyond the rules rejected nodes too
	rejecters  pluginSet         // plugins whose group rule rejected some node
	// NoVictims says that taking the place of other pods doesn't help either, and
	// Preemption why, as far as there is something to say.
	NoVictims  bool
	Preemption string
}

// Count is on how many nodes a message applies.
type Count struct {
	Message string
	Nodes   int
	Plugin  string
	Nearest *NearestShortfall // of what the message is about, nil when that is no quantity
}

// NearestShortfall is the smallest deficit on any node.
type NearestShortfall struct {
	framework.Deficit
	Node string
}

// Message returns kube-scheduler's text: `0/N nodes are available: …`.
func (d *Diagnosis) Message() string {
	if d.Nodes == 0 {
		return "no nodes available to schedule pods"
	}
	text := fmt.Sprintf("0/%d nodes are available:", d.Nodes)
	switch {
	case d.Everywhere != nil:
		text += fmt.Sprintf(" %s.", strings.Join(d.Everywhere.Messages, ", "))
	case len(d.Counts) > 0:
		parts := make([]string, len(d.Counts))
		for i, c := range d.Counts {
			parts[i] = fmt.Sprintf("%d %s", c.Nodes, c.Message)
		}
		text += fmt.Sprintf(" %s.", strings.Join(parts, ", "))
	}
	if d.Preemption != "" {
		text += " preemption: " + d.Preemption
	}
	return text
}

// Diagnose says why the class fits on none of the nodes, in O(nodes). Each
// node counts for the first rule that rejects it, in the profile's order.
func (e *Engine) Diagnose(c *Class) *Diagnosis {
	e.refresh(c)
	d := &Diagnosis{Nodes: e.state.Live(), Everywhere: c.Rejected}
	if c.Rejected != nil {
		return d
	}
	counts := map[string]*Count{}
	j := e.newJudge(c)
	e.state.Nodes(func(n *cluster.Node) {
		held, reason := j.verdict(n)
		if reason == nil {
			return
		}
		d.rejecters = d.rejecters.union(held)
		for i, m := range reason.Messages {
			k := counts[m]
			if k == nil {
				k = &Count{Message: m, Plugin: reason.Plugin}
				counts[m] = k
			}
			k.Nodes++
			if len(reason.Deficits) == len(reason.Messages) {
				k.nearer(reason.Deficits[i], n)
			}
		}
	})
	d.set(counts)
	return d
}

// nearer takes note of a deficit if it is the smallest so far.
func (k *Count) nearer(x framework.Deficit, n *cluster.Node) {
	if k.Nearest == nil || x.Needed-x.Available < k.Nearest.Needed-k.Nearest.Available {
		k.Nearest = &NearestShortfall{x, n.Name}
	}
}

func (d *Diagnosis) set(counts map[string]*Count) {
	d.Counts = d.Counts[:0]
	for _, k := range counts {
		d.Counts = append(d.Counts, *k)
	}
	slices.SortFunc(d.Counts, func(a, b Count) int { // as upstream sorts the texts "N message"
		return strings.Compare(fmt.Sprint(a.Nodes, " ", a.Message), fmt.Sprint(b.Nodes, " ", b.Message))
	})
}

// Reword takes over the words of a fresh diagnosis. Which rules have held nodes
// back stays known: what has happened since may have made one let go, and the
// class is yet to be asked about it.
func (d *Diagnosis) Reword(fresh *Diagnosis) {
	held := d.rejecters
	*d = *fresh
	d.rejecters = d.rejecters.union(held)
}

// AddOutside adds what something beyond the rules said of nodes, one message a
// node. From then on any change may help.
func (d *Diagnosis) AddOutside(messages []string) {
	counts := map[string]*Count{}
	for i := range d.Counts {
		k := d.Counts[i]
		counts[k.Message] = &k
	}
	for _, m := range messages {
		if counts[m] == nil {
			counts[m] = &Count{Message: m, Plugin: "Extender"}
		}
		counts[m].Nodes++
	}
	d.set(counts)
	d.outside = true
}

// Outside tells whether something beyond the rules has rejected nodes.
func (d *Diagnosis) Outside() bool { return d.outside }

// judge asks rules about single nodes, each as a group of its own.
type judge struct {
	c        *Class
	state    *cluster.State
	plugins  []judged
	narrow   []framework.LocalRule // those that leave nodes out first
	groups   framework.Groups
	topology []*cluster.Topology
	answer   [1]framework.Code
}

type judged struct {
	plugin int
	local  framework.LocalRule
	group  *groupRule
}

func (e *Engine) newJudge(c *Class) *judge {
	j := &judge{c: c, state: e.state, topology: c.shared.topos}
	locals, groups := 0, 0
	for i := range e.profile.Plugins {
		x := judged{plugin: i}
		if locals < len(c.locals) && c.locals[locals].plugin == i {
			x.local = c.locals[locals].LocalRule
			if _, ok := x.local.(framework.Narrower); ok {
				j.narrow = append(j.narrow, x.local)
			}
			locals++
		}
		if groups < len(c.rules) && c.rules[groups].plugin == i {
			x.group = &c.rules[groups]
			groups++
		}
		if x.local != nil || x.group != nil {
			j.plugins = append(j.plugins, x)
		}
	}
	return j
}

// verdict is that of the rules on a node, which has to take the class both with
// and without the pods of equal or higher priority that are nominated to it
// (RunFilterPluginsWithNominatedPods in kube-scheduler): they may help or hinder.
func (j *judge) verdict(n *cluster.Node) (held pluginSet, why *framework.Reason) {
	if j.contested(n) {
		mark := j.state.Mark()
		j.crowd(n)
		held, why = j.reject(n)
		j.state.Rollback(mark)
		if why != nil {
			return held, why
		}
	}
	return j.reject(n)
}

// code is the verdict's code.
func (j *judge) code(n *cluster.Node) framework.Code {
	if code := j.besides(n); code != framework.OK {
		return code
	}
	code, _, _ := j.first(n)
	return code
}

// besides is the code with those pods in their place, OK when there are none.
func (j *judge) besides(n *cluster.Node) framework.Code {
	if !j.contested(n) {
		return framework.OK
	}
	mark := j.state.Mark()
	j.crowd(n)
	code, _, _ := j.first(n)
	j.state.Rollback(mark)
	return code
}

// contested tells whether pods are nominated to the node that the class has to
// leave their place.
func (j *judge) contested(n *cluster.Node) bool { return slices.ContainsFunc(n.Nominated, j.yields) }

// crowd puts them there.
func (j *judge) crowd(n *cluster.Node) {
	for _, p := range slices.Clone(n.Nominated) {
		if j.yields(p) {
			j.state.PlaceAt(p, n.Index)
		}
	}
}

// yields tells whether the class has to leave a nominated pod its place.
func (j *judge) yields(p *cluster.Pod) bool { return p.Priority >= j.c.pod.Priority }

// reject returns why the first plugin that rejects the node does so, or nil.
// held is the plugin when it is the group rule that says no: the answer
// then may change without the node being touched.
func (j *judge) reject(n *cluster.Node) (held pluginSet, why *framework.Reason) {
	_, local, group := j.first(n)
	switch {
	case local != nil:
		return pluginSet{}, local.Explain(n)
	case group != nil:
		return pluginSet{}.with(group.plugin), group.Explain(&j.groups, 0)
	}
	return pluginSet{}, nil
}

// first returns the first rule that rejects the node, with its code. It doesn't
// allocate.
func (j *judge) first(n *cluster.Node) (framework.Code, framework.LocalRule, *groupRule) {
	for _, l := range j.narrow {
		if l.(framework.Narrower).Narrows(n.NodeInfo) {
			return framework.Final, l, nil
		}
	}
	for i := range j.plugins {
		p := &j.plugins[i]
		if p.local != nil {
			if code, _ := p.local.EvalNode(n); code != framework.OK {
				return code, p.local, nil
			}
		}
		if p.group != nil {
			if code := j.ofGroup(p.group, n); code != framework.OK {
				return code, nil, p.group
			}
		}
	}
	return framework.OK, nil, nil
}

func (j *judge) ofGroup(r *groupRule, n *cluster.Node) framework.Code {
	g := &j.groups
	g.Nodes = append(g.Nodes[:0], 1)
	g.Static = append(g.Static[:0], r.StaticKey(n.NodeInfo))
	g.Host = append(g.Host[:0], r.HostKey(n.Index))
	g.Domains = g.Domains[:0]
	for _, at := range r.topos {
		g.Domains = append(g.Domains, []cluster.Domain{j.topology[at].Of(n.Index)})
	}
	r.Filter(g, j.answer[:])
	return j.answer[0]
}

// Help is what a change does for a class that waits.
type Help uint8

// The kinds of help. Preempts says that the pod would fit if others went, which
// was not so before.
const (
	NoHelp Help = iota
	Preempts
	Fits
)

// MayHelp tells whether the changes let the class in, of which d says why it
// fitted nowhere. It looks only where they could: at the touched nodes, and at
// all of them when a group rule that rejected some says that one of the changes
// may turn others around. While it says no, d is kept up to date with which
// rules hold nodes back.
func (e *Engine) MayHelp(c *Class, d *Diagnosis, changes []cluster.Change) Help {
	if d.Everywhere != nil {
		if d.Everywhere.OfPod {
			return NoHelp
		}
		return Fits
	}
	if d.outside {
		if len(changes) > 0 {
			return Fits
		}
		return NoHelp
	}
	e.refresh(c)
	if c.Rejected != nil {
		return NoHelp
	}
	out := NoHelp
	preempts := d.NoVictims && e.preempts(c)
	if len(c.rules) > 0 && e.hintedByAny(c, d.rejecters, changes) {
		if _, ok := e.Best(c); ok {
			return Fits
		}
		// Where one rule has let go another may hold: from here on all count.
		for k := range c.rules {
			d.rejecters = d.rejecters.with(c.rules[k].plugin)
		}
		if preempts {
			if _, ok := e.Preempt(c); ok {
				out = Preempts
			}
		}
		return out
	}
	col := c.shared
	col.sync()
	var j *judge
	for i := range changes {
		n := changes[i].Node
		if n == cluster.NoNode || int(n) >= len(col.cells) || !col.cells[n].ok && !preempts || e.state.Node(n) == nil {
			continue
		}
		if j == nil {
			j = e.newJudge(c)
		}
		if col.cells[n].ok {
			held, why := j.verdict(e.state.Node(n))
			if why == nil {
				return Fits
			}
			// A group rule that stood behind another so far now holds this
			// node back alone: from here on its hints count.
			d.rejecters = d.rejecters.union(held)
		}
		if preempts && out == NoHelp {
			if victims, _ := e.dryRun(j, e.state.Node(n), false); victims != nil {
				out = Preempts
			}
		}
	}
	// A rule that stands behind others now may be what forbids preemption.
	if preempts && out == NoHelp && c.LooksBeyondNode() && e.hintedByAny(c, groupPlugins(c), changes) {
		if _, ok := e.Preempt(c); ok {
			out = Preempts
		}
	}
	return out
}

// groupPlugins are those with a group rule for the class.
func groupPlugins(c *Class) (s pluginSet) {
	for k := range c.rules {
		s = s.with(c.rules[k].plugin)
	}
	return s
}

func (e *Engine) hintedByAny(c *Class, of pluginSet, changes []cluster.Change) bool {
	for i := range changes {
		if e.hinted(c, of, &changes[i]) {
			return true
		}
	}
	return false
}

// hinted asks the group rules of some plugins.
func (e *Engine) hinted(c *Class, of pluginSet, change *cluster.Change) bool {
	for k := range c.rules {
		r := &c.rules[k]
		if r.lenient || !of.has(r.plugin) {
			continue
		}
		if h, ok := r.GroupRule.(framework.Hinter); !ok || h.Hint(change) {
			return true
		}
	}
	return false
}

// Verdict is the engine's answer for one node.
type Verdict struct {
	Node  cluster.NodeIndex
	OK    bool
	Score int64 // total, when OK
}

// Verdicts returns the cached answers for every node: what Best chooses from.
func (e *Engine) Verdicts(c *Class) []Verdict {
	e.refresh(c)
	var out []Verdict
	e.state.Nodes(func(n *cluster.Node) { out = append(out, Verdict{Node: n.Index}) })
	if c.Rejected != nil {
		return out
	}
	col := e.column(c)
	v := &e.view
	v.gather(e, c, col)
	if !v.filter(e, c) {
		return out
	}
	v.score(c)
	alone := map[cluster.NodeIndex]int{}
	for i, n := range v.alone {
		alone[n] = v.groups + i
	}
	for i := range out {
		n := out[i].Node
		if !col.cells[n].ok {
			continue
		}
		at, single := alone[n]
		if !single {
			at = int(col.cells[n].group)
		}
		if v.nodes[at] != 0 {
			out[i].OK = true
			out[i].Score = col.keyOf(n).score() + v.add[at]
		}
	}
	return out
}

// Explain returns why one node is rejected for the class, nil when it isn't.
func (e *Engine) Explain(c *Class, i cluster.NodeIndex) *framework.Reason {
	e.refresh(c)
	if c.Rejected != nil {
		return c.Rejected
	}
	_, reason := e.newJudge(c).verdict(e.state.Node(i))
	return reason
}

// Relaxed returns on how many nodes a plugin alone rejects the class, by plugin:
// so many would take it if that rule were lifted. It is O(nodes × rules).
func (e *Engine) Relaxed(c *Class) map[string]int {
	e.refresh(c)
	out := map[string]int{}
	if c.Rejected != nil {
		return out
	}
	j := e.newJudge(c)
	e.state.Nodes(func(n *cluster.Node) {
		only, more := -1, false
		for i := range j.plugins {
			p := &j.plugins[i]
			rejects := p.group != nil && j.ofGroup(p.group, n) != framework.OK
			if p.local != nil && !rejects {
				code, _ := p.local.EvalNode(n)
				rejects = code != framework.OK
			}
			if rejects {
				only, more = p.plugin, only >= 0
			}
			if more {
				return
			}
		}
		if only >= 0 {
			out[e.profile.Plugins[only].Name()]++
		}
	})
	return out
}
