package nodegroups

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// backoff keeps a group from being asked for nodes too soon after failures of one class,
// as Cluster Autoscaler's exponential backoff does. The zero value has seen no failure.
type backoff struct {
	pause  time.Duration // how long the group is left alone after the last failure
	until  time.Time     // when that ends
	last   time.Time     // when the last failure was
	code   string        // the kind of the failure (step.ScaleUpFailure)
	reason string        // why it failed
}

// fail records a failure. The pause is InitialBackoff at first, and after BackoffReset
// without a failure; a failure after the end of a pause doubles it, up to MaxBackoff.
// One during a pause begins the pause anew, since it may be of the same cause.
func (b *backoff) fail(cfg *Config, now time.Time, code, reason string) {
	switch {
	case b.pause == 0 || now.Sub(b.last) > cfg.BackoffReset:
		b.pause = cfg.InitialBackoff
	case now.After(b.until):
		b.pause = min(2*b.pause, cfg.MaxBackoff)
	}
	b.last = now
	b.until = now.Add(b.pause)
	b.code, b.reason = code, reason
}

// active reports whether the group is to be left alone.
func (b *backoff) active(now time.Time) bool { return now.Before(b.until) }

// backoffs are a group's, by class of failure: stock-outs that last for hours don't make
// the pause longer that follows one call which the provider didn't answer.
type backoffs [nodegroup.ErrorClasses]backoff

// active reports whether the group is to be left alone for failures of any class.
func (b *backoffs) active(now time.Time) bool {
	_, c := b.longest()
	return c.active(now)
}

// longest returns the backoff that ends last.
func (b *backoffs) longest() (nodegroup.ErrorClass, *backoff) {
	at := nodegroup.OtherError
	for class := range b {
		if b[class].until.After(b[at].until) {
			at = nodegroup.ErrorClass(class)
		}
	}
	return at, &b[at]
}
