package queue

import "time"

// Config are the queue's times; the zero value means kube-scheduler's defaults.
type Config struct {
	InitialBackoff time.Duration // default 1 s
	MaxBackoff     time.Duration // default 10 s
	// Leftover is how long a pod may stay unschedulable before it is tried
	// again without a reason (default 5 minutes). It is a safety net: a pod
	// that is found schedulable by it is a wake-up that was missed.
	Leftover time.Duration
}

func (c Config) withDefaults() Config {
	if c.InitialBackoff == 0 {
		c.InitialBackoff = time.Second
	}
	if c.MaxBackoff == 0 {
		c.MaxBackoff = 10 * time.Second
	}
	if c.Leftover == 0 {
		c.Leftover = 5 * time.Minute
	}
	return c
}

// backoff returns how long a pod backs off after so many attempts: it doubles from
// InitialBackoff to MaxBackoff.
func (c Config) backoff(attempts int) time.Duration {
	d := c.InitialBackoff
	for k := 1; k < attempts && d < c.MaxBackoff; k++ {
		d *= 2
	}
	return min(d, c.MaxBackoff)
}
