package comparison

import (
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// Pod is a pod's part of the machine. Its zero value is a pod of which nothing was decided.
type Pod struct {
	pod     *cluster.Pod // as the API had it last; nil unless it is in state decided
	earlier step.Earlier // the last decision; its Node is "" in state none
	decided time.Time    // when that was; zero for never
	gaveUp  bool         // in state given up
	// preempts says that others would have left a node for the pod by the last decision.
	preempts bool
	seen     bool   // by PodPends
	changes  uint64 // Machine.changes when the pod was first seen
	writes   []cluster.ObjectChange
}

// Node returns the node where Berth's decision has put the pod, "" when it counts as being on
// none.
func (p *Pod) Node() string {
	if p.pod == nil {
		return ""
	}
	return p.earlier.Node
}

// Preempts reports whether a leader would have had others leave a node for the pod.
func (p *Pod) Preempts() bool { return p.preempts }

// Update records how the API has a pod that was decided on.
func (p *Pod) Update(pod *cluster.Pod) {
	if p.pod != nil {
		p.pod = pod
	}
}

// Machine follows all pods of a shadow. Only the core's goroutine may call it. Of a nil
// Machine, which is that of a core that is no shadow, the methods that take inputs do nothing.
type Machine struct {
	pods   lifecycle.Pods[Pod]
	truth  *truth
	giveUp time.Duration
	// assumed are the decisions that pods count for, in the order in which they were made,
	// with those that have ended since.
	assumed []assumption
	doubts  []doubt
	report  tally
	// changes is how often a pod has left its node or a node has come, changed or gone.
	changes uint64
}

// assumption is a decision for a node.
type assumption struct {
	uid types.UID
	at  time.Time
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that knows of nothing. giveUp is how long a pod counts as being where
// Berth has put it while the other scheduler doesn't place it.
func New(schema *cluster.Schema, profiles []*framework.Profile, how engine.Options, pods lifecycle.Pods[Pod], giveUp time.Duration) (*Machine, error) {
	t, err := newTruth(schema, profiles, how)
	if err != nil {
		return nil, err
	}
	return &Machine{pods: pods, truth: t, giveUp: giveUp, report: newTally()}, nil
}

// Observe takes in what the API shows and the truth has as it stands: all but pods, and nodes
// that are set.
func (m *Machine) Observe(in step.Input) {
	if m == nil {
		return
	}
	if _, gone := in.(step.NodeGone); gone {
		m.changes++
	}
	m.truth.observe(in)
}

// NodeSet takes in a node.
func (m *Machine) NodeSet(n *cluster.NodeInfo) {
	if m != nil {
		m.changes++
		m.truth.state.SetNode(n)
	}
}

// PodPends takes in a pod without a node.
// That other schedulers nominate pods is part of the truth.
func (m *Machine) PodPends(p *Pod, pod *cluster.Pod) {
	if m == nil {
		return
	}
	if !p.seen {
		// What changes between now and the pod's placement makes the comparison less
		// telling; it is counted.
		p.seen, p.changes = true, m.changes
	}
	m.truth.state.Nominate(pod, pod.Object.Status.NominatedNodeName)
}

// PodBound takes in a pod that the API has on a node. The pod as it was before, with what was
// decided of it and when it was first seen, is nil of one that wasn't seen without a node:
// nothing is compared then.
// The truth gets the pod after it was judged: its own placement must not count against it.
func (m *Machine) PodBound(t *lifecycle.Turn, p *Pod, before *cluster.Pod, seen time.Time, pod *cluster.Pod) {
	if m == nil {
		return
	}
	if p != nil && before != nil && !before.StandsIn() {
		m.placed(t, p, before, seen, pod.Object.Spec.NodeName)
	}
	m.truth.state.Place(pod, pod.Object.Spec.NodeName)
}

// PodRemoved records that a pod is gone, or on its way out without a node. The part is nil of one
// that has none.
func (m *Machine) PodRemoved(t *lifecycle.Turn, p *Pod, uid types.UID) {
	if m == nil {
		return
	}
	if p != nil && p.pod != nil {
		// A pod that the other scheduler never placed is told as Berth's alone.
		m.only(t, p, "the pod was deleted before the other scheduler placed it")
		m.takeBack(t, p)
	}
	if n := m.truth.state.NominatedTo(uid); n != "" {
		m.truth.state.Nominate(m.nominee(uid), "")
	}
	if m.truth.state.Remove(uid) {
		m.changes++
	}
}

// nominee returns the pod of a nomination in the truth.
// Nominations are few.
func (m *Machine) nominee(uid types.UID) *cluster.Pod {
	for _, n := range m.truth.state.Nominations() {
		if n.Pod.UID == uid {
			return n.Pod
		}
	}
	return nil
}

// PodDecided takes a decision that has put a pod on a node in the core's state.
func (m *Machine) PodDecided(t *lifecycle.Turn, p *Pod, item *queue.Item, d *scheduler.Decision, seen time.Time) {
	if p.gaveUp {
		m.report.onlyBerth-- // it was given up too early
	}
	p.pod, p.gaveUp, p.preempts, p.decided, p.writes = item.Pod(), false, false, t.Now, d.Writes
	p.earlier = step.Earlier{Node: d.Node.Name, Score: d.Score, Took: t.Now.Sub(seen)}
	m.assumed = append(m.assumed, assumption{item.Pod().UID, t.Now})
}

// PodRejected takes a decision that found no node, and whether others would have left one for the
// pod. It reports whether the last decision of the pod was another one.
// The caller tells people only of what is new.
func (m *Machine) PodRejected(t *lifecycle.Turn, p *Pod, why string, preempts bool, seen time.Time) (anew bool) {
	p.preempts = preempts
	if !p.decided.IsZero() && p.earlier.Why == why {
		return false
	}
	p.decided = t.Now
	p.earlier = step.Earlier{Took: t.Now.Sub(seen), Why: why}
	return true
}

// placed judges where the other scheduler has put a pod that was seen without a node.
func (m *Machine) placed(t *lifecycle.Turn, p *Pod, before *cluster.Pod, seen time.Time, node string) {
	c := step.Comparison{Time: t.Now, Pod: before.Name(), Profile: before.Object.Spec.SchedulerName, Node: node, Took: t.Now.Sub(seen), Meanwhile: m.changes - p.changes}
	if !p.decided.IsZero() {
		earlier := p.earlier
		earlier.GaveUp = p.gaveUp
		c.Earlier = &earlier
	}
	if p.gaveUp {
		m.report.onlyBerth-- // it isn't Berth's alone any more
	}
	m.takeBack(t, p)
	// A placement that Berth wouldn't allow may be due to news that is on its way: it is
	// judged again later, and told then (doubts).
	if m.judged(&c, before); c.Verdict == step.NotAllowed {
		m.doubts = append(m.doubts, doubt{comparison: c, pod: before, seen: t.Now, next: t.Now.Add(doubtEnds[0])})
		return
	}
	m.tell(t, &c)
}

// judged gives a comparison its verdict, as the truth is now.
// It may be called several times for one comparison, with other answers as the truth goes
// on.
func (m *Machine) judged(c *step.Comparison, pod *cluster.Pod) {
	earlier := ""
	if c.Earlier != nil {
		earlier = c.Earlier.Node
	}
	var verdict step.Verdict
	j := m.truth.judge(pod, c.Node, earlier, func(j *judgement) bool {
		verdict = verdictOf(c.Node, earlier, j)
		// Scores are only computed where the report wants them.
		return m.report.wants(verdict, j.bestScore-j.score)
	})
	c.Verdict, c.Score, c.BerthNode, c.BerthScore = verdict, j.score, "", j.bestScore
	c.Reason, c.Plugin, c.Scores, c.BerthScores = "", "", nil, nil
	if j.best != nil {
		c.BerthNode = j.best.Name
		c.BerthScores = j.scores[j.best.Index]
	}
	if j.why != nil {
		c.Reason, c.Plugin = strings.Join(j.why.Messages, ", "), j.why.Plugin
	} else if n := m.truth.state.NodeByName(c.Node); n != nil {
		c.Scores = j.scores[n.Index]
	}
	if c.Earlier != nil {
		c.Earlier.Fits, c.Earlier.Now = j.earlierFits, j.earlierScore
	}
}

// verdictOf words a judgement of a node; earlier is the one that Berth had decided for.
func verdictOf(node, earlier string, j *judgement) step.Verdict {
	switch {
	case j.why != nil:
		return step.NotAllowed
	case node == earlier || j.best != nil && j.best.Name == node:
		return step.SameNode
	case j.score == j.bestScore:
		return step.EquallyGood
	case j.score > j.bestScore:
		return step.Better
	}
	return step.Worse
}

// tell counts a comparison and hands it out.
// Each comparison is told once.
func (m *Machine) tell(t *lifecycle.Turn, c *step.Comparison) {
	m.report.add(c)
	t.Ready.Comparisons = append(t.Ready.Comparisons, *c)
}

// only tells that a pod that Berth has placed is Berth's alone, and why.
func (m *Machine) only(t *lifecycle.Turn, p *Pod, why string) {
	earlier := p.earlier
	m.tell(t, &step.Comparison{Time: t.Now, Pod: p.pod.Name(), Profile: p.pod.Object.Spec.SchedulerName, Verdict: step.OnlyBerth,
		BerthNode: earlier.Node, BerthScore: earlier.Score, Earlier: &earlier, Reason: why})
}

// takeBack has a pod count as being on no node, and has the core's state as if it had never
// been decided on.
func (m *Machine) takeBack(t *lifecycle.Turn, p *Pod) {
	if p.pod == nil {
		return
	}
	t.State.Remove(p.pod.UID)
	for _, w := range p.writes {
		o := w.New
		if c, ok := o.(*resourcev1.ResourceClaim); ok {
			m.takeClaimBack(t, p.pod.UID, c.Namespace, c.Name)
		} else if t.State.Object(cluster.KindOf(o), o.GetNamespace(), o.GetName()) == o {
			t.State.SetObject(w.Old) // the API has shown no other since
		}
	}
	p.pod, p.writes = nil, nil
}

// takeClaimBack takes back what a decision has reserved of a claim. Other pods that share the claim may have been
// decided on since, and keep theirs; when none is left the claim is as the API shows it, or isn't there.
func (m *Machine) takeClaimBack(t *lifecycle.Turn, pod types.UID, namespace, name string) {
	assumed, shown := t.State.ResourceClaim(namespace, name), m.truth.state.ResourceClaim(namespace, name)
	if assumed == nil || assumed == shown {
		return // the API has shown it since
	}
	left := *assumed
	// The claim is copied: objects in the state are never changed.
	left.Status.ReservedFor = slices.DeleteFunc(slices.Clone(assumed.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
	switch {
	case len(left.Status.ReservedFor) > 0:
		t.State.SetObject(&left)
	case shown != nil:
		t.State.SetObject(shown)
	default:
		t.State.RemoveObject(cluster.ResourceClaimKind, namespace, name)
	}
}

// Advance gives up the decisions that have had their time, and judges again what is doubted.
func (m *Machine) Advance(t *lifecycle.Turn) {
	if m == nil {
		return
	}
	m.forgetEnded()
	// Decisions are in the order of time, so those at the head are due first.
	for len(m.assumed) > 0 && t.Now.Sub(m.assumed[0].at) >= m.giveUp {
		p := m.pods.Get(m.assumed[0].uid)
		m.only(t, p, fmt.Sprintf("the other scheduler has not placed the pod within %s; Berth no longer counts it as placed", m.giveUp))
		m.takeBack(t, p)
		p.gaveUp = true
		m.forgetEnded()
	}
	m.judgeDoubts(t)
	m.truth.forget(t.Now)
}

// forgetEnded forgets what has ended of the decisions at the head of assumed.
func (m *Machine) forgetEnded() {
	for len(m.assumed) > 0 {
		if p := m.pods.Get(m.assumed[0].uid); p != nil && p.pod != nil && p.decided.Equal(m.assumed[0].at) {
			return
		}
		m.assumed = m.assumed[1:]
	}
}

// NextWake returns when a decision is to be given up or a doubt to be looked at.
func (m *Machine) NextWake() (next time.Time) {
	if m == nil {
		return next
	}
	if len(m.assumed) > 0 {
		next = m.assumed[0].at.Add(m.giveUp)
	}
	for i := range m.doubts {
		next = lifecycle.Earliest(next, m.doubts[i].next)
	}
	return next
}

// Unsettled names the pods that count as being where Berth has put them, and what is doubted.
func (m *Machine) Unsettled() (out []string) {
	if m == nil {
		return nil
	}
	for uid, p := range m.pods.All() {
		if node := p.Node(); node != "" {
			out = append(out, fmt.Sprintf("pod %s counts as being on %s, and the other scheduler hasn't placed it", uid, node))
		}
	}
	for i := range m.doubts {
		out = append(out, fmt.Sprintf("pod %s: whether %s is allowed is to be judged again", m.doubts[i].pod.UID, m.doubts[i].comparison.Node))
	}
	return out
}

// Invariants checks that each pod that counts as placed has a node and an end.
// Without an end a pod would count as being on a node for ever, if the other scheduler
// never places it.
func (m *Machine) Invariants() (out []string) {
	if m == nil {
		return nil
	}
	ends := map[types.UID]bool{}
	for _, a := range m.assumed {
		if p := m.pods.Get(a.uid); p != nil && p.decided.Equal(a.at) {
			ends[a.uid] = true
		}
	}
	for uid, p := range m.pods.All() {
		switch {
		case p.pod == nil:
		case p.earlier.Node == "":
			out = append(out, fmt.Sprintf("pod %s counts as placed, on no node", uid))
		case !ends[uid]:
			out = append(out, fmt.Sprintf("pod %s counts as being on %s for ever", uid, p.earlier.Node))
		}
	}
	return out
}
