package queue

import "time"

// Config are the queue's times. Zero is a value: start from DefaultConfig.
type Config struct {
	// InitialBackoff is how long a pod backs off after its first attempt, and
	// MaxBackoff the limit to which that doubles with each further one
	// (podInitialBackoffSeconds and podMaxBackoffSeconds). With 0 a rejected pod
	// doesn't back off.
	InitialBackoff, MaxBackoff time.Duration
	// Leftover is how long a pod may stay unschedulable before it is tried
	// again without a reason. It is a safety net: a pod that is found schedulable
	// by it is a wake-up that was missed.
	Leftover time.Duration
	// PodGroups has the members of a pod group decided on together; without it each is queued alone.
	PodGroups bool
}

// DefaultConfig returns kube-scheduler's times.
func DefaultConfig() Config {
	return Config{InitialBackoff: time.Second, MaxBackoff: 10 * time.Second, Leftover: 5 * time.Minute}
}

// instant is the shortest time that moves the clock. What the queue has tried again
// by itself, after an error or by the leftover sweep, waits so long at least: at the
// same instant it would end in the same way, again and again.
const instant = time.Nanosecond

// backoff returns how long a pod backs off after so many attempts, which are 1 at
// least.
func (c Config) backoff(attempts int) time.Duration {
	d := min(c.InitialBackoff, c.MaxBackoff)
	for k := 1; k < attempts && 0 < d && d < c.MaxBackoff; k++ {
		d += min(d, c.MaxBackoff-d)
	}
	return d
}

// errorBackoff is backoff after so many errors.
func (c Config) errorBackoff(errors int) time.Duration { return max(c.backoff(errors), instant) }

// leftover returns after which time a class is swept.
func (c Config) leftover() time.Duration { return max(c.Leftover, instant) }
