package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/core/step"
)

// binder posts bindings, several at a time. A bind whose pod has claims waits for
// its volumes and devices first, and one whose pod is being reported on for that call, in a goroutine
// of its own, so that others needn't.
//
// A bind is added before it is sent to the backlog, can be cancelled until it is
// posted, and is forgotten when its outcome is reported:
//
//	added ──(ready)──▶ posted ──▶ done(nil or the API's error)
//	  └─── cancelled ───────────▶ done(errCancelled)
type binder struct {
	client    kubernetes.Interface
	backlog   chan *bindJob
	volumes   *volumeBinder // set before run
	devices   *deviceBinder // set before run
	extenders Extenders     // nil when there are none
	// queued counts binds that wait for nothing but their turn, or are being
	// posted: those that wait for volumes, devices or a report aren't among them.
	queued *atomic.Int64
	// stalled is called, by any worker, for each stage of a bind that has had no outcome for
	// stalledAfter, with its last error. Set before run.
	stalled func(bind step.Bind, err error)

	mu   sync.Mutex
	jobs map[types.UID]*bindJob // the last of each pod, until its outcome; guarded by mu
}

// bindJob is a bind without an outcome.
type bindJob struct {
	job[step.Bind]
	report *reportCall   // of the pod, which ends before the bind is posted; may be nil
	claims *claimsOfBind // of a bind with devices, once they are prepared
	// Guarded by the binder's mu. At most one of the two is true.
	posted, cancelled bool
	stopWaiting       context.CancelFunc // nil when it doesn't wait
}

// errCancelled is the outcome of a bind that was taken back.
var errCancelled = errors.New("withdrawn in favor of a pod of higher priority")

// newBinder returns a binder that reports no stall and waits for no volumes until its fields say so.
// queued is shared with the limiter of reports.
func newBinder(client kubernetes.Interface, extenders Extenders, queued *atomic.Int64) *binder {
	return &binder{client: client, extenders: extenders, queued: queued, stalled: func(step.Bind, error) {}, backlog: make(chan *bindJob, 1<<16), jobs: map[types.UID]*bindJob{}}
}

// add makes a bind known, so that it can be cancelled, and returns what is to be
// sent to the backlog.
func (b *binder) add(bind step.Bind, done func(error)) *bindJob {
	j := &bindJob{job: job[step.Bind]{bind, done}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs[bind.UID] = j
	b.queued.Add(1)
	return j
}

// cancel takes a bind back unless it was posted; its outcome tells. A bind that
// isn't known has its outcome already.
func (b *binder) cancel(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[uid]
	if j == nil || j.posted {
		return
	}
	j.cancelled = true
	if j.stopWaiting != nil {
		j.stopWaiting()
	}
}

// beginPost reports whether a bind may still be posted; from then on it can't be
// cancelled.
func (b *binder) beginPost(j *bindJob) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.posted = !j.cancelled
	return j.posted
}

// waitContext returns the context in which a bind waits until it is ready, which
// ends when the bind is cancelled.
func (b *binder) waitContext(ctx context.Context, j *bindJob) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.stopWaiting = stop; j.cancelled {
		stop()
	}
	return ctx, stop
}

// finish forgets a bind and reports its outcome.
func (b *binder) finish(j *bindJob, err error) {
	b.mu.Lock()
	if b.jobs[j.work.UID] == j {
		delete(b.jobs, j.work.UID)
	}
	b.mu.Unlock()
	b.queued.Add(-1)
	j.done(err)
}

// run starts the workers. Binds that have something to wait for get a goroutine of their own, so that
// no worker stands still for them.
func (b *binder) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, bindWorkers, b.backlog, func(j *bindJob) {
		if !j.hasVolumes() && !j.hasDevices() && j.report == nil {
			b.post(ctx, j)
			return
		}
		wg.Go(func() { b.postWhenReady(ctx, j) })
	})
}

// post binds unless the bind was cancelled.
func (b *binder) post(ctx context.Context, j *bindJob) {
	err := errCancelled
	if b.beginPost(j) {
		err = b.bind(ctx, j.work)
	}
	b.end(ctx, j, err)
}

// end reports the outcome of a bind, after what it has written of claims was taken back if the bind has
// failed, and after the core was told of what the API has of them.
func (b *binder) end(ctx context.Context, j *bindJob, err error) {
	if j.claims != nil {
		if err != nil {
			err = errors.Join(err, b.devices.takeBack(ctx, j.claims))
		}
		b.devices.settle(ctx, j.claims)
	}
	b.finish(j, err)
}

// hasVolumes reports whether a bind waits for volumes.
func (j *bindJob) hasVolumes() bool { return len(j.work.Writes)+len(j.work.Claims) > 0 }

// hasDevices reports whether a bind has claims with devices.
func (j *bindJob) hasDevices() bool { return len(j.work.DeviceClaims) > 0 }

// postWhenReady binds when the pod's volumes are bound, its devices are ready and no report of it is
// being written.
func (b *binder) postWhenReady(ctx context.Context, j *bindJob) {
	waiting, stop := b.waitContext(ctx, j)
	defer stop()
	b.queued.Add(-1)
	var err error
	if j.hasVolumes() {
		err = b.volumes.bindClaims(waiting, j.work)
	}
	if err == nil && j.hasDevices() {
		j.claims, err = b.devices.prepare(ctx, waiting, &j.work)
	}
	if err == nil {
		j.report.await(waiting)
	}
	b.queued.Add(1)
	if err != nil {
		b.end(ctx, j, err)
		return
	}
	b.post(ctx, j)
}

// bind posts one binding. An attempt without an answer may have succeeded, or may still reach the
// API server: had it failed, the pod's room would be another's at once. So it is posted again, to the
// same node, until there is an answer. If that is an error the question is where the pod is, since
// an earlier attempt may have bound it, or an extender that gave no answer. An error is no answer to
// that: an API server that has just come back forbids everything until it has read who may do what.
//
// A worker isn't held up for ever, though. After giveUpAfter an API server that answers, but that it
// can't serve the binding (a webhook may say so of one pod), is asked where the pod is. If reading
// pods stays forbidden for as long, the bind has failed; if it was carried out, the pod's update tells.
func (b *binder) bind(ctx context.Context, bind step.Bind) error {
	pods := b.client.CoreV1().Pods(bind.Namespace)
	var err error
	doubt := bind.Extender
	if bind.Extender {
		err = b.extenders.Bind(ctx, bind)
	} else {
		binding := &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: bind.Namespace, Name: bind.Name, UID: bind.UID},
			Target:     v1.ObjectReference{Kind: "Node", Name: bind.Node},
		}
		stalled := b.stallOf(bind)
		err = persistWhile(ctx, func(err error) bool { return away(err) && !(stalled(err) && answered(err)) }, func() error {
			err := pods.Bind(ctx, binding, metav1.CreateOptions{})
			doubt = doubt || transient(err) || apierrors.IsConflict(err)
			return err
		})
	}
	if err == nil || !doubt {
		return err
	}
	var pod *v1.Pod
	stalled := b.stallOf(bind)
	unknown := func(err error) bool {
		return err != nil && !apierrors.IsNotFound(err) && !(stalled(err) && apierrors.IsForbidden(err))
	}
	getErr := persistWhile(ctx, unknown, func() (err error) {
		pod, err = pods.Get(ctx, bind.Name, metav1.GetOptions{})
		return err
	})
	if getErr == nil && pod.UID == bind.UID && pod.Spec.NodeName == bind.Node {
		return nil
	}
	return err
}

const (
	// stalledAfter is after how long a bind without an outcome is reported.
	stalledAfter = time.Minute
	// giveUpAfter is for how long the same question is put again to an API server that answers.
	giveUpAfter = 5 * time.Minute
)

// stallOf begins to measure how long a stage of a bind takes. What it returns is told of each error
// that leaves the stage without an outcome, and reports whether the stage has taken giveUpAfter.
func (b *binder) stallOf(bind step.Bind) func(err error) bool {
	begun, reported := time.Now(), false
	return func(err error) bool {
		took := time.Since(begun)
		if took >= stalledAfter && !reported {
			reported = true
			b.stalled(bind, err)
		}
		return took >= giveUpAfter
	}
}
