package core

import (
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// A waiting class is woken only by what lets it in, so the words that its pods
// carry would grow old: nodes that were tainted when they were tried have long
// been ready and full. They are brought up to date when nodes have changed, now
// and then, for some pods of each class; and for all pods of a class by the
// leftover sweep.
type words struct {
	old  bool            // nodes have changed since they were last put
	at   time.Time       // when that was
	left []*engine.Class // whose turn is yet to come
}

const (
	// rewordEvery is how often words are brought up to date at most. It costs
	// O(nodes) for each waiting class.
	rewordEvery = 10 * time.Second
	// rewordClasses is how many of them one Step does: others mustn't wait.
	rewordClasses = 4
	// rewordPods is for how many pods of a class: each is a call to the API.
	rewordPods = 100
)

// age takes note of changes to nodes.
func (w *words) age(known bool, changes []cluster.Change) {
	w.old = w.old || !known
	for i := range changes {
		switch changes[i].Op {
		case cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved, cluster.NodeTouched:
			w.old = true
		}
	}
}

// due returns when words are to be brought up to date; zero for never.
func (w *words) due() time.Time {
	if !w.old {
		return time.Time{}
	}
	return w.at.Add(rewordEvery)
}

// reword brings the words of waiting classes up to date when that is due, of some
// in a Step.
func (c *Core) reword(r *step.Ready) {
	if len(c.words.left) == 0 {
		if !c.words.old || c.now.Before(c.words.due()) {
			return
		}
		c.words = words{at: c.now}
		for _, w := range c.queue.Waiting() {
			c.words.left = append(c.words.left, w.Class())
		}
	}
	n := min(len(c.words.left), rewordClasses)
	for _, class := range c.words.left[:n] {
		now := c.queue.StillRejected(class)
		if now == nil || now.Outside() {
			continue // only another attempt can tell
		}
		d := c.sched.Refreshed(class, now)
		if d.RejectsNone() {
			continue // it would fit: the sweep counts that
		}
		c.queue.Refresh(class, d)
		c.tell(class, d.Message(), rewordPods, r)
	}
	c.words.left = c.words.left[n:]
}

// tell puts a message to the pods of a waiting class, or to so many of them.
func (c *Core) tell(class *engine.Class, message string, most int, r *step.Ready) {
	for k, i := range c.queue.Unnominated(class) {
		if k >= most {
			return
		}
		if p := c.pods[i.Pod().UID]; p != nil {
			c.unschedulable(p, v1.PodReasonUnschedulable, message, r)
		}
	}
}
