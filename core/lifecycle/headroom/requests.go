package headroom

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file follows ProvisioningRequests. What becomes of one follows from its conditions,
// with Cluster Autoscaler's times.
// A new leader reads from them where the old one ended.

const (
	bookedFor    = 10 * time.Minute
	minBackoff   = time.Minute
	maxBackoff   = 10 * time.Minute
	expiresAfter = 7 * 24 * time.Hour
)

// advanceRequest takes a request as far as it can get now.
func (m *Machine) advanceRequest(t *lifecycle.Turn, a *ask, o *autoscalingapi.ProvisioningRequest) {
	r := &a.report
	// The order of the cases is from states that are final to those that go on.
	switch class := o.Spec.ProvisioningClassName; {
	case class != autoscalingapi.CheckCapacity && class != autoscalingapi.BestEffortAtomic:
		r.silent = true // somebody else serves it
	case r.is(autoscalingapi.Failed) || r.is(autoscalingapi.BookingExpired):
		m.empty(t, a)
	case r.is(autoscalingapi.Provisioned):
		m.advanceBooking(t, a, o)
	case !t.Now.Before(o.CreationTimestamp.Add(validFor(o))):
		a.draft = nil
		r.stamp(t, autoscalingapi.Failed, metav1.ConditionTrue, autoscalingapi.ExpiredReason, "ProvisioningRequest is expired", o.Generation)
		t.Decide(step.Decision{Kind: step.NotBooked, Headroom: a.String(), Reason: "it was created too long ago"})
	// The request waits for the plan that it is part of (WholePlanned).
	case a.draft != nil: // the plan tells
	default:
		a.wake = t.Now
		// The last attempt failed then; a new process reads from the condition when that
		// was.
		if p := r.condition(autoscalingapi.Provisioned); p != nil {
			a.wake = p.LastTransitionTime.Add(a.backoff())
		}
		if t.Now.Before(a.wake) {
			return
		}
		a.wake = time.Time{}
		m.attempt(t, a, o)
	}
}

// validFor returns for how long after its creation a request is tried.
// A value that can't be read or is too long counts as none.
func validFor(o *autoscalingapi.ProvisioningRequest) time.Duration {
	if text, ok := o.Spec.Parameters[autoscalingapi.ValidUntilSeconds]; ok && o.Spec.ProvisioningClassName == autoscalingapi.BestEffortAtomic {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < int(expiresAfter/time.Second) {
			return time.Duration(n) * time.Second
		}
	}
	return expiresAfter
}

// backoff returns how long after an attempt the next is made: twice as long each time. A
// process that has just begun knows of no attempt, and begins with the shortest time.
func (a *ask) backoff() time.Duration {
	return min(minBackoff<<max(min(a.attempts, 5)-1, 0), maxBackoff)
}

// maxRequested is how many pods a request may have: each is a pod that is placed and
// planned for.
const maxRequested = 50_000

// wants returns the stand-ins of all of a request's pods.
// The error is what people read in the request's status, and says what to do.
func (m *Machine) wants(s *cluster.State, o *autoscalingapi.ProvisioningRequest) ([]want, error) {
	var out []want
	all := 0
	for _, x := range o.Spec.PodSets {
		// The sum is checked before anything is made of it.
		if all += max(int(x.Count), 0); all > maxRequested {
			return nil, fmt.Errorf("the request has more than %d pods; ask for fewer", maxRequested)
		}
		template, _ := s.Object(cluster.PodTemplateKind, o.Namespace, x.PodTemplateRef.Name).(*v1.PodTemplate)
		if template == nil {
			return nil, fmt.Errorf("PodTemplate %s/%s, which podSets names, doesn't exist; create it", o.Namespace, x.PodTemplateRef.Name)
		}
		w := want{lifecycle.StandInShape(o.Namespace, &template.Template), int(x.Count)}
		if !m.scheduler.Responsible(s.Schema.ParsePod(w.shape)) {
			return nil, fmt.Errorf("the schedulerName of PodTemplate %s/%s is %q, which no profile of Berth has; add a profile, or use another name", o.Namespace, template.Name, w.shape.Spec.SchedulerName)
		}
		out = append(out, w)
	}
	return out, nil
}

// attempt books room for a request, if the nodes as they are have room for all of its pods;
// otherwise an atomic one waits for a plan that buys nodes for them.
func (m *Machine) attempt(t *lifecycle.Turn, a *ask, o *autoscalingapi.ProvisioningRequest) {
	wants, err := m.wants(t.State, o)
	if err != nil {
		m.refuse(t, a, err.Error()) // tried again when a template comes or changes
		return
	}
	// An earlier refusal is over: its templates are there.
	m.refuse(t, a, "")
	a.attempts++
	r := &a.report
	if !r.is(autoscalingapi.Accepted) {
		r.stamp(t, autoscalingapi.Accepted, metav1.ConditionTrue, autoscalingapi.AcceptedReason, "ProvisioningRequest is accepted by Berth", o.Generation)
	}
	// Stand-ins aren't queued yet: without room for all of them there is none for any.
	draft := make([]*set, len(wants))
	for i, w := range wants {
		draft[i] = &set{shape: w.shape, number: i}
		for range w.count {
			a.grow(t.State.Schema, draft[i])
		}
	}
	nodes, ok := m.fit(t, podsOf(draft))
	switch {
	// All of them at once: between the search and this nothing else can take the room.
	case ok:
		for i, pod := range podsOf(draft) {
			t.State.Nominate(pod, nodes[i]) // the room is kept until they are decided on
		}
		m.book(t, a, o, draft, autoscalingapi.CapacityIsFoundReason, "on existing nodes")
	case o.Spec.ProvisioningClassName == autoscalingapi.BestEffortAtomic:
		a.draft = draft
	default:
		m.notFound(t, a, o, "existing nodes have no room for all of its pods")
	}
}

// book keeps room for a request from now on, for ten minutes.
// From now on stand-ins are pods like others to the queue: where their room is lost, they
// look for it anew.
func (m *Machine) book(t *lifecycle.Turn, a *ask, o *autoscalingapi.ProvisioningRequest, sets []*set, reason, where string) {
	m.admit(t, a, o)
	a.sets = sets
	pods := 0
	for _, s := range sets {
		for x := s.oldest; x != nil; x = x.newer {
			m.queue(t, x)
		}
		pods += s.count
	}
	a.report.stamp(t, autoscalingapi.Provisioned, metav1.ConditionTrue, reason, "Capacity is found in the cluster", o.Generation)
	a.wake = t.Now.Add(bookedFor)
	t.Decide(step.Decision{Kind: step.Booked, Headroom: a.String(), Reason: fmt.Sprintf("room for %d pod(s) %s", pods, where)})
}

// notFound has a request without room wait for the next attempt, or fail.
// Only a check of capacity may say that it wants no second attempt.
func (m *Machine) notFound(t *lifecycle.Turn, a *ask, o *autoscalingapi.ProvisioningRequest, why string) {
	r := &a.report
	if o.Spec.Parameters[autoscalingapi.NoRetry] == "true" && o.Spec.ProvisioningClassName == autoscalingapi.CheckCapacity {
		r.stamp(t, autoscalingapi.Failed, metav1.ConditionTrue, autoscalingapi.CapacityIsNotFoundReason, "Capacity is not found in the cluster", o.Generation)
	} else {
		r.stamp(t, autoscalingapi.Provisioned, metav1.ConditionFalse, autoscalingapi.CapacityIsNotFoundReason, "Capacity is not found, Berth will try to find it later.", o.Generation)
		a.wake = t.Now.Add(a.backoff())
	}
	t.Decide(step.Decision{Kind: step.NotBooked, Headroom: a.String(), Reason: why})
}

// WantsPlan reports whether an atomic request waits for a plan, and none is under way for one.
// One atomic request is planned at a time.
func (m *Machine) WantsPlan() bool {
	if m.inPlan != nil {
		return false
	}
	for _, a := range m.asks { // in any order
		if a.draft != nil {
			return true
		}
	}
	return false
}

// Whole returns the pods for all of which a plan that is asked for now is to buy nodes, or
// for none: those of one atomic request.
// The order is that of sorted, so that the same one is planned in a replay.
func (m *Machine) Whole() []*cluster.Pod {
	m.inPlan = nil
	for _, a := range m.sorted() {
		if a.draft != nil {
			m.inPlan = a
			return podsOf(a.draft)
		}
	}
	return nil
}

// WholePlanned takes whether all that a plan buys for the pods of Whole can be ordered. Then
// they are queued, and so wait when the plan is committed; as in Cluster Autoscaler the
// request counts as provisioned from now on, not when the nodes are there.
// The request may be gone or another one by now.
func (m *Machine) WholePlanned(t *lifecycle.Turn, ok bool) {
	a := m.inPlan
	m.inPlan = nil
	if a == nil || m.asks[a.key] != a || a.draft == nil {
		return
	}
	o, _ := t.State.Object(a.kind, a.namespace, a.name).(*autoscalingapi.ProvisioningRequest)
	draft := a.draft
	a.draft = nil
	if ok {
		m.book(t, a, o, draft, autoscalingapi.CapacityIsProvisionedReason, "on nodes being added")
	} else {
		// The attempt counts, and the backoff begins.
		m.notFound(t, a, o, "no scale-up can make room for all of its pods")
	}
}

// fit returns for each pod a node with room for it beside the others; ok is false when some
// pod has none. It leaves the state as it is.
// Each pod sees those before it in the state.
func (m *Machine) fit(t *lifecycle.Turn, pods []*cluster.Pod) (nodes []string, ok bool) {
	mark := t.State.Mark()
	defer t.State.Rollback(mark)
	for _, pod := range pods {
		e := m.scheduler.Engine(pod)
		choice, ok := e.Place(e.Class(pod), pod)
		if !ok {
			return nil, false
		}
		nodes = append(nodes, t.State.Node(choice.Node).Name)
	}
	return nodes, true
}

// admit says for which pods a request's room is kept.
// Both annotations of Cluster Autoscaler's name a request.
func (m *Machine) admit(t *lifecycle.Turn, a *ask, o *autoscalingapi.ProvisioningRequest) {
	t.State.SetHeadroom(&cluster.Headroom{ID: cluster.HeadroomID(a.uid), Namespace: o.Namespace, Annotations: []cluster.Annotation{
		{Key: autoscalingapi.ConsumeAnnotation, Value: o.Name}, {Key: autoscalingapi.OldConsumeAnnotation, Value: o.Name}}})
}

// advanceBooking ends a booking whose time is over. One that another process has made gets
// its stand-ins, for the pods that aren't placed yet.
// After a change of leaders the new one has the condition, but no stand-ins.
func (m *Machine) advanceBooking(t *lifecycle.Turn, a *ask, o *autoscalingapi.ProvisioningRequest) {
	r := &a.report
	end := r.condition(autoscalingapi.Provisioned).LastTransitionTime.Add(bookedFor)
	if !t.Now.Before(end) {
		r.stamp(t, autoscalingapi.BookingExpired, metav1.ConditionTrue, autoscalingapi.ReservationExpiredReason, "Capacity reservation time is expired", o.Generation)
		t.Decide(step.Decision{Kind: step.BookingEnded, Headroom: a.String(), Reason: "its reservation has expired"})
		m.empty(t, a)
		return
	}
	a.wake = end
	if a.sets != nil {
		return
	}
	wants, err := m.wants(t.State, o)
	if err != nil {
		m.refuse(t, a, err.Error())
		return
	}
	m.refuse(t, a, "")
	m.admit(t, a, o)
	m.reshape(a, wants)
	m.resize(t, a, wants)
	// Pods that use the booking already take their stand-ins away again, in a fixed order.
	var placed []*cluster.Pod
	t.State.Pods(func(p *cluster.Pod) {
		if p.Object.Namespace == o.Namespace && consumes(p) == o.Name {
			placed = append(placed, p)
		}
	})
	slices.SortFunc(placed, func(x, y *cluster.Pod) int { return cmp.Compare(x.UID, y.UID) })
	for _, p := range placed {
		m.consume(t, a, p)
	}
}

// consumes returns the name of the request whose room a pod consumes, "" for none.
func consumes(p *cluster.Pod) string {
	if name := p.Object.Annotations[autoscalingapi.ConsumeAnnotation]; name != "" {
		return name
	}
	return p.Object.Annotations[autoscalingapi.OldConsumeAnnotation]
}

// used records that a pod came to a node, or left it.
func (m *Machine) used(t *lifecycle.Turn, c *cluster.Change) {
	name := consumes(c.Pod)
	if name == "" {
		return
	}
	a := m.asks[key{cluster.ProvisioningRequestKind, c.Pod.Object.Namespace, name}]
	if a == nil || a.sets == nil {
		return
	}
	at, consumed := a.consumed[c.Pod.UID]
	switch {
	case c.Op == cluster.PodAdded && !consumed:
		m.consume(t, a, c.Pod)
	// Of a pod that was bound and has ended the room isn't kept again: it has been used.
	case c.Op == cluster.PodRemoved && consumed && m.records.Get(c.Pod.UID) != nil:
		// It was never bound there, and has to be placed again.
		node := ""
		if n := t.State.Node(c.Node); n != nil {
			node = n.Name
		}
		m.giveBack(t, a, c.Pod.UID, at, node)
	}
}

// PodWaits lets a pod that finds no node stand for itself, if it consumes a booking of which a
// stand-in finds none either: nodes aren't bought for both. It returns that stand-in, for
// handOver to give the pod its place before it is dropped.
func (m *Machine) PodWaits(pod *cluster.Pod, handOver func(standIn types.UID)) {
	name := consumes(pod)
	if name == "" {
		return
	}
	a := m.asks[key{cluster.ProvisioningRequestKind, pod.Object.Namespace, name}]
	if a == nil || a.sets == nil {
		return
	}
	// It has had its stand-in's room once.
	if _, consumed := a.consumed[pod.UID]; consumed {
		return
	}
	if x := m.closestWaiting(a, pod); x != nil {
		handOver(x.pod.UID)
		m.giveRoom(a, pod.UID, x)
	}
}

// PodRemoved records that a pod is gone which the API never showed on a node: the room that it
// consumed is kept again.
func (m *Machine) PodRemoved(t *lifecycle.Turn, pod *cluster.Pod) {
	a := m.asks[key{cluster.ProvisioningRequestKind, pod.Object.Namespace, consumes(pod)}]
	if a == nil {
		return
	}
	if at, consumed := a.consumed[pod.UID]; consumed {
		m.giveBack(t, a, pod.UID, at, "")
	}
}

// giveBack has a stand-in keep the room again that a pod has consumed: on a node, or, for
// "", anywhere.
func (m *Machine) giveBack(t *lifecycle.Turn, a *ask, uid types.UID, at int, node string) {
	delete(a.consumed, uid)
	// The request may have changed since, and have fewer sets of pods.
	if at < 0 || at >= len(a.sets) {
		return
	}
	x := a.grow(t.State.Schema, a.sets[at])
	if node != "" {
		t.State.Nominate(x.pod, node)
	}
	m.queue(t, x)
}

// consume drops the stand-in whose room a pod has most likely taken.
// Which one it was can't be known; closest says which is the likeliest.
func (m *Machine) consume(t *lifecycle.Turn, a *ask, pod *cluster.Pod) {
	m.giveRoom(a, pod.UID, m.closest(t.State, a, pod))
}

// giveRoom gives a pod the room of a stand-in, which is dropped; of none when x is nil.
func (m *Machine) giveRoom(a *ask, uid types.UID, x *standIn) {
	if a.consumed == nil {
		a.consumed = map[types.UID]int{}
	}
	// Remembered as well: a pod that consumed nothing gives nothing back.
	if x == nil {
		a.consumed[uid] = -1
		return
	}
	a.consumed[uid] = x.set.number
	m.drop(x)
}
