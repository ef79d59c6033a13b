package live

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
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
