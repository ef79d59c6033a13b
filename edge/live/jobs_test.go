package live

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestPersistRetriesWhatMayPass counts calls of which none succeeds.
func TestPersistRetriesWhatMayPass(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	waits := wait.Backoff{Steps: 5}
	for _, c := range []struct {
		err   error
		calls int
	}{
		{apierrors.NewServiceUnavailable("restarting"), waits.Steps},
		{apierrors.NewTooManyRequests("a budget forbids it", 1), waits.Steps},
		{errors.New("connection refused"), waits.Steps},
		{apierrors.NewNotFound(pods, "p"), 1},
		{apierrors.NewConflict(pods, "p", errors.New("changed")), 1},
		{apierrors.NewForbidden(pods, "p", nil), 1},
		{apierrors.NewUnauthorized("who?"), 1},
		{apierrors.NewBadRequest("what?"), 1},
		{apierrors.NewInvalid(schema.GroupKind{}, "p", nil), 1},
		{apierrors.NewMethodNotSupported(pods, "bind"), 1},
	} {
		calls := 0
		err := persistFor(t.Context(), waits, func() error { calls++; return c.err })
		if err != c.err || calls != c.calls {
			t.Errorf("%v: got %v after %d calls, want %d", c.err, err, calls, c.calls)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	calls := 0
	_ = persistFor(stopped, waits, func() error { calls++; stop(); return errors.New("connection refused") })
	if calls != 1 {
		t.Errorf("%d calls after Berth was told to stop, want no second", calls)
	}
}

// TestSendGivesUpWhenBerthStops fills a backlog that nobody serves.
func TestSendGivesUpWhenBerthStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	backlog := make(chan int, 1)
	send(ctx, backlog, 1)
	stop()
	send(ctx, backlog, 2)
	if got := <-backlog; got != 1 || len(backlog) > 0 {
		t.Errorf("the backlog has %d and %d more, want 1 alone", got, len(backlog))
	}
}

// TestOneWorkerKeepsTheOrderAndReportsEachOutcome has it refuse odd numbers.
func TestOneWorkerKeepsTheOrderAndReportsEachOutcome(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	backlog := make(chan *job[int], 10)
	var wg sync.WaitGroup
	odd := errors.New("odd")
	outcomes := make(chan error)
	var done []int
	for i := range 4 {
		backlog <- &job[int]{i, func(err error) { outcomes <- err }}
	}
	serveJobs(ctx, &wg, 1, backlog, func(_ context.Context, i int) error {
		done = append(done, i)
		if i%2 == 1 {
			return odd
		}
		return nil
	})
	for i := range 4 {
		if err := <-outcomes; (err != nil) != (i%2 == 1) {
			t.Errorf("outcome %d is %v", i, err)
		}
	}
	stop()
	wg.Wait()
	if !slices.Equal(done, []int{0, 1, 2, 3}) {
		t.Errorf("done in the order %v", done)
	}
}
