package nodegroups

import "time"

// backoff keeps a group from being asked for nodes too soon after failures, as Cluster
// Autoscaler's exponential backoff does. The zero value has seen no failure.
type backoff struct {
	pause time.Duration // how long the group is left alone after the last failure
	until time.Time     // when that ends
	last  time.Time     // when the last failure was
}

// fail records a failure. The pause is InitialBackoff at first, and after BackoffReset
// without a failure; a failure after the end of a pause doubles it, up to MaxBackoff.
// One during a pause begins the pause anew, since it may be of the same cause.
func (b *backoff) fail(cfg *Config, now time.Time) {
	switch {
	case b.pause == 0 || now.Sub(b.last) > cfg.BackoffReset:
		b.pause = cfg.InitialBackoff
	case now.After(b.until):
		b.pause = min(2*b.pause, cfg.MaxBackoff)
	}
	b.last = now
	b.until = now.Add(b.pause)
}

// active tells whether the group is to be left alone.
func (b *backoff) active(now time.Time) bool { return now.Before(b.until) }
