package live

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// job is a piece of work of a Ready, with what reports its outcome to the core.
// done is called once, by the worker that did the work.
type job[T any] struct {
	work T
	done func(error)
}

// send gives a job to workers. It waits while their backlog is full, and gives up
// when the context ends: a process that stops owes no outcomes.
func send[T any](ctx context.Context, backlog chan<- T, job T) {
	select {
	case backlog <- job:
	case <-ctx.Done():
	}
}

// serve lets so many workers do jobs until the context ends. With one worker, jobs
// are done in the order in which they were sent.
func serve[T any](ctx context.Context, wg *sync.WaitGroup, workers int, backlog <-chan T, do func(T)) {
	for range workers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case job := <-backlog:
					do(job)
				}
			}
		})
	}
}

// serveJobs is serve for work whose outcome is an error.
func serveJobs[T any](ctx context.Context, wg *sync.WaitGroup, workers int, backlog <-chan *job[T], do func(context.Context, T) error) {
	serve(ctx, wg, workers, backlog, func(j *job[T]) { j.done(do(ctx, j.work)) })
}

// retries are for calls whose failure may pass: five attempts within some 2 seconds.
var retries = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 3, Jitter: 0.2, Steps: 5}

// transient reports whether a failure may pass: throttling, time-outs, a server that
// restarts. What the server has understood and refused won't.
func transient(err error) bool {
	return err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) &&
		!apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsBadRequest(err) && !apierrors.IsMethodNotSupported(err)
}

// persist calls f until it succeeds, fails for good, or has been tried often enough,
// and returns its last error.
func persist(ctx context.Context, f func() error) error { return persistFor(ctx, retries, f) }

// persistFor is persist with other waits between the attempts. None is made after ctx has ended.
func persistFor(ctx context.Context, waits wait.Backoff, f func() error) error {
	var last error
	ended := wait.ExponentialBackoffWithContext(ctx, waits, func(context.Context) (bool, error) {
		last = f()
		return !transient(last), nil
	})
	if last != nil {
		return last
	}
	return ended
}

const (
	// awayFor is how long a call is tried again while the API server is away.
	awayFor = 30 * time.Second
	// awayPause is how long after persist has given up it is tried again then.
	awayPause = 2 * time.Second
)

// persistWhileAway is persist that goes on for awayFor while the API server gives no answer, or
// says that it can't serve the call now. client-go waits by itself for as long as a Retry-After
// asks.
func persistWhileAway(ctx context.Context, f func() error) error {
	end := time.Now().Add(awayFor)
	return persistWhile(ctx, func(err error) bool { return away(err) && time.Now().Before(end) }, f)
}

// persistWhile is persist that goes on, until the context ends, while its errors are such.
func persistWhile(ctx context.Context, such func(error) bool, f func() error) error {
	for {
		err := persist(ctx, f)
		if !such(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(awayPause):
		}
	}
}

// away reports whether an error says that the API server can't be reached, or serves no such calls
// for now.
func away(err error) bool {
	if err == nil || !answered(err) {
		return err != nil
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// answered reports whether an error is the API server's answer.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
