package candidates

// This file keeps the soft taint of each node as it is wanted: in bulks of one size in the
// cluster state, and of another in the API. What must hold between two Steps, once a plan was
// committed: a node in the state that isn't on its way out and that no bulk of the state has
// yet to come to (differ) has the soft taint exactly if it is a candidate; and of each node
// where the API differs from that, it is known that it does, so that the next bulk comes to
// it. doc.go has the table.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// softTaintRetry is how long after a failure to write a soft taint it is tried again.
const softTaintRetry = 5 * time.Second

// cleaningBulk is how many soft taints are taken off at a time where none are written
// (MaxBulk is 0).
const cleaningBulk = 10

// steerBulk is how many soft taints the state gets or loses at a time, and steerPause the time
// between two such bulks. Each of these nodes has to be evaluated anew for each shape of pods:
// all of a large cluster's at once, after its first plan, would hold up for milliseconds the
// next pod of every shape.
const (
	steerBulk  = 100
	steerPause = 200 * time.Millisecond
)

// mark is a soft taint without its key; the zero value is none.
type mark struct {
	effect v1.TaintEffect
	value  string
}

func markSince(since time.Time) mark {
	return mark{v1.TaintEffectPreferNoSchedule, strconv.FormatInt(since.Unix(), 10)}
}

func markOf(n *cluster.NodeInfo) mark {
	for i := range n.Object.Spec.Taints {
		if t := &n.Object.Spec.Taints[i]; t.Key == autoscaler.DeletionCandidateTaint {
			return mark{t.Effect, t.Value}
		}
	}
	return mark{}
}

func (k mark) taint() v1.Taint {
	return v1.Taint{Key: autoscaler.DeletionCandidateTaint, Effect: k.effect, Value: k.value}
}

// String returns the taint's value and effect.
func (k mark) String() string {
	if k == (mark{}) {
		return "none"
	}
	return k.value + ":" + string(k.effect)
}

// on returns a node with this soft taint and no other.
func (k mark) on(n *cluster.NodeInfo) *cluster.NodeInfo {
	switch {
	case markOf(n) == k:
		return n
	case k == mark{}:
		return n.WithoutTaint(autoscaler.DeletionCandidateTaint)
	}
	return n.WithTaint(k.taint())
}

// softTaints is what is known of the soft taints in the API.
type softTaints struct {
	// nodes are those that are to have a soft taint, or have one in the API: as far as it
	// is known, and as long as they were of a node group when they got it.
	nodes map[string]*softTaint
	// writing is what is being written, by node; each is owed a TaintDone, also when the
	// node is gone meanwhile.
	writing map[string]write
	bulkDue bool      // a plan was committed, and its bulk hasn't begun
	bulk    []string  // nodes that the bulk has not come to
	begun   time.Time // when the bulk began
	retries []retry   // of writes that failed, in order of their time
	// differ are nodes whose soft taint in the state may not be as it is wanted, each once,
	// in the order in which that came about; queued has the same ones.
	differ     []string
	queued     map[string]bool
	steerAfter time.Time // the state gets no bulk before this time; zero before its first whole one
}

// softTaint is the soft taint of one node.
type softTaint struct {
	api    mark // in the API: as it was shown, or written, last
	failed bool // it is in retries
}

// write is a soft taint that is being written. Its outcome says nothing of another node of
// the same name, for which there is another softTaint.
type write struct {
	mark
	taint *softTaint
}

type retry struct {
	node string
	at   time.Time
}

func newSoftTaints() softTaints {
	return softTaints{nodes: map[string]*softTaint{}, writing: map[string]write{}, queued: map[string]bool{}}
}

// changed records that another soft taint is wanted of a node than before.
func (s *softTaints) changed(node string, wanted bool) {
	if wanted && s.nodes[node] == nil {
		s.nodes[node] = &softTaint{}
	}
	if !s.queued[node] {
		s.queued[node] = true
		s.differ = append(s.differ, node)
	}
}

// changed is softTaints.changed, where soft taints are this machine's.
func (m *Machine) changed(node string, wanted bool) {
	if !m.cfg.NoSoftTaints {
		m.soft.changed(node, wanted)
	}
}

// want returns the soft taint that a node is to have.
func (m *Machine) want(node string) mark {
	if c := m.byName[node]; c != nil && m.cfg.MaxBulk > 0 {
		return c.mark
	}
	return mark{}
}

// atOnce is how many soft taints are written at a time.
func (m *Machine) atOnce() int { return cmp.Or(m.cfg.MaxBulk, cleaningBulk) }

// NodeSet takes what the API shows of a node, and how the state would have it by what was
// decided about its removal, nil for not at all. It returns how the state is to have it: what
// is wanted of its soft taint holds until the API shows it. Before the first plan the state
// has it as the API does: nothing is known of what is wanted.
func (m *Machine) NodeSet(api, n *cluster.NodeInfo) *cluster.NodeInfo {
	m.shown(api)
	if n == nil || m.plans == 0 || m.soft.nodes[n.Name] == nil || n.HasTaint(autoscaler.ToBeDeletedTaint) {
		return n
	}
	n = m.want(n.Name).on(n)
	m.tidy(n.Name)
	return n
}

// shown records the soft taint that the API shows. That of a node of no group is
// somebody else's.
func (m *Machine) shown(n *cluster.NodeInfo) {
	if m.cfg.NoSoftTaints {
		return
	}
	api := markOf(n)
	switch s := m.soft.nodes[n.Name]; {
	case s != nil:
		s.api = api
	case api != mark{} && n.Group != "":
		m.soft.nodes[n.Name] = &softTaint{api: api}
	}
}

// tidy forgets a node that has no soft taint and is to have none.
func (m *Machine) tidy(node string) {
	_, writing := m.soft.writing[node]
	if s := m.soft.nodes[node]; s != nil && s.api == m.want(node) && s.api == (mark{}) && !writing && !s.failed {
		delete(m.soft.nodes, node)
	}
}

// steer has the state have the soft taints that are wanted, where they may differ, a bulk of
// them at a time. A node on its way out stays as it is.
func (m *Machine) steer(t *lifecycle.Turn) {
	s := &m.soft
	if t.Now.Before(s.steerAfter) {
		return
	}
	changed, looked := 0, 0
	for ; looked < len(s.differ) && changed < m.steerBulk; looked++ {
		name := s.differ[looked]
		delete(s.queued, name)
		n := t.State.NodeByName(name)
		if n == nil || s.nodes[name] == nil && n.Group == "" || n.HasTaint(autoscaler.ToBeDeletedTaint) {
			continue
		}
		if info := m.want(name).on(n.NodeInfo); info != n.NodeInfo {
			t.State.SetNode(info)
			changed++
		}
		m.tidy(name)
	}
	s.differ = slices.Delete(s.differ, 0, looked)
	if changed == m.steerBulk {
		s.steerAfter = t.Now.Add(steerPause)
	}
}

// differs reports whether the API is to be told of a node's soft taint.
func (m *Machine) differs(t *lifecycle.Turn, node string) bool {
	s := m.soft.nodes[node]
	if s == nil || s.api == m.want(node) {
		return false
	}
	n := t.State.NodeByName(node)
	return n != nil && !n.HasTaint(autoscaler.ToBeDeletedTaint)
}

// beginBulk begins to tell the API what differs, after a plan and after the removals that it
// began: these taints are written first, and need no other. Soft taints that are to go come
// before those that are to be put on, as in Cluster Autoscaler.
func (m *Machine) beginBulk(t *lifecycle.Turn) {
	s := &m.soft
	s.bulkDue, s.bulk, s.begun = false, s.bulk[:0], t.Now
	var on []string
	for name, x := range s.nodes {
		switch {
		case x.failed || !m.differs(t, name):
		case m.want(name) == mark{}:
			s.bulk = append(s.bulk, name)
		default:
			on = append(on, name)
		}
	}
	slices.Sort(s.bulk)
	slices.Sort(on)
	s.bulk = append(s.bulk, on...)
	m.goOn(t)
}

// goOn writes what the bulk has left, as far as it may. The first of a bulk begin with the
// plan, whatever BulkTime is.
func (m *Machine) goOn(t *lifecycle.Turn) {
	s := &m.soft
	for len(s.bulk) > 0 && len(s.writing) < m.atOnce() && t.Now.Sub(s.begun) <= m.cfg.BulkTime {
		name := s.bulk[0]
		s.bulk = s.bulk[1:]
		m.write(t, name)
	}
}

// write hands out the write of a node's soft taint, unless that is under way or not needed any
// more.
func (m *Machine) write(t *lifecycle.Turn, node string) {
	if _, open := m.soft.writing[node]; open || !m.differs(t, node) {
		return
	}
	want := m.want(node)
	s := m.soft.nodes[node]
	m.soft.writing[node] = write{want, s}
	if want == (mark{}) {
		t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: node, Taint: s.api.taint(), Remove: true})
		return
	}
	t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: node, Taint: want.taint()})
}

// TaintDone takes the outcome of a write of a soft taint.
func (m *Machine) TaintDone(t *lifecycle.Turn, in step.TaintDone) {
	wrote, ok := m.soft.writing[in.Node]
	if !ok {
		return
	}
	delete(m.soft.writing, in.Node)
	switch s := m.soft.nodes[in.Node]; {
	case s == nil || s != wrote.taint: // the node is gone
		m.tidy(in.Node) // another of its name has waited for this to end
	case in.Err != nil:
		s.failed = true
		m.soft.retries = append(m.soft.retries, retry{in.Node, t.Now.Add(softTaintRetry)})
	default:
		s.api = wrote.mark
		m.tidy(in.Node)
	}
	m.goOn(t)
}

// Advance has the state follow what became of removals, and writes again what failed.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.steer(t)
	if m.soft.bulkDue {
		m.beginBulk(t)
	}
	for m.mayRetry() && !t.Now.Before(m.soft.retries[0].at) {
		node := m.soft.retries[0].node
		m.soft.retries = m.soft.retries[1:]
		if s := m.soft.nodes[node]; s != nil {
			s.failed = false
			m.write(t, node)
			m.tidy(node)
		}
	}
}

// mayRetry reports whether a write that failed may be tried again when its time has come.
func (m *Machine) mayRetry() bool {
	return len(m.soft.retries) > 0 && len(m.soft.writing) < m.atOnce()
}

// NextWake returns when the state gets its next bulk, or a write is tried again; candidates
// change with plans.
func (m *Machine) NextWake() (next time.Time) {
	if m.mayRetry() {
		next = m.soft.retries[0].at
	}
	if len(m.soft.differ) > 0 {
		next = lifecycle.Earliest(next, m.soft.steerAfter)
	}
	return next
}

// Unsettled names the nodes whose soft taint in the API isn't known to be as it is wanted. A
// candidate is none of them: it may stay one for ever, for its group's minimum.
func (m *Machine) Unsettled() (out []string) {
	if m.plans == 0 {
		return nil // nothing is wanted yet
	}
	for _, name := range slices.Sorted(maps.Keys(m.soft.nodes)) {
		if s, want := m.soft.nodes[name], m.want(name); s.api != want {
			out = append(out, fmt.Sprintf("the soft taint of node %s is to be %s, and is %s in the API", name, want, s.api))
		}
	}
	for _, name := range m.soft.differ {
		out = append(out, fmt.Sprintf("the soft taint of node %s in the state waits for its bulk", name))
	}
	for _, name := range slices.Sorted(maps.Keys(m.soft.writing)) {
		out = append(out, fmt.Sprintf("the soft taint of node %s is being written: %s", name, m.soft.writing[name].mark))
	}
	return out
}
