package live

import (
	"context"
	"encoding/json"
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

// binder posts bindings, several at a time, and reports each outcome.
type binder struct {
	client    kubernetes.Interface
	work      chan core.Bind
	done      func(core.Input)
	volumes   *volumes // nil where no pod has claims
	extenders Extenders
}

func (b *binder) run(ctx context.Context, workers int, wg *sync.WaitGroup) {
	for range workers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case job := <-b.work:
					if len(job.Writes)+len(job.Claims) == 0 {
						b.done(core.BindDone{UID: job.UID, Err: b.bind(ctx, job)})
						continue
					}
					wg.Go(func() { // others mustn't wait for its volumes
						err := b.volumes.bind(ctx, job)
						if err == nil {
							err = b.bind(ctx, job)
						}
						b.done(core.BindDone{UID: job.UID, Err: err})
					})
				}
			}
		})
	}
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

// reporter writes conditions and events. It has a budget of its own, so that
// binds never wait for it. A newer condition of a pod replaces one not yet
// written; events beyond the backlog are dropped and counted.
type reporter struct {
	client  kubernetes.Interface
	log     *slog.Logger
	host    string
	mu      sync.Mutex
	latest  map[types.UID]core.Condition
	order   []types.UID
	signal  chan struct{}
	events  chan core.Event
	dropped atomic.Int64
	serial  atomic.Int64
}

const eventBacklog = 50000

func newReporter(client kubernetes.Interface, host string, log *slog.Logger) *reporter {
	return &reporter{
		client: client, log: log, host: host, latest: map[types.UID]core.Condition{},
		signal: make(chan struct{}, 1), events: make(chan core.Event, eventBacklog),
	}
}

func (r *reporter) condition(c core.Condition) {
	r.mu.Lock()
	if _, waiting := r.latest[c.UID]; !waiting {
		r.order = append(r.order, c.UID)
	}
	r.latest[c.UID] = c
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// bound drops what was still to be said of a pod's waiting.
func (r *reporter) bound(uid types.UID) {
	r.mu.Lock()
	delete(r.latest, uid)
	r.mu.Unlock()
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
			c, ok := r.next()
			if !ok {
				select {
				case <-ctx.Done():
					return
				case <-r.signal:
				}
				continue
			}
			err := r.writeCondition(ctx, c)
			if err == nil && c.Event != nil {
				r.event(*c.Event)
			}
			if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
				r.log.Warn("a pod's condition could not be written", "pod", c.Namespace+"/"+c.Name, "err", err)
			}
			if ctx.Err() != nil {
				return
			}
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-r.events:
				if err := r.writeEvent(ctx, e); err != nil && ctx.Err() == nil {
					r.dropped.Add(1)
				}
			}
		}
	})
}

func (r *reporter) next() (core.Condition, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 {
		uid := r.order[0]
		r.order = r.order[1:]
		if c, ok := r.latest[uid]; ok {
			delete(r.latest, uid)
			return c, true
		}
	}
	return core.Condition{}, false
}

func (r *reporter) writeCondition(ctx context.Context, c core.Condition) error {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": c.UID},
		"status": map[string]any{"conditions": []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: now, LastProbeTime: now,
		}}},
	})
	if err != nil {
		return err
	}
	return persist(ctx, func() error {
		_, err := r.client.CoreV1().Pods(c.Namespace).Patch(ctx, c.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
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
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case job := <-v.work:
				v.done(core.EvictionDone{UID: job.UID, Node: job.Node, Err: v.evict(ctx, job)})
			}
		}
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

// tainter writes taints, in the order given.
type tainter struct {
	client kubernetes.Interface
	work   chan core.Taint
	done   func(core.Input)
}

func (t *tainter) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case job := <-t.work:
				t.done(core.TaintDone{Node: job.Node, Err: t.write(ctx, job)})
			}
		}
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
