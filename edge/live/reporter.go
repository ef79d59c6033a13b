package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
)

// Controller is the reporting controller of events.
const Controller = "berth"

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
	done    func(step.Input)
	log     *slog.Logger
	host    string
	mu      sync.Mutex
	latest  map[types.UID]report
	order   []types.UID
	signal  chan struct{}
	events  chan step.Event
	dropped atomic.Int64
	serial  atomic.Int64
}

// report is what is to be written of a pod; either may be nil.
type report struct {
	condition  *step.Condition
	nomination *step.Nomination
}

const eventBacklog = 50000

func newReporter(client kubernetes.Interface, host string, log *slog.Logger, done func(step.Input)) *reporter {
	return &reporter{
		client: client, log: log, host: host, done: done, latest: map[types.UID]report{},
		signal: make(chan struct{}, 1), events: make(chan step.Event, eventBacklog),
	}
}

func (r *reporter) condition(c step.Condition) {
	r.put(c.UID, func(x *report) { x.condition = &c })
}

func (r *reporter) nominate(n step.Nomination) {
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
		r.done(step.NominationDone{UID: uid, Node: x.nomination.Node, Err: errBinding})
	}
}

func (r *reporter) event(e step.Event) {
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
	serve(ctx, wg, eventWriters, r.events, func(e step.Event) {
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
		r.done(step.NominationDone{UID: n.UID, Node: n.Node, Err: err})
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

func (r *reporter) writeEvent(ctx context.Context, e step.Event) error {
	now := metav1.NowMicro()
	namespace := e.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := v1.EventTypeNormal
	if e.Warning {
		kind = v1.EventTypeWarning
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
		Note:                shorten(e.Message),
	}, metav1.CreateOptions{})
	return err
}

// shorten cuts a text to the API's limit for the note of an event, which is in
// bytes, at a whole character.
func shorten(s string) string {
	const limit, more = 1024, "..."
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(more)], "") + more
}
