package reporting

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/lifecycle"
)

// This file says when a waiting pod's condition is rewritten though the pod wasn't tried.
// Each rewriting is a call to the API, for many pods at once. The first text with another
// reason is written at once; as long as reasons come and go, the next ones are written at
// intervals that double. A text in which only the numbers of nodes are others waits for
// countsEvery. A refreshed text brings no event: events tell of attempts.

const (
	// firstHold is how long after a condition was rewritten for the first time it may be
	// rewritten with another reason.
	firstHold = 30 * time.Second
	// longestHold is the longest that this becomes.
	longestHold = 8 * time.Minute
	// countsEvery is how long after the condition was written it may be rewritten where only
	// numbers differ.
	countsEvery = 5 * time.Minute
)

// refreshes say when a pod's condition may be rewritten.
type refreshes struct {
	last time.Time     // when the condition was last written, for an attempt or rewritten
	hold time.Duration // how long another reason has to wait from then on
}

// tried records that the condition was written for an attempt.
func (r *refreshes) tried(now time.Time) { r.last = now }

// due returns when a condition may be rewritten. A message with the same reasons as the last is
// one in which only numbers of nodes differ.
func (r *refreshes) due(old, reasons []string) time.Time {
	if slices.Equal(old, reasons) {
		return r.last.Add(max(r.hold, countsEvery))
	}
	return r.last.Add(r.hold)
}

// rewritten records that the condition was rewritten.
func (r *refreshes) rewritten(now time.Time) {
	if now.Sub(r.last) >= 2*longestHold {
		r.hold = 0 // the reasons have stayed the same for long
	}
	r.last, r.hold = now, min(max(firstHold, 2*r.hold), longestHold)
}

// refresh has a pod's condition rewritten with a message that differs from the last, or
// returns when that is due.
func (p *Pod) refresh(t *lifecycle.Turn, obj *v1.Pod, message string, reasons []string) (putOff time.Time) {
	if due := p.refreshes.due(p.said.of(p.condition), reasons); t.Now.Before(due) {
		return due
	}
	p.refreshes.rewritten(t.Now)
	p.say(t, obj, v1.PodReasonUnschedulable, message)
	return time.Time{}
}

// split is a message with its reasons, which are compared for each pod of a class and each new
// message.
type split struct {
	message string
	reasons []string // reasonsOf(message), once asked for
}

// of returns the reasons of a message, which is mostly that of the last call.
func (s *split) of(message string) []string {
	if s.reasons == nil || s.message != message {
		*s = split{message, reasonsOf(message)}
	}
	return s.reasons
}

// reasonsOf returns the parts of a message such as "0/3 nodes are available: 1 Insufficient
// cpu, 2 Insufficient memory." without the numbers of nodes that they begin with, sorted:
// their order goes by the numbers.
func reasonsOf(message string) []string {
	parts := strings.FieldsFunc(message, func(r rune) bool { return r == ',' || r == ':' || r == '.' })
	for i, part := range parts {
		parts[i] = strings.TrimLeft(part, " 0123456789/")
	}
	slices.Sort(parts)
	return parts
}
