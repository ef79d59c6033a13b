package engine

import (
	"encoding/binary"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Which pods are one class.
//
// The key of a class is what the plugins sign of a pod, with its priority and the headrooms
// that admit it. Pods of equal keys get equal answers from every rule, in every state in
// which they are signed alike. What a pod is signed by may change (terms of placed pods, namespaces,
// headrooms, what its claims lead to): the core then asks for the pod's class again.

// ClassID numbers the classes of one engine in the order of their creation.
type ClassID uint32

// Class is a set of pods that no rule can tell apart, with the rules that were
// prepared for them.
type Class struct {
	ID       ClassID
	Rejected *framework.Reason // non-nil when a rule rejects the class everywhere

	pod       *cluster.Pod // one of them, which the rules are asked with
	takes     bool         // a pod of it may take something of the cluster's objects
	key       string       // see Engine.Class
	local     string       // of the key: what the plugins signed as local. The rank of ties is mixed from it
	localEnds string       // of the key: where in local each plugin's part ends

	prepared   []prepared    // by plugin of the profile
	localRules []localRule   // of those prepared, in the order of the profile
	groupRules []groupRule   // of those prepared, in the order of the profile
	inOrder    []pluginRules // all of these, by plugin
	// firstReader is the first plugin of which a rule that may reject nodes reads pods.
	firstReader int
	hostFacts   []*cluster.Fact      // of all group rules
	excluding   []*cluster.Fact      // those of them by which a rule rejects a node, whatever else holds there
	telling     []*cluster.Fact      // the others, which tell nodes apart
	admitting   []cluster.HeadroomID // the headrooms that admit its pods, sorted
	termsMet    int                  // how many terms of placed pods had been met when the rules were made
	// termsForgotten is State.TermsForgotten from when the rules were made.
	termsForgotten uint64

	narrowed   *narrowing          // the nodes that its local rules leave; nil for all
	topologies []*cluster.Topology // of all group rules, each once. The class holds them
	seed       uint64              // of ranks

	byName bool    // judged on the nodes that its rules name, without a column (narrow.go)
	shared *column // that of all classes with the same local rules and kinds of groups; nil when byName
	// private is the class's own column, nil for most (private.go).
	private      *column
	lastSync     cluster.Seq // when the class chose between its columns last
	privateGains int         // what a private column would have saved since, in costs of private.go
	dry          *dryRuns    // nil when none are kept
}

// Pod returns a pod of the class.
func (c *Class) Pod() *cluster.Pod { return c.pod }

// rank returns what the rank of a node is for the class (column.rank).
func (c *Class) rank(n *cluster.Node) uint64 { return rankOf(n, c.seed) }

// LeavesRoomFor reports whether pods of the class have to leave a nominated pod its place:
// its priority is as high as theirs, and it doesn't keep room for them.
func (c *Class) LeavesRoomFor(nominated *cluster.Pod) bool {
	return nominated.Priority >= c.pod.Priority && !(nominated.StandsIn() && slices.Contains(c.admitting, nominated.StandIn))
}

// LooksBeyondNode reports whether some rule may reject a node for what is elsewhere.
func (c *Class) LooksBeyondNode() bool {
	return slices.ContainsFunc(c.groupRules, func(r groupRule) bool { return !r.neverFilters })
}

// LooksBeyondNode tells the same of the rules as they are now: of placed pods' terms that have
// come since a class was asked about, its rules don't know.
func (e *Engine) LooksBeyondNode(c *Class) bool {
	e.refresh(c)
	return c.LooksBeyondNode()
}

// Class returns the class of a pod, as the pod is signed now. It is made if there is
// none, which asks every plugin for its rules.
func (e *Engine) Class(p *cluster.Pod) *Class {
	e.local.Reset()
	e.group.Reset()
	e.localEnds.Reset()
	e.groupEnds.Reset()
	for i := range e.profile.Plugins {
		e.profile.Plugins[i].Sign(p, e.state, &e.local, &e.group)
		e.localEnds.Int(int64(len(e.local.Bytes())))
		e.groupEnds.Int(int64(len(e.group.Bytes())))
	}
	e.keyBuf = append(e.keyBuf[:0], e.local.Bytes()...)
	e.keyBuf = append(e.keyBuf, e.group.Bytes()...)
	if x := e.profile.Preempter; x != nil {
		e.group.Reset()
		x.SignPreemption(p, &e.group)
		e.groupEnds.Int(int64(len(e.group.Bytes())))
		e.keyBuf = append(e.keyBuf, e.group.Bytes()...)
	}
	// Which nominated pods it has to leave room for, and which it may preempt.
	e.keyBuf = binary.BigEndian.AppendUint32(e.keyBuf, uint32(p.Priority))
	// Which nominated pods keep room for it.
	e.admitting = e.state.Admitting(e.admitting[:0], p)
	for _, id := range e.admitting {
		e.keyBuf = binary.BigEndian.AppendUint32(e.keyBuf, uint32(len(id)))
		e.keyBuf = append(e.keyBuf, id...)
	}
	if e.options.Unclassed {
		e.keyBuf = append(e.keyBuf, p.UID...)
	}
	// Where what each plugin signed ends goes into the key too, or else the pieces of
	// one plugin could pass for those of the next. It comes last, with its own length,
	// so that a key can be taken apart in one way only.
	ends := len(e.keyBuf)
	e.keyBuf = append(e.keyBuf, e.localEnds.Bytes()...)
	e.keyBuf = append(e.keyBuf, e.groupEnds.Bytes()...)
	e.keyBuf = binary.BigEndian.AppendUint32(e.keyBuf, uint32(len(e.keyBuf)-ends))
	if c, ok := e.classes[string(e.keyBuf)]; ok {
		if c.takes {
			c.pod = p // that of before may be gone with its claims
		}
		return c
	}
	key := string(e.keyBuf)
	c := &Class{ID: e.nextID, pod: p, key: key, local: key[:len(e.local.Bytes())], localEnds: key[ends : ends+len(e.localEnds.Bytes())],
		admitting: slices.Clone(e.admitting), takes: e.state.TakesObjects(p)}
	e.nextID++
	e.classes[key] = c
	e.keyBytes += len(key)
	e.prepare(c)
	return c
}

// Current returns the class of a pod that was of class c: another where placing
// a pod since may have changed what the pod's claims lead to.
func (e *Engine) Current(c *Class, p *cluster.Pod) *Class {
	if !e.state.TakesObjects(p) {
		return c
	}
	return e.Class(p)
}
