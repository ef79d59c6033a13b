package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// binder posts bindings, several at a time, and reports each outcome.
type binder struct {
	client    kubernetes.Interface
	work      chan step.Bind
	done      func(step.Input)
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

func (b *binder) finish(job step.Bind, err error) {
	b.mu.Lock()
	delete(b.jobs, job.UID)
	b.mu.Unlock()
	b.posting.Add(-1)
	b.done(step.BindDone{UID: job.UID, Err: err})
}

// post binds unless the bind was taken back.
func (b *binder) post(ctx context.Context, job step.Bind) {
	err := errTakenBack
	if b.begin(job.UID) {
		err = b.bind(ctx, job)
	}
	b.finish(job, err)
}

func (b *binder) run(ctx context.Context, workers int, wg *sync.WaitGroup) {
	serve(ctx, wg, workers, b.work, func(job step.Bind) {
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
func (b *binder) bind(ctx context.Context, job step.Bind) error {
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
