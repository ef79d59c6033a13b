package live

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/berthproject/berth/core"
)

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
