package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/retry"

	"github.com/berthproject/berth/core"
)

// Controller is the reporting controller of events.
const Controller = "berth"

// retries are for calls whose failure may pass: throttling, time-outs, a
// server that restarts.
var retries = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 3, Jitter: 0.2, Steps: 5}

func transient(err error) bool {
	return err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) &&
		!apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsBadRequest(err) && !apierrors.IsMethodNotSupported(err)
}

// persist calls f until it succeeds, fails for good, or has been tried often
// enough.
func persist(ctx context.Context, f func() error) error {
	return retry.OnError(retries, func(err error) bool { return ctx.Err() == nil && transient(err) }, f)
}

// serve has workers do jobs until the context ends.
func serve[T any](ctx context.Context, wg *sync.WaitGroup, workers int, work <-chan T, do func(T)) {
	for range workers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case job := <-work:
					do(job)
				}
			}
		})
	}
}

// binder posts bindings, several at a time, and reports each outcome.
type binder struct {
	client    kubernetes.Interface
	work      chan core.Bind
	done      func(core.Input)
	volumes   *volumes // nil where no pod has claims
	extenders Extenders
	mu        sync.Mutex
	jobs      map[types.UID]*bindJob // that have no outcome yet
	posting   atomic.Int64           // of them, that wait for nothing but their turn
}

// bindJob is a bind that can be taken back until it is posted.
type bindJob struct {
	posted, back bool
	cancel       context.CancelFunc // of its waiting for volumes
}

// errTakenBack is the outcome of a bind whose node another pod is to have.
var errTakenBack = errors.New("taken back for a pod of higher priority")

// add makes a bind known, so that it can be taken back.
func (b *binder) add(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs == nil {
		b.jobs = map[types.UID]*bindJob{}
	}
	b.jobs[uid] = &bindJob{cancel: func() {}}
	b.posting.Add(1)
}

// busy tells whether binds wait for their turn.
func (b *binder) busy() bool { return b.posting.Load() > binders }

// takeBack cancels a bind unless it was posted; its outcome tells.
func (b *binder) takeBack(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[uid]; j != nil && !j.posted {
		j.back = true
		j.cancel()
	}
}

// begin tells whether a bind may still be posted; from then on it can't be
// taken back.
func (b *binder) begin(uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[uid]
	if j == nil {
		return true
	}
	j.posted = !j.back
	return j.posted
}

// waiting returns the context in which a bind waits for its volumes.
func (b *binder) waiting(ctx context.Context, uid types.UID) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[uid]; j != nil {
		if j.cancel = cancel; j.back {
			cancel()
		}
	}
	return ctx, cancel
}

func (b *binder) finish(job core.Bind, err error) {
	b.mu.Lock()
	delete(b.jobs, job.UID)
	b.mu.Unlock()
	b.posting.Add(-1)
	b.done(core.BindDone{UID: job.UID, Err: err})
}

// post binds unless the bind was taken back.
func (b *binder) post(ctx context.Context, job core.Bind) {
	err := errTakenBack
	if b.begin(job.UID) {
		err = b.bind(ctx, job)
	}
	b.finish(job, err)
}

func (b *binder) run(ctx context.Context, workers int, wg *sync.WaitGroup) {
	serve(ctx, wg, workers, b.work, func(job core.Bind) {
		if len(job.Writes)+len(job.Claims) == 0 {
			b.post(ctx, job)
			return
		}
		wg.Go(func() { // others mustn't wait for its volumes
			waiting, cancel := b.waiting(ctx, job.UID)
			defer cancel()
			b.posting.Add(-1)
			err := b.volumes.bind(waiting, job)
			b.posting.Add(1)
			if err != nil {
				b.finish(job, err)
				return
			}
			b.post(ctx, job)
		})
	})
}

// bind posts one binding. When the API server says that the pod is bound
// already, the question is to which node: an earlier try may have succeeded
// without its answer having come through.
func (b *binder) bind(ctx context.Context, job core.Bind) error {
	if job.Extender {
		return b.extenders.Bind(ctx, job)
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, UID: job.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: job.Node},
	}
	err := persist(ctx, func() error {
		return b.client.CoreV1().Pods(job.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	})
	if !apierrors.IsConflict(err) {
		return err
	}
	pod, getErr := b.client.CoreV1().Pods(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if getErr == nil && pod.UID == job.UID && pod.Spec.NodeName == job.Node {
		return nil
	}
	return err
}

// leftover is the budget of calls that nothing waits for: little while binds or
// preemptions queue up, and as much as they have when none does.
type leftover struct {
	little, full flowcontrol.RateLimiter
	busy         func() bool
}

func newLeftover(little, qps float32, burst int, busy func() bool) *leftover {
	l := &leftover{little: flowcontrol.NewTokenBucketRateLimiter(little, int(2*little)), full: flowcontrol.NewFakeAlwaysRateLimiter(), busy: busy}
	if qps > 0 {
		l.full = flowcontrol.NewTokenBucketRateLimiter(max(qps, little), max(burst, int(2*little)))
	}
	return l
}

func (l *leftover) now() flowcontrol.RateLimiter {
	if l.busy() {
		return l.little
	}
	return l.full
}

func (l *leftover) TryAccept() bool                { return l.now().TryAccept() }
func (l *leftover) Accept()                        { l.now().Accept() }
func (l *leftover) Stop()                          { l.little.Stop(); l.full.Stop() }
func (l *leftover) QPS() float32                   { return l.full.QPS() }
func (l *leftover) Wait(ctx context.Context) error { return l.now().Wait(ctx) }

// reporter writes conditions, nominations and events. It has a budget of its
// own, so that binds never wait for it. What is newer of a pod replaces what
// isn't written yet, and both go in one call; events beyond the backlog are
// dropped and counted.
type reporter struct {
	client  kubernetes.Interface
	done    func(core.Input)
	log     *slog.Logger
	host    string
	mu      sync.Mutex
	latest  map[types.UID]report
	order   []types.UID
	signal  chan struct{}
	events  chan core.Event
	dropped atomic.Int64
	serial  atomic.Int64
}

// report is what is to be written of a pod; either may be nil.
type report struct {
	condition  *core.Condition
	nomination *core.Nomination
}

const eventBacklog = 50000

func newReporter(client kubernetes.Interface, host string, log *slog.Logger, done func(core.Input)) *reporter {
	return &reporter{
		client: client, log: log, host: host, done: done, latest: map[types.UID]report{},
		signal: make(chan struct{}, 1), events: make(chan core.Event, eventBacklog),
	}
}

func (r *reporter) condition(c core.Condition) {
	r.put(c.UID, func(x *report) { x.condition = &c })
}

func (r *reporter) nominate(n core.Nomination) {
	r.put(n.UID, func(x *report) { x.nomination = &n })
}

func (r *reporter) put(uid types.UID, set func(*report)) {
	r.mu.Lock()
	x, waiting := r.latest[uid]
	if !waiting {
		r.order = append(r.order, uid)
	}
	set(&x)
	r.latest[uid] = x
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// errBinding is the outcome of a nomination that a bind made needless.
var errBinding = errors.New("the pod is being bound")

// bound drops what was still to be said of a pod's waiting.
func (r *reporter) bound(uid types.UID) {
	r.mu.Lock()
	x := r.latest[uid]
	delete(r.latest, uid)
	r.mu.Unlock()
	if x.nomination != nil {
		r.done(core.NominationDone{UID: uid, Node: x.nomination.Node, Err: errBinding})
	}
}

func (r *reporter) event(e core.Event) {
	select {
	case r.events <- e:
	default:
		r.dropped.Add(1)
	}
}

func (r *reporter) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			x, ok := r.next()
			if !ok {
				select {
				case <-ctx.Done():
					return
				case <-r.signal:
				}
				continue
			}
			r.write(ctx, x)
			if ctx.Err() != nil {
				return
			}
		}
	})
	serve(ctx, wg, eventWriters, r.events, func(e core.Event) {
		if err := r.writeEvent(ctx, e); err != nil && ctx.Err() == nil {
			r.dropped.Add(1)
		}
	})
}

func (r *reporter) next() (report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 {
		uid := r.order[0]
		r.order = r.order[1:]
		if x, ok := r.latest[uid]; ok {
			delete(r.latest, uid)
			return x, true
		}
	}
	return report{}, false
}

// write patches the status of a pod and tells how that went.
func (r *reporter) write(ctx context.Context, x report) {
	namespace, name, err := r.patch(ctx, x)
	if err == nil && x.condition != nil && x.condition.Event != nil {
		r.event(*x.condition.Event)
	}
	if n := x.nomination; n != nil {
		r.done(core.NominationDone{UID: n.UID, Node: n.Node, Err: err})
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		r.log.Warn("a pod's status could not be written", "pod", namespace+"/"+name, "err", err)
	}
}

func (r *reporter) patch(ctx context.Context, x report) (namespace, name string, err error) {
	now := metav1.Now()
	status := map[string]any{}
	var uid types.UID
	if c := x.condition; c != nil {
		uid, namespace, name = c.UID, c.Namespace, c.Name
		status["conditions"] = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: now, LastProbeTime: now,
		}}
	}
	if n := x.nomination; n != nil {
		uid, namespace, name = n.UID, n.Namespace, n.Name
		if status["nominatedNodeName"] = n.Node; n.Node == "" {
			status["nominatedNodeName"] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
	if err != nil {
		return namespace, name, err
	}
	return namespace, name, persist(ctx, func() error {
		_, err := r.client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

func (r *reporter) writeEvent(ctx context.Context, e core.Event) error {
	now := metav1.NowMicro()
	namespace := e.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := v1.EventTypeNormal
	if e.Warning {
		kind = v1.EventTypeWarning
	}
	note := e.Message
	if len(note) > 1024 { // the API's limit
		note = note[:1021] + "..."
	}
	_, err := r.client.EventsV1().Events(namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x.%x", e.Name, now.UnixNano(), r.serial.Add(1))},
		EventTime:           now,
		ReportingController: Controller,
		ReportingInstance:   r.host,
		Regarding:           v1.ObjectReference{Kind: e.Kind, APIVersion: "v1", Namespace: e.Namespace, Name: e.Name, UID: e.UID},
		Type:                kind,
		Reason:              e.Reason,
		Action:              e.Action,
		Note:                note,
	}, metav1.CreateOptions{})
	return err
}

// evictor posts evictions and reports each outcome. A disruption budget that
// refuses one answers "too many requests", which is tried again for a while.
type evictor struct {
	client kubernetes.Interface
	work   chan core.Eviction
	done   func(core.Input)
}

func (v *evictor) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, 1, v.work, func(job core.Eviction) {
		v.done(core.EvictionDone{UID: job.UID, Node: job.Node, Err: v.evict(ctx, job)})
	})
}

func (v *evictor) evict(ctx context.Context, job core.Eviction) error {
	err := persist(ctx, func() error {
		return v.client.PolicyV1().Evictions(job.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &job.UID}},
		})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // that pod is gone
	}
	return err
}

// preemptor tells victims to leave their nodes, several at a time, and reports
// each outcome.
type preemptor struct {
	client  kubernetes.Interface
	work    chan core.Preemption
	done    func(core.Input)
	telling atomic.Int64
}

func (p *preemptor) add(ctx context.Context, job core.Preemption) error {
	p.telling.Add(1)
	return send(ctx, p.work, job)
}

// busy tells whether victims wait for their turn to be told.
func (p *preemptor) busy() bool { return p.telling.Load() > preemptors }

func (p *preemptor) run(ctx context.Context, workers int, wg *sync.WaitGroup) {
	serve(ctx, wg, workers, p.work, func(job core.Preemption) {
		err := p.preempt(ctx, job)
		p.telling.Add(-1)
		p.done(core.PreemptionDone{UID: job.UID, By: job.By, Err: err})
	})
}

// preempt writes the condition first, so that whoever sees the pod go knows why.
// Another pod of that name is left alone.
func (p *preemptor) preempt(ctx context.Context, job core.Preemption) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": job.UID},
		"status": map[string]any{"conditions": []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, Message: job.Message, LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		return err
	}
	pods := p.client.CoreV1().Pods(job.Namespace)
	err = persist(ctx, func() error {
		_, err := pods.Patch(ctx, job.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	if err == nil {
		err = persist(ctx, func() error {
			return pods.Delete(ctx, job.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &job.UID}})
		})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // that pod is gone
	}
	return err
}

// tainter writes taints, in the order given.
type tainter struct {
	client kubernetes.Interface
	work   chan core.Taint
	done   func(core.Input)
}

func (t *tainter) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, 1, t.work, func(job core.Taint) {
		t.done(core.TaintDone{Node: job.Node, Err: t.write(ctx, job)})
	})
}

func (t *tainter) write(ctx context.Context, job core.Taint) error {
	attempt := func() error {
		n, err := t.client.CoreV1().Nodes().Get(ctx, job.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var taints []v1.Taint
		for _, x := range n.Spec.Taints {
			if x.Key != job.Taint.Key {
				taints = append(taints, x)
			}
		}
		if !job.Remove {
			taints = append(taints, job.Taint)
		}
		n.Spec.Taints = taints
		_, err = t.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	}
	err := persist(ctx, func() error { return retry.RetryOnConflict(retry.DefaultBackoff, attempt) })
	if job.Remove && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
