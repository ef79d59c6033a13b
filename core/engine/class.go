package engine

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// ClassID numbers the classes of one engine in the order of their creation.
type ClassID uint32

// Class is a set of pods that no rule can tell apart.
type Class struct {
	ID        ClassID
	Rejected  *framework.Reason // non-nil when a rule rejects the class everywhere
	pod       *cluster.Pod      // one of them
	key       string
	localKey  string
	locals    []local
	rules     []groupRule
	hostFacts []*cluster.Fact
	made      []made
	terms     int // terms of placed pods that the rules were made with
	shared    *column
	private   *column
	lastSync  cluster.Seq
	pressure  int // how much the exceptional nodes have cost lately, see column choice
	dry       *dryRuns
}

// Pod returns a pod of the class.
func (c *Class) Pod() *cluster.Pod { return c.pod }

// LooksBeyondNode tells whether some rule rejects a node for what is elsewhere.
func (c *Class) LooksBeyondNode() bool {
	return slices.ContainsFunc(c.rules, func(r groupRule) bool { return !r.lenient })
}

// groupRule is a group rule with its weight and its place in the profile.
type groupRule struct {
	framework.GroupRule
	weight int64
	plugin int
	topos  []int // its topology keys, as indices into the column's
	// lenient rules reject nothing.
	lenient bool
}

// Engine finds the best node for classes of pods under one profile.
type Engine struct {
	state     *cluster.State
	profile   *framework.Profile
	evaluated []pluginPods // by plugin of the profile
	how       Options
	classes   map[string]*Class
	columns   map[string]*column
	nextID    ClassID
	// privates are the columns that serve one class, and dry the classes that
	// keep what dry runs of preemption have found.
	privates map[*column]bool
	dry      map[*Class]bool

	local, group framework.Signature
	keyBuf       []byte
	skip         stamps
	contested    stamps
	questions    uint64
	view         view
}

// Options are the seed, and how answers are found: the rest never changes
// which answer it is, so that tests can compare.
type Options struct {
	Seed uint64 // of tie-breaking among equally good nodes
	// Unclassed makes every pod a class of its own.
	Unclassed bool
	// Rebuilt evaluates all nodes anew for every decision.
	Rebuilt bool
	// Workers is how many goroutines evaluate all nodes of a new column
	// (default 1).
	Workers int
}

// New returns an engine over a state. Engines with equal profiles, seeds and
// inputs choose equally. It returns an error when scores by the profile's weights
// might not fit into a key (MaxWeights), or bonuses of its extenders not into
// their limit (MaxExtenderWeights).
func New(state *cluster.State, profile *framework.Profile, how Options) (*Engine, error) {
	if err := checkLimits(profile); err != nil {
		return nil, err
	}
	e := &Engine{
		state: state, profile: profile, how: how,
		classes: map[string]*Class{}, columns: map[string]*column{},
		privates: map[*column]bool{}, dry: map[*Class]bool{},
		evaluated: make([]pluginPods, len(profile.Plugins)),
	}
	state.AddCache(e)
	return e, nil
}

// State returns the state the engine looks at.
func (e *Engine) State() *cluster.State { return e.state }

// Profile returns the engine's rules.
func (e *Engine) Profile() *framework.Profile { return e.profile }

// RolledBack implements cluster.Cache.
func (e *Engine) RolledBack(to cluster.Seq, undone []cluster.Change) {
	for _, c := range e.columns {
		c.rolledBack(to, undone)
	}
	for c := range e.privates { // in any order
		c.rolledBack(to, undone)
	}
	for c := range e.dry { // in any order
		c.dry.rolledBack(to, undone)
	}
}

// Class returns the class of a pod, as the pod is signed now.
func (e *Engine) Class(p *cluster.Pod) *Class {
	e.local.Reset()
	e.group.Reset()
	for i := range e.profile.Plugins {
		e.profile.Plugins[i].Sign(p, e.state, &e.local, &e.group)
	}
	e.keyBuf = append(e.keyBuf[:0], e.local.Bytes()...)
	split := len(e.keyBuf)
	e.keyBuf = append(e.keyBuf, 0xff)
	e.keyBuf = append(e.keyBuf, e.group.Bytes()...)
	if x := e.profile.Preempter; x != nil {
		e.group.Reset()
		x.SignPreemption(p, &e.group)
		e.keyBuf = append(append(e.keyBuf, 0xff), e.group.Bytes()...)
	}
	// Which nominated pods it has to leave room for, and whose place it may take.
	e.keyBuf = binary.BigEndian.AppendUint32(e.keyBuf, uint32(p.Priority))
	if e.how.Unclassed {
		e.keyBuf = append(append(e.keyBuf, 0xff), p.UID...)
	}
	if c, ok := e.classes[string(e.keyBuf)]; ok {
		return c
	}
	c := &Class{ID: e.nextID, pod: p, key: string(e.keyBuf), localKey: string(e.keyBuf[:split])}
	e.nextID++
	e.classes[c.key] = c
	e.prepare(c)
	return c
}

// Current returns the class of a pod that was of class c: another where placing
// a pod since may have changed what the pod's claims lead to.
func (e *Engine) Current(c *Class, p *cluster.Pod) *Class {
	if len(p.Claims) == 0 {
		return c
	}
	return e.Class(p)
}

// Classes returns the number of classes held.
func (e *Engine) Classes() int { return len(e.classes) }

// Sweep forgets the classes that keep doesn't want, with their facts, and the
// columns that no class uses any more.
func (e *Engine) Sweep(keep func(*Class) bool) {
	used := map[*column]bool{}
	for key, c := range e.classes {
		if keep(c) {
			used[c.shared] = true
			continue
		}
		e.release(c)
		e.forget(c)
		delete(e.classes, key)
	}
	for key, col := range e.columns {
		if !used[col] {
			delete(e.columns, key)
		}
	}
}

// forget drops what was found out for the class alone.
func (e *Engine) forget(c *Class) {
	delete(e.privates, c.private)
	delete(e.dry, c)
	c.private, c.dry = nil, nil
}

func (e *Engine) release(c *Class) {
	for i := range c.rules {
		if r, ok := c.rules[i].GroupRule.(framework.Releaser); ok {
			r.Release(e.state)
		}
	}
}

// made is what a plugin said when it was asked for the class.
type made struct {
	framework.Rules
	reason *framework.Reason
}

// refresh makes rules anew when terms of placed pods have come that they read
// and could not know of.
func (e *Engine) refresh(c *Class) {
	terms := e.state.Terms()
	if c.terms == len(terms) {
		return
	}
	var stale []int
	for i := range e.profile.Plugins {
		reader, ok := e.profile.Plugins[i].Plugin.(framework.TermReader)
		if ok && slices.ContainsFunc(terms[c.terms:], func(t *cluster.Term) bool { return reader.ReadsTerm(c.pod, e.state, t) }) {
			stale = append(stale, i)
		}
	}
	c.terms = len(terms)
	if stale == nil {
		return
	}
	for _, i := range stale {
		if r, ok := c.made[i].Group.(framework.Releaser); ok {
			r.Release(e.state)
		}
		c.made[i].Rules, c.made[i].reason = e.profile.Plugins[i].For(c.pod, e.state)
	}
	e.assemble(c)
}

func (e *Engine) prepare(c *Class) {
	c.terms = len(e.state.Terms())
	c.made = make([]made, len(e.profile.Plugins))
	for i := range e.profile.Plugins {
		c.made[i].Rules, c.made[i].reason = e.profile.Plugins[i].For(c.pod, e.state)
	}
	e.assemble(c)
}

func lenient(r framework.GroupRule) bool {
	l, ok := r.(framework.NeverFilters)
	return ok && l.NeverFilters()
}

// assemble puts the rules together that the plugins have made.
func (e *Engine) assemble(c *Class) {
	c.Rejected, c.locals, c.rules, c.hostFacts = nil, nil, nil, nil
	c.shared = nil
	e.forget(c)
	for i := range e.profile.Plugins {
		weight, rules := e.profile.Plugins[i].Weight, c.made[i].Rules
		if reason := c.made[i].reason; reason != nil && c.Rejected == nil {
			c.Rejected = reason
		}
		if rules.Local != nil {
			c.locals = append(c.locals, local{rules.Local, weight, rules.Local.Reads(), i})
		}
		if rules.Group != nil {
			c.rules = append(c.rules, groupRule{GroupRule: rules.Group, weight: weight, plugin: i, lenient: lenient(rules.Group)})
			c.hostFacts = append(c.hostFacts, rules.Group.HostFacts()...)
		}
	}
	var keys []string
	where := map[string]int{}
	// A column serves classes with the same local rules and the same kinds of
	// structure: which plugins group, and by which keys.
	var id strings.Builder
	id.WriteString(c.localKey)
	for k := range c.rules {
		r := &c.rules[k]
		id.WriteByte(0)
		id.WriteByte(byte(r.plugin))
		for _, key := range r.TopologyKeys() {
			if _, ok := where[key]; !ok {
				where[key] = len(keys)
				keys = append(keys, key)
			}
			r.topos = append(r.topos, where[key])
			id.WriteString(key)
			id.WriteByte(0)
		}
	}
	col, ok := e.columns[id.String()]
	if !ok {
		col = e.newColumn(c, keys)
		e.columns[id.String()] = col
	}
	c.shared = col
}

func (e *Engine) newColumn(c *Class, keys []string) *column {
	h := fnv.New64a()
	h.Write([]byte(c.localKey))
	col := &column{state: e.state, locals: c.locals, rules: c.rules, seed: h.Sum64() ^ e.how.Seed, how: e.how}
	for _, key := range keys {
		col.topos = append(col.topos, e.state.Topology(key))
	}
	return col
}
