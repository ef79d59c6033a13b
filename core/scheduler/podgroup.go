package scheduler

// This file decides about pod groups (KEP-4671): where the members of a group that have no node go, or
// why too few of them find one. A decision is one transaction of the state:
//
//  1. the members' nominations are taken back
//  2. the members are tried in the order of scheduling, each on its best node, as kube-scheduler does;
//     where the group requires a topology and no member has a node, in that of its domains with the
//     best score (podgroup_domains.go)
//  3. when fewer than needed find a node, in other orders and on other nodes (podgroup_search.go)
//  4. enough have found one: their places stay in the state, and those of the others are tried alone
//     when something helps. Else everything is taken back: the state is as it was
//  5. then it is looked for who would have to leave for the group (podgroup_preempt.go): its members are
//     nominated where they find places then
//
// What a decision may cost is bounded by counts, not by a clock: it is the same in a replay.

import (
	"cmp"
	"fmt"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/weighing"
)

// Member is a pod of a group that has no node.
type Member struct {
	Pod   *cluster.Pod
	Class *engine.Class // as the pod would be signed now without its nomination; DecideGroup signs it again where need be
}

// GroupRequest are the members of a group for which nodes are to be found together.
type GroupRequest struct {
	// Members are of one profile, at least one, in the order of scheduling.
	Members []Member
	// Placed is how many other members have nodes, and MinCount how many have to have one in all.
	Placed, MinCount int
	// Topology is the innermost label that all members' nodes must have with one value; "" when none is
	// required.
	Topology string
	// Levels are all labels of nodes that the group requires, Topology among them, and those that it
	// prefers, outermost first; nil when there is none but Topology.
	Levels []cluster.TopologyLevel
	// Attempt is how often the group was tried in vain. Of more domains than an attempt can try each tries others.
	Attempt int
}

// Place is the node that a decision has given to a member.
type Place struct {
	Member int // of GroupRequest.Members
	Class  *engine.Class
	Choice engine.Choice
}

// Search says how the places of a group were found.
type Search string

// The searches, in the order in which they are tried.
const (
	InOrder     Search = "in order"     // in the order of scheduling, each member on its best node
	RarestFirst Search = "rarest first" // those first for which the fewest nodes will do
	Exhaustive  Search = "exhaustive"   // by trying other nodes, too
)

// GroupDecision is the outcome of an attempt.
type GroupDecision struct {
	// Places are in the order in which they were taken; none when fewer than needed were found.
	Places []Place
	Search Search // of the places
	// Domain is the value of GroupRequest.Topology on their nodes, where that is the only label that counts;
	// otherwise the values of all labels that do, as a/b/c: those required, and those preferred that could be had.
	Domain string
	// Message says why the group is unschedulable, as its condition has it; "" when it isn't.
	Message string
	// Why says, by member, why it has no place; "" for one that has.
	Why []string
	// Diagnosis is of the member that was the first to find no node; nil when every one did, or none
	// was tried.
	Diagnosis *engine.Diagnosis
	// Victims are the pods that have to leave so that the group finds places, to which its members are
	// nominated; nil for none.
	Victims *framework.Victims
	// Weighed is what else there was, of a group that could preempt.
	Weighed *weighing.Result
	// Rejected are the classes of the members without a place that are rejected on all nodes at once.
	Rejected map[*engine.Class]bool
	// Work is how many answers for nodes the searches have asked for and how many members they have tried, and
	// TakenOff how many pods were taken off their nodes in what-ifs to find Victims.
	Work, TakenOff int
}

// Asks reports whether the members ask for places on nodes that are coming or are bought for the group
// first; then it has no victims.
func (d *GroupDecision) Asks() bool { return d.Weighed != nil && d.Weighed.Chosen == weighing.Asks }

// DecideGroup finds nodes for the members of a group and puts them there, if there are enough.
func (s *Scheduler) DecideGroup(r *GroupRequest) GroupDecision {
	t := s.transactionFor(r)
	t.learnTerms()
	t.places = make([]Place, 0, len(r.Members))
	mark := s.state.Mark()
	t.takeBackNominations()
	found := t.find()
	d := t.decision(found)
	if found {
		t.restoreNominations(d.Why)
		s.state.Release(mark)
	} else {
		s.state.Rollback(mark)
		t.postFilter(&d)
	}
	t.count(&d)
	return d
}

// WhatIfGroup returns what DecideGroup would decide, and leaves the state and all counts as they are.
func (s *Scheduler) WhatIfGroup(r *GroupRequest) GroupDecision {
	t := s.transactionFor(r)
	mark := s.state.Mark()
	defer s.state.Rollback(mark)
	t.takeBackNominations()
	return t.decision(t.find())
}

func (s *Scheduler) transactionFor(r *GroupRequest) *transaction {
	t := &transaction{Scheduler: s, engine: s.Engine(r.Members[0].Pod), request: r, need: max(r.MinCount-r.Placed, 1), answers: maxAnswers}
	t.labels = t.labelsWith(0)
	return t
}

// transaction is one attempt to place a group.
type transaction struct {
	*Scheduler
	engine  *engine.Engine
	request *GroupRequest
	need    int // how many members have to find a node

	labels []string // that the nodes of all members have to have with one value each, outermost first
	places []Place  // so far
	search Search
	domain string
	// work counts answers for nodes that were asked for, and members that were tried. At most, 0 for no bound,
	// nothing more is tried; cut says that this has happened.
	work, most int
	cut        bool
	// answers are how many the next exhaustive search may ask for.
	answers int
	// anyDomain is set while it is only asked whether the group finds places: domains aren't compared then.
	anyDomain bool
	// nodes are those among which the first member's is, of the domain that is tried; nil for all.
	nodes []cluster.NodeIndex
	// inDomain are the members' classes as they are signed while others are on nodes of the domain,
	// by their classes before; nil where no domain is required.
	inDomain map[*engine.Class]*engine.Class
	// vain are the classes of which a pod found no node when so many places were taken: as long as no
	// other is, the next doesn't find one either.
	vain map[*engine.Class]int
	// orderless is set when an attempt has failed in which the first member's class was one of which no
	// order finds more nodes than another.
	orderless bool
	// takenOff is how many pods were taken off their nodes in what-ifs, and looks how many nodes were looked at for
	// victims of a member (maxSteps).
	takenOff, looks int
	// quiet is set when nobody is told why members find no node.
	quiet bool
	// nominated are the nodes to which members were nominated, by member, and were says how; nil when none was.
	nominated []string
	were      []*cluster.Nomination

	// What the first attempt has shown, which speaks for the group if no other succeeds; or else what
	// the one has that did.
	status string         // why the group is unschedulable
	why    map[int]string // why members found no node that were tried, by member
	first  *engine.Diagnosis
	// hadPlace are the members that had places when too few others had one.
	hadPlace map[int]bool
}

// exhausted reports whether the attempt's work is used up.
func (t *transaction) exhausted() bool {
	over := t.most > 0 && t.work >= t.most
	t.cut = t.cut || over
	return over
}

// learnTerms has rules read what the members' terms say of one another before any member is placed: then
// no member is of another class because another was. Members that are told apart by it are signed again.
func (t *transaction) learnTerms() {
	before := t.state.SignatureVersion()
	for i := range t.request.Members {
		if p := t.request.Members[i].Pod; len(p.Terms) > 0 {
			t.state.LearnTerms(p)
		}
	}
	if t.state.SignatureVersion() == before {
		return
	}
	for i := range t.request.Members {
		m := &t.request.Members[i]
		m.Class = t.engine.Class(m.Pod)
	}
}

// takeBackNominations takes back what is kept for the members: it is no obstacle to them.
func (t *transaction) takeBackNominations() {
	if !t.state.AnyNominated() {
		return
	}
	for i := range t.request.Members {
		p := t.request.Members[i].Pod
		was := t.state.NominationOf(p.UID)
		if was == nil {
			continue
		}
		if t.nominated == nil {
			t.nominated, t.were = make([]string, len(t.request.Members)), make([]*cluster.Nomination, len(t.request.Members))
		}
		t.nominated[i], t.were[i] = was.Name, was
		t.state.Nominate(p, "")
	}
}

// restoreNominations nominates the members again that have no place.
func (t *transaction) restoreNominations(why []string) {
	for i, was := range t.were {
		if was != nil && why[i] != "" { // it has no place
			t.state.Renominate(t.request.Members[i].Pod, was)
		}
	}
}

// find takes enough places, and reports whether there are: with all preferred levels, or with as many as
// can be had, of which the innermost is given up first.
func (t *transaction) find() bool {
	for preferred := t.preferred(); preferred > 0; preferred-- {
		if t.findPreferred(preferred) {
			return true
		}
	}
	return t.findRequired()
}

// findRequired takes enough places where the labels allow it, and reports whether there are.
func (t *transaction) findRequired() bool {
	if len(t.labels) > 0 && t.request.Placed == 0 {
		return t.findDomain()
	}
	return t.tryInOrder() || t.searchFurther()
}

// tryInOrder tries the members in the order of scheduling. When too few find a node, nothing is left of
// it in the state.
func (t *transaction) tryInOrder() bool {
	order := make([]int, len(t.request.Members))
	for i := range order {
		order[i] = i
	}
	return t.try(InOrder, order)
}

// try tries members in an order. When too few find a node, nothing is left of it in the state.
func (t *transaction) try(how Search, order []int) bool {
	mark := t.state.Mark()
	failed, left := t.placeAll(order)
	if len(t.places) >= t.need {
		t.succeed(how, failed)
		t.state.Release(mark)
		return true
	}
	if how == InOrder && len(t.places) > 0 {
		t.orderless = t.engine.CountableMembers(t.classOf(&t.request.Members[0]))
	}
	if t.why == nil {
		t.status = fmt.Sprintf("minCount (%d) cannot be satisfied: %d scheduled, %d remaining", t.request.MinCount, t.request.Placed+len(t.places), left)
		t.explain(failed)
		t.hadPlace = map[int]bool{}
		for _, p := range t.places {
			t.hadPlace[p.Member] = true
		}
	}
	t.state.Rollback(mark)
	t.places = t.places[:0]
	return false
}

// placeAll places members in an order until too few are left for the group. It returns those that
// found no node, and how many weren't tried.
func (t *transaction) placeAll(order []int) (failed []int, left int) {
	t.vain = map[*engine.Class]int{}
	for k, i := range order {
		if !t.place(i) {
			failed = append(failed, i)
		}
		if left = len(order) - k - 1; len(t.places)+left < t.need {
			break
		}
	}
	return failed, left
}

// succeed notes that enough places were found, and why some members have none.
func (t *transaction) succeed(how Search, failed []int) {
	t.search, t.why, t.first = how, nil, nil
	t.explain(failed)
}

// place puts a member on the node that it is nominated to, or else on its best, and reports whether
// there is one.
func (t *transaction) place(i int) bool {
	m := &t.request.Members[i]
	c := t.classOf(m)
	if n, tried := t.vain[c]; tried && n == len(t.places) {
		return false
	}
	t.work++
	choice, ok := t.choose(i, c)
	if !ok {
		t.vain[c] = len(t.places)
		return false
	}
	t.places = append(t.places, Place{i, m.Class, choice})
	return true
}

// choose puts a member of a class on a node.
func (t *transaction) choose(i int, c *engine.Class) (engine.Choice, bool) {
	p := t.request.Members[i].Pod
	if t.nominated != nil && t.nominated[i] != "" {
		if n := t.state.NodeByName(t.nominated[i]); n != nil && t.mayBeOn(n.Index) && t.engine.FitsOn(c, n) {
			return engine.Choice{Node: n.Index, Writes: t.engine.PlaceOn(p, n.Index)}, true
		}
	}
	if t.nodes != nil && len(t.places) == 0 {
		t.work += len(t.nodes)
		return t.engine.PlaceOnBestOf(c, p, t.nodes)
	}
	return t.engine.Place(c, p)
}

// mayBeOn reports whether a node is in the domain that is tried. Once a member is there, the others'
// rules say so.
func (t *transaction) mayBeOn(n cluster.NodeIndex) bool {
	if t.nodes == nil || len(t.places) > 0 {
		return true
	}
	for _, x := range t.nodes {
		if x == n {
			return true
		}
	}
	return false
}

// classOf returns the class of a member as it is signed now: once members are in a domain, the others
// have to be there, too.
func (t *transaction) classOf(m *Member) *engine.Class {
	c := m.Class
	if t.inDomain != nil && len(t.places) > 0 {
		if t.inDomain[c] == nil {
			t.inDomain[c] = t.engine.Class(m.Pod)
		}
		c = t.inDomain[c]
	}
	return t.engine.Current(c, m.Pod)
}

// maxExplained is of how many classes of members a decision says why no node takes them, which takes a look at all nodes
// for each; those of others are told that it doesn't.
const maxExplained = 256

var notExplained = fmt.Sprintf("no node takes it: why is told of %d kinds of members of a pod group", maxExplained)

// explain notes why members find no node that were tried, as long as the others' places are taken.
func (t *transaction) explain(failed []int) {
	if t.why = map[int]string{}; t.quiet {
		return
	}
	messages := map[*engine.Class]string{}
	for _, i := range failed {
		c := t.classOf(&t.request.Members[i])
		_, known := messages[c]
		switch {
		case known:
		case len(messages) >= maxExplained:
			t.why[i] = notExplained
			continue
		default:
			d := t.engine.Diagnose(c)
			messages[c] = cmp.Or(t.engine.Failure(c), d.Message())
			if t.first == nil {
				t.first = d
			}
		}
		t.why[i] = messages[c]
	}
}

// decision says what the attempt has come to.
func (t *transaction) decision(found bool) GroupDecision {
	d := GroupDecision{Diagnosis: t.first, Work: t.work, Why: make([]string, len(t.request.Members)), Rejected: map[*engine.Class]bool{}}
	placed := make([]bool, len(t.request.Members))
	if found {
		d.Places, d.Search, d.Domain = t.places, t.search, t.domain
		for _, p := range t.places {
			placed[p.Member] = true
		}
	} else {
		d.Message = t.status
	}
	for i := range d.Why {
		if placed[i] {
			continue
		}
		if d.Why[i] = t.why[i]; d.Why[i] == "" {
			d.Why[i] = t.status
		}
		if c := t.request.Members[i].Class; c.Rejected != nil {
			d.Rejected[c] = true
		}
	}
	return d
}

// count counts the members for the plugins that they concern.
func (t *transaction) count(d *GroupDecision) {
	for i := range t.request.Members {
		t.engine.CountFiltered(t.request.Members[i].Class)
	}
	for _, p := range d.Places {
		t.engine.CountScored(p.Class)
	}
}
