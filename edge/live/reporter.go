package live

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/core/step"
)

// reporter writes what people and other programs read: pods' conditions and
// nominations, and events (events.go). Conditions and events have a budget of their own, so
// that binds never wait for them. Nominations have the budget of binds: until one is written,
// the room that victims leave is kept by this process only.
//
// Of each pod the latest condition and the latest nomination wait to be written, and
// both go in one call, with the nomination if there is one. Pods are served in the order in
// which they came to wait; one whose report is replaced keeps its turn. A pod has one call at
// a time, so that what is written last is what was decided last.
type reporter struct {
	*recorder
	client      kubernetes.Interface // for conditions
	nominations kubernetes.Interface // for nominations, with the conditions of their pods
	log         *slog.Logger
	nominating  *atomic.Int64 // nominations that wait or are being written

	mu       sync.Mutex
	waiting  map[types.UID]report      // guarded by mu
	writing  map[types.UID]*reportCall // guarded by mu; of each pod of which a call is under way
	settling map[types.UID]*outcome    // guarded by mu; what outcomeOf has returned and isn't known yet
	// unwritten are the pods that are being bound, each with the condition that wasn't written for
	// that, nil for none; guarded by mu
	unwritten map[types.UID]*step.Condition
	// conditional and nominated are the pods of waiting without a nomination and with one,
	// and perhaps pods that aren't there any more.
	conditional, nominated turns
}

// turns are pods in the order in which they are to be served.
type turns struct {
	order []types.UID // guarded by the reporter's mu
	// signal holds a token for each worker that may have something to do.
	signal chan struct{}
}

func newTurns(workers int) turns { return turns{signal: make(chan struct{}, workers)} }

// add puts a pod at the end and wakes a worker, if one sleeps. The caller holds the reporter's mu.
func (l *turns) add(uid types.UID) {
	l.order = append(l.order, uid)
	select {
	case l.signal <- struct{}{}:
	default: // all workers will look
	}
}

// report is what is to be written of a pod; not both are nil.
type report struct {
	condition  *step.Condition
	nomination *job[step.Nomination]
}

func newReporter(client, nominations kubernetes.Interface, host string, log *slog.Logger, load *load) *reporter {
	return &reporter{
		recorder: newRecorder(client, host, load.high), client: client, nominations: nominations, log: log, nominating: &load.nominations,
		waiting: map[types.UID]report{}, writing: map[types.UID]*reportCall{}, settling: map[types.UID]*outcome{}, unwritten: map[types.UID]*step.Condition{},
		conditional: newTurns(conditionWorkers), nominated: newTurns(nominateWorkers),
	}
}

// condition asks for a condition to be written, in the place of one that still waits.
func (r *reporter) condition(c step.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, waits := r.waiting[c.UID]
	x.condition = &c
	r.waiting[c.UID] = x
	if !waits {
		r.turnsOf(x).add(c.UID)
	}
}

// nominate asks for a nomination to be written, in the place of one that still waits, which has
// no outcome then.
func (r *reporter) nominate(n job[step.Nomination]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := n.work.UID
	x := r.waiting[uid]
	waits := x.nomination != nil
	x.nomination = &n
	r.waiting[uid] = x
	if !waits {
		r.nominating.Add(1)
		r.turnsOf(x).add(uid)
	}
}

// turnsOf returns where a report waits for its turn.
func (r *reporter) turnsOf(x report) *turns {
	if x.nomination != nil {
		return &r.nominated
	}
	return &r.conditional
}

// drop forgets what waits to be written of a pod that is being bound: it would come
// after the binding, and mislead. It withdraws the call that is under way, and returns it for the
// bind to await; nil when there is none. The condition is kept until bindEnded is called.
func (r *reporter) drop(uid types.UID) *reportCall {
	r.mu.Lock()
	x := r.waiting[uid]
	delete(r.waiting, uid)
	r.unwritten[uid] = x.condition
	call := r.writing[uid]
	r.settle(uid, errBinding)
	r.mu.Unlock()
	if call != nil {
		call.withdraw()
	}
	if x.nomination != nil {
		r.nominating.Add(-1)
		x.nomination.done(errBinding)
	}
	return call
}

// bindEnded writes the condition that a bind has dropped, if the bind has failed: the core says it
// only once. It is called before the core has the outcome, so that what the core says then is newer.
func (r *reporter) bindEnded(uid types.UID, err error) {
	r.mu.Lock()
	c := r.unwritten[uid]
	delete(r.unwritten, uid)
	isNewer := r.waiting[uid].condition != nil
	r.mu.Unlock()
	if err != nil && c != nil && !isNewer {
		r.condition(*c)
	}
}

// next takes the report whose turn it is, nil when none waits. Who takes it calls
// finish when it is written.
func (r *reporter) next(from *turns) *reportCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(from.order) > 0 {
		uid := from.order[0]
		from.order = from.order[1:]
		x, ok := r.waiting[uid]
		if r.writing[uid] == nil && ok && r.turnsOf(x) == from {
			delete(r.waiting, uid)
			call := &reportCall{report: x, uid: uid, ended: make(chan struct{})}
			r.writing[uid] = call
			return call
		}
	}
	return nil
}

// finish records that a report is written, or why it isn't: what has come to wait of the pod since
// has its turn.
func (r *reporter) finish(call *reportCall, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if call.nomination != nil {
		r.nominating.Add(-1)
	}
	delete(r.writing, call.uid)
	if c, binds := r.unwritten[call.uid]; binds && c == nil && err != nil {
		r.unwritten[call.uid] = call.condition
	}
	close(call.ended)
	r.settle(call.uid, err)
	if x, ok := r.waiting[call.uid]; ok {
		r.turnsOf(x).add(call.uid)
	}
}

// outcome is how the writing of a pod's nomination ends.
type outcome struct {
	known chan struct{} // closed when err is set
	err   error
}

// result returns the outcome's error, nil while it isn't known.
func (o *outcome) result() error {
	select {
	case <-o.known:
		return o.err
	default:
		return nil
	}
}

// outcomeOf returns the outcome of the nomination that waits or is being written of a pod, or of
// one that takes its place; success when there is none.
func (r *reporter) outcomeOf(uid types.UID) *outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.settling[uid]
	if !ok {
		o = &outcome{known: make(chan struct{})}
		r.settling[uid] = o
		r.settle(uid, nil)
	}
	return o
}

// settle makes the outcome of a pod's nomination known unless one waits or is being written. The
// caller holds mu.
func (r *reporter) settle(uid types.UID, err error) {
	o, ok := r.settling[uid]
	call := r.writing[uid]
	if ok && r.waiting[uid].nomination == nil && (call == nil || call.nomination == nil) {
		delete(r.settling, uid)
		o.err = err
		close(o.known)
	}
}

// run starts the workers. Nominations have workers and a client of their own, since preemptions wait for
// them and never for conditions.
func (r *reporter) run(ctx context.Context, wg *sync.WaitGroup) {
	r.serve(ctx, wg, conditionWorkers, &r.conditional, r.client)
	r.serve(ctx, wg, nominateWorkers, &r.nominated, r.nominations)
	r.recorder.run(ctx, wg)
}

// serve lets so many workers write reports through a client until the context ends.
func (r *reporter) serve(ctx context.Context, wg *sync.WaitGroup, workers int, from *turns, client kubernetes.Interface) {
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if call := r.next(from); call != nil {
					r.finish(call, r.write(ctx, client, call))
					continue
				}
				select {
				case <-ctx.Done():
				case <-from.signal:
				}
			}
		})
	}
}

// write writes a report, emits the condition's event when that has worked and the pod isn't being
// bound, and reports the nomination's outcome. It returns that of the writing.
func (r *reporter) write(ctx context.Context, client kubernetes.Interface, call *reportCall) error {
	calling, end := call.begin(ctx)
	defer end()
	namespace, name, err := patchStatus(calling, client, call.report)
	err = call.outcome(err)
	if c := call.condition; err == nil && c != nil && c.Event != nil && !call.isWithdrawn() {
		r.event(*c.Event)
	}
	if call.nomination != nil {
		call.nomination.done(err)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !errors.Is(err, errBinding) {
		r.log.Warn("failed to update a pod's status", "pod", namespace+"/"+name, "err", err)
	}
	return err
}

// patchStatus writes a pod's status in one call. The pod's UID in it makes the call fail
// when another pod has the name by now.
func patchStatus(ctx context.Context, client kubernetes.Interface, x report) (namespace, name string, err error) {
	status := map[string]any{}
	var uid types.UID
	if c := x.condition; c != nil {
		uid, namespace, name = c.UID, c.Namespace, c.Name
		status["conditions"] = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: metav1.NewTime(c.Since), LastProbeTime: metav1.Now(), ObservedGeneration: c.Generation,
		}}
	}
	if x.nomination != nil {
		n := x.nomination.work
		uid, namespace, name = n.UID, n.Namespace, n.Name
		if status["nominatedNodeName"] = n.Node; n.Node == "" {
			status["nominatedNodeName"] = nil // removes it
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
	if err != nil {
		return namespace, name, err
	}
	return namespace, name, persist(ctx, func() error {
		_, err := client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}
