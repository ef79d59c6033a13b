package draining

// This file holds the drain of one node. What must be true: a pod has at most one eviction
// without an outcome; PodEvicted is called once for each pod that was told to leave, and never for
// a courtesy; and no pod of a tier is asked as long as one of the tier before is there.

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

const (
	// retryAfter is how long after its first refusal an eviction is asked for again, as in
	// Cluster Autoscaler.
	retryAfter = 10 * time.Second
	// maxRetry is the longest wait between two such tries.
	maxRetry = 40 * time.Second
	// terminationHeadroom is how long after its grace period a pod may still be shown, as in
	// Cluster Autoscaler: its kubelet has to kill it and to say so.
	terminationHeadroom = 30 * time.Second
)

// Drain is the pods of one node on their way out. Only the core's goroutine may use it.
type Drain struct {
	cfg   *Config
	node  string
	tiers [][]*pod  // those that aren't gone, lowest tier first; none is empty
	since time.Time // when the turn of the first came
	begun bool      // an eviction was requested, whatever its outcome, or a successor from the pod's Deployment
	homes Homes
	// released is when members of pod groups were allowed to get their successors; zero before.
	released time.Time
}

// Homes keeps room for the pods' replacements. It is told of pods that have none there, too.
type Homes interface {
	// PodEvicted says that a pod has been told to leave, by whomever: its replacement is
	// expected. Of a daemon pod it isn't said.
	PodEvicted(t *lifecycle.Turn, pod *cluster.Pod)
	// SuccessorRequested says that a pod's Deployment is asked to make its successor: that is expected,
	// and the pod stays until it is available. PodEvicted follows when the pod is told to leave.
	SuccessorRequested(t *lifecycle.Turn, pod *cluster.Pod)
}

// pod is a pod on its way out.
type pod struct {
	uid      types.UID
	grace    time.Duration // how long it may take to terminate
	less     bool          // than it says itself
	courtesy bool          // it doesn't keep the node
	surge    bool          // its Deployment is to make a successor first
	// group is that of a member which gets its successor together with all others: if one gets none, none is
	// evicted. It is nil for other pods.
	group *cluster.PodGroupKey
	why   string // it is asked although its Deployment was to, or got no successor; "" otherwise
	stage stage
	until time.Time     // surging, refused: when it is asked; leaving: when it has to be gone
	since time.Time     // when it was first asked
	wait  time.Duration // refused: before the next try
	err   error         // of the last try
}

type stage uint8

const (
	waiting stage = iota
	surging
	asked
	refused
	leaving
)

// New returns the drain of a node's pods. Pods that must be gone and daemon pods are given
// apart; the first are evicted or, if they terminate already, waited for. Members of pod groups that get
// successors together are in one tier, the last that one of them is of: otherwise one could wait for
// another node, and that node for a member of a later tier here.
func New(t *lifecycle.Turn, cfg *Config, node string, pods, daemons []*cluster.Pod, homes Homes) *Drain {
	tiers := cfg.tiers()
	byTier := make([][]*pod, len(tiers))
	together := -1
	for _, p := range pods {
		if cfg.surgesWhole(t.State, p) {
			together = max(together, tierOf(tiers, p.Priority))
		}
	}
	add := func(p *cluster.Pod, courtesy bool) {
		i := tierOf(tiers, p.Priority)
		grace, less := grace(tiers[i], p)
		x := &pod{uid: p.UID, grace: grace, less: less, courtesy: courtesy, surge: !courtesy && cfg.surges(p)}
		if !courtesy && cfg.surgesWhole(t.State, p) {
			x.group, i = p.Group, together
		}
		byTier[i] = append(byTier[i], x)
	}
	for _, p := range pods {
		add(p, false)
	}
	for _, p := range daemons {
		add(p, true)
	}
	return &Drain{cfg: cfg, node: node, since: t.Now, homes: homes,
		tiers: slices.DeleteFunc(byTier, func(tier []*pod) bool { return len(tier) == 0 })}
}

// Has reports whether a pod is among those that aren't gone yet.
func (d *Drain) Has(uid types.UID) bool {
	return slices.ContainsFunc(d.tiers, func(tier []*pod) bool {
		return slices.ContainsFunc(tier, func(p *pod) bool { return p.uid == uid })
	})
}

// Begun reports whether a pod may have been told to leave, or its Deployment was asked for its
// successor. Of daemon pods it doesn't tell.
func (d *Drain) Begun() bool {
	return d.begun || len(d.tiers) > 0 && slices.ContainsFunc(d.tiers[0], func(p *pod) bool { return p.stage == asked && !p.courtesy })
}

// Advance does what is due: it asks pods to leave. It returns whether all are gone, or why
// the drain has failed; then it asks none.
func (d *Drain) Advance(t *lifecycle.Turn) (done bool, why string) {
	for len(d.tiers) > 0 {
		d.tiers[0] = slices.DeleteFunc(d.tiers[0], func(p *pod) bool { return d.gone(t, p) })
		for _, p := range d.tiers[0] {
			if why := d.failed(t, p); why != "" {
				return false, why
			}
		}
		if d.Held() {
			return false, ""
		}
		for _, p := range d.tiers[0] {
			now := t.State.PodOn(p.uid)
			if p.group == nil && p.stage == surging && !t.Now.Before(p.until) {
				p.noSurge(fmt.Sprintf("it was not available within %s", d.cfg.MaxEviction))
			}
			switch {
			case p.stage == waiting && p.surge:
				d.surge(t, p, now)
			case p.stage == waiting || p.stage == refused && !t.Now.Before(p.until):
				d.ask(t, p, now)
			}
		}
		if len(d.tiers[0]) > 0 {
			return false, ""
		}
		d.tiers, d.since = d.tiers[1:], t.Now
	}
	return true, ""
}

// over reports whether evicting the pod was attempted for MaxEviction, after which the drain gives up.
func (d *Drain) over(t *lifecycle.Turn, p *pod) bool {
	return !t.Now.Before(p.since.Add(d.cfg.MaxEviction))
}

// gone reports whether a pod is no longer waited for, and records when the API
// shows that it terminates, whoever told it to leave.
func (d *Drain) gone(t *lifecycle.Turn, p *pod) bool {
	n := t.State.NodeOf(p.uid)
	if n == nil || n.Name != d.node {
		return true
	}
	now := t.State.PodOn(p.uid)
	terminates := now.Object.DeletionTimestamp != nil
	if p.courtesy {
		return terminates || p.stage == leaving || p.stage == asked && d.over(t, p)
	}
	if terminates && p.stage != leaving {
		d.leaves(t, p, now)
	}
	return false
}

// failed returns why a pod keeps the node, "" if it doesn't.
func (d *Drain) failed(t *lifecycle.Turn, p *pod) (why string) {
	now := t.State.PodOn(p.uid)
	switch {
	case p.stage == refused && d.over(t, p):
		why = fmt.Sprintf("pod %s could not be evicted within %s: %v", now.Name(), d.cfg.MaxEviction, p.err)
	case p.stage == leaving && !t.Now.Before(p.until):
		why = fmt.Sprintf("pod %s has not terminated within %s", now.Name(), p.grace+terminationHeadroom)
	case p.group != nil && p.stage == surging:
		why = d.alone(t, p, now)
	}
	if why == "" {
		return ""
	}
	t.Emit(step.PodEvent(now.Object, "ScaleDownFailed", "ScalingDown", "failed to delete pod for ScaleDown").AsWarning())
	return why
}

// ask requests the eviction of a pod. Repeated attempts are reported once.
func (d *Drain) ask(t *lifecycle.Turn, p *pod, now *cluster.Pod) {
	if p.stage == waiting {
		p.since = t.Now
		t.Decide(step.Decision{Kind: step.PodEvicted, Pod: now.Name(), Node: d.node, Reason: p.why})
		t.Emit(step.PodEvent(now.Object, "ScaleDown", "ScalingDown", "deleting pod for node scale down"))
	}
	p.stage = asked
	x := step.Eviction{UID: p.uid, Namespace: now.Object.Namespace, Name: now.Object.Name, Node: d.node}
	if p.less {
		x.Grace = &p.grace
	}
	t.Ready.Evictions = append(t.Ready.Evictions, x)
}

// leaves records that a pod has been told to leave.
func (d *Drain) leaves(t *lifecycle.Turn, p *pod, now *cluster.Pod) {
	p.stage, p.until = leaving, t.Now.Add(p.grace+terminationHeadroom)
	d.begun = true
	d.homes.PodEvicted(t, now)
}

// EvictionDone takes the outcome of an eviction. One that isn't waited for any more changes
// nothing.
func (d *Drain) EvictionDone(t *lifecycle.Turn, in step.EvictionDone) {
	if len(d.tiers) == 0 {
		return
	}
	i := slices.IndexFunc(d.tiers[0], func(p *pod) bool { return p.uid == in.UID })
	if i < 0 || d.tiers[0][i].stage != asked {
		return
	}
	p := d.tiers[0][i]
	switch now := t.State.PodOn(p.uid); {
	case in.Err == nil && !p.courtesy && now != nil:
		d.leaves(t, p, now)
	case in.Err == nil || p.courtesy:
		p.stage = leaving // or gone already
	default:
		d.begun = d.begun || !in.Refused // it may have been carried out
		p.wait = min(max(retryAfter, 2*p.wait), maxRetry)
		p.stage, p.until, p.err = refused, t.Now.Add(p.wait), in.Err
	}
}

// Due returns when the drain goes on without an input; zero for never.
func (d *Drain) Due() (at time.Time) {
	if len(d.tiers) == 0 {
		return d.since
	}
	for _, p := range d.tiers[0] {
		over := p.since.Add(d.cfg.MaxEviction)
		switch {
		case p.stage == waiting && d.Held():
			// The drains of the other nodes go on first.
		case p.stage == waiting || p.courtesy && p.stage != asked:
			return d.since // before the first Advance, or an answer has come
		case p.courtesy:
			at = lifecycle.Earliest(at, over)
		case p.stage == refused:
			at = lifecycle.Earliest(at, lifecycle.Earliest(p.until, over))
		case p.stage == surging || p.stage == leaving:
			at = lifecycle.Earliest(at, p.until)
		}
	}
	return at
}

// String says how many pods are at which stage.
func (d *Drain) String() string {
	var counts [leaving + 1]int
	for i, tier := range d.tiers {
		for _, p := range tier {
			if i > 0 {
				counts[waiting]++
			} else {
				counts[p.stage]++
			}
		}
	}
	out := ""
	for s, n := range counts {
		if n > 0 {
			out += fmt.Sprintf(", %d %s", n, [...]string{"waiting", "surging", "asked", "refused", "leaving"}[s])
		}
	}
	return out
}
