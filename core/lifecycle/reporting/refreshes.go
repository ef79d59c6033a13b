package reporting

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/lifecycle"
)

// This file says when a waiting pod's condition is rewritten though the pod wasn't tried.
// Each rewriting is a call to the API, for many pods at once. The first text that differs, if only in
// its numbers of nodes, is written with the refresh that finds it, and so is the one after it; as long
// as texts go on changing, the next ones are written at intervals that double. A refreshed text brings
// no event: events tell of attempts.

const (
	// firstHold is how long after a condition was rewritten for the first time it may be
	// rewritten again.
	firstHold = refreshEvery
	// longestHold is the longest that this becomes.
	longestHold = 8 * time.Minute
)

// refreshes say when a pod's condition may be rewritten.
type refreshes struct {
	last time.Time     // when the condition was last written, for an attempt or rewritten
	hold time.Duration // how long another text has to wait from then on
}

// tried records that the condition was written for an attempt.
func (r *refreshes) tried(now time.Time) { r.last = now }

// due returns when a condition may be rewritten.
func (r *refreshes) due() time.Time { return r.last.Add(r.hold) }

// rewritten records that the condition was rewritten.
func (r *refreshes) rewritten(now time.Time) {
	if now.Sub(r.last) >= 2*longestHold {
		r.hold = 0 // the text has stayed the same for long
	}
	r.last, r.hold = now, min(max(firstHold, 2*r.hold), longestHold)
}

// refresh has a pod's condition rewritten with a message that differs from the last, or
// returns when that is due.
func (p *Pod) refresh(t *lifecycle.Turn, obj *v1.Pod, message string) (putOff time.Time) {
	if due := p.refreshes.due(); t.Now.Before(due) {
		return due
	}
	p.refreshes.rewritten(t.Now)
	p.say(t, obj, v1.PodReasonUnschedulable, message)
	return time.Time{}
}
