package kubelets

import (
	"container/heap"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// This file is when calls are made: a heap of what is due, and the goroutine that gives
// what is due to workers.

// at makes workers make a call at a time, or as soon as one is free after it.
func (k *kubelets) at(when time.Time, job func(context.Context)) {
	k.mu.Lock()
	heap.Push(&k.due, appointment{when, job})
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// loop gives calls that are due to the workers, until the context ends.
func (k *kubelets) loop(ctx context.Context, jobs chan<- func(context.Context)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		k.mu.Lock()
		var next func(context.Context)
		wait := time.Hour
		if len(k.due) > 0 {
			if wait = time.Until(k.due[0].when); wait <= 0 {
				next = heap.Pop(&k.due).(appointment).job
			}
		}
		k.mu.Unlock()
		if next != nil {
			select {
			case jobs <- next:
			case <-ctx.Done():
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
	}
}

// again repeats a call a second later if its failure may pass.
func (k *kubelets) again(err error, job func(context.Context)) {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return
	}
	k.at(time.Now().Add(time.Second), job)
}

// timetable is a heap of appointments, soonest first.
type timetable []appointment

// appointment is a call that is due at a time. Those of one time are made in no particular order.
type appointment struct {
	when time.Time
	job  func(context.Context)
}

func (t timetable) Len() int           { return len(t) }
func (t timetable) Less(i, j int) bool { return t[i].when.Before(t[j].when) }
func (t timetable) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timetable) Push(x any)        { *t = append(*t, x.(appointment)) }
func (t *timetable) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}
