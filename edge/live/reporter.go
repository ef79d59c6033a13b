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
// nominations, and events (events.go). Its budget is its own, so that binds never
// wait for it.
//
// Of each pod the latest condition and the latest nomination wait to be written, and
// both go in one call. Pods are served in the order in which they came to wait; one
// whose report is replaced keeps its turn.
type reporter struct {
	client kubernetes.Interface
	host   string // reporting instance of events
	log    *slog.Logger

	mu      sync.Mutex
	waiting map[types.UID]report // guarded by mu
	// order has the pods of waiting, each once, and perhaps pods that were dropped;
	// guarded by mu.
	order []types.UID
	// signal holds one token when there may be reports to write.
	signal chan struct{}

	events  chan step.Event
	dropped atomic.Int64 // events
	serial  atomic.Int64 // makes events' names unique
}

// report is what is to be written of a pod; not both are nil.
type report struct {
	condition  *step.Condition
	nomination *job[step.Nomination]
}

// errBinding is the outcome of a nomination that wasn't written since the pod is
// being bound.
var errBinding = errors.New("the pod is being bound")

func newReporter(client kubernetes.Interface, host string, log *slog.Logger) *reporter {
	return &reporter{
		client: client, host: host, log: log, waiting: map[types.UID]report{},
		signal: make(chan struct{}, 1), events: make(chan step.Event, eventBacklog),
	}
}

// condition has a condition written, in the place of one that still waits.
func (r *reporter) condition(c step.Condition) {
	r.put(c.UID, func(x *report) { x.condition = &c })
}

// nominate has a nomination written, in the place of one that still waits, which has
// no outcome then.
func (r *reporter) nominate(n job[step.Nomination]) {
	r.put(n.work.UID, func(x *report) { x.nomination = &n })
}

func (r *reporter) put(uid types.UID, set func(*report)) {
	r.mu.Lock()
	x, waits := r.waiting[uid]
	if !waits {
		r.order = append(r.order, uid)
	}
	set(&x)
	r.waiting[uid] = x
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// drop forgets what waits to be written of a pod that is being bound: it would come
// after the binding, and mislead.
func (r *reporter) drop(uid types.UID) {
	r.mu.Lock()
	x := r.waiting[uid]
	delete(r.waiting, uid)
	r.mu.Unlock()
	if x.nomination != nil {
		x.nomination.done(errBinding)
	}
}

// next takes the report whose turn it is; ok is false when none waits.
func (r *reporter) next() (x report, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 {
		uid := r.order[0]
		r.order = r.order[1:]
		if x, ok := r.waiting[uid]; ok {
			delete(r.waiting, uid)
			return x, true
		}
	}
	return report{}, false
}

func (r *reporter) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		for ctx.Err() == nil {
			if x, ok := r.next(); ok {
				r.write(ctx, x)
				continue
			}
			select {
			case <-ctx.Done():
			case <-r.signal:
			}
		}
	})
	r.runEvents(ctx, wg)
}

// write writes a report, emits the condition's event when that has worked, and
// reports the nomination's outcome.
func (r *reporter) write(ctx context.Context, x report) {
	namespace, name, err := r.patch(ctx, x)
	if err == nil && x.condition != nil && x.condition.Event != nil {
		r.event(*x.condition.Event)
	}
	if x.nomination != nil {
		x.nomination.done(err)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		r.log.Warn("a pod's status could not be written", "pod", namespace+"/"+name, "err", err)
	}
}

// patch writes a pod's status in one call. The pod's UID in it makes the call fail
// when another pod has the name by now.
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
		_, err := r.client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}
