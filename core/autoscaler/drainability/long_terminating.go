package drainability

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
)

// terminatingSlack is how long after its grace period a terminating pod is still waited for.
const terminatingSlack = 30 * time.Second

// longTerminating: a pod that should have terminated by now counts as gone. Its kubelet may
// never confirm it.
func longTerminating(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if LongTerminating(p, c.Now) {
		return Ignore, "", true
	}
	c.holdsUntil(TerminatesUntil(p))
	return 0, "", false
}

// LongTerminating reports whether a pod is terminating and should be gone by now, the API
// server's time. As in Cluster Autoscaler the grace period counts from the deletion
// timestamp, which the API server has set to the end of that period already: a pod that is
// slow gets it twice.
func LongTerminating(p *cluster.Pod, now time.Time) bool {
	return p.Eviction.Terminating && TerminatesUntil(p).Before(now)
}

// TerminatesUntil returns until when a pod that is terminating is waited for; zero for any other.
func TerminatesUntil(p *cluster.Pod) time.Time {
	if !p.Eviction.Terminating {
		return time.Time{}
	}
	return p.Object.DeletionTimestamp.Add(time.Duration(p.Eviction.Grace)*time.Second + terminatingSlack)
}
