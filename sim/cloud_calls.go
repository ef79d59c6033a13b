package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is the way from Berth to the cloud. What must hold: calls are made one
// at a time, in the order in which Berth asked, so that a list of groups is never
// older than the last order; and an answer reaches only the process that asked. The live
// edge calls groups side by side, and leaves out of a list those that it called meanwhile.

// cloudQueue is the calls that wait for the one before them.
type cloudQueue struct {
	jobs []cloudJob
	busy bool // a call is under way
	made int  // calls so far; names their latency and faults
	// overlapped is when the last list was made that has an instance in two groups.
	overlapped time.Duration
	// deadline is how long the call under way still waits for an answer that doesn't come.
	deadline time.Duration
}

// cloudJob is a call. It returns what delivers its answer, nil for none.
type cloudJob struct {
	life int // of the process that asks
	call func() (answer func())
}

var errCloud = errors.New("the cloud's API refused the call")

// callCloud queues a call. It is served after half of the cloud's latency and answered
// after the whole; one whose process crashed before it was served is dropped.
func (w *World) callCloud(call func() (answer func())) {
	w.cloud.jobs = append(w.cloud.jobs, cloudJob{w.berth.life, call})
	w.sendCloudCall()
}

// sendCloudCall sends the first call that waits, unless one is under way: the cloud takes one at a time.
func (w *World) sendCloudCall() {
	q := &w.cloud
	if q.busy || len(q.jobs) == 0 {
		return
	}
	q.busy = true
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	q.made++
	half := w.between(w.run.Spec.API.CloudLatency, 500, 2000, "cloud", fmt.Sprint(q.made)) / 2
	w.afterInBackground(half, phaseCalls, func() {
		var answer func()
		if job.life == w.berth.life {
			answer = job.call()
		}
		wait := half + q.deadline
		q.deadline = 0
		w.afterInBackground(wait, phaseCalls, func() {
			if answer != nil && job.life == w.berth.life {
				answer()
			}
			q.busy = false
			w.sendCloudCall()
		})
	})
}

// callScaleUp orders instances.
func (w *World) callScaleUp(s step.ScaleUp, done func(error)) {
	w.callCloud(func() func() {
		name := fmt.Sprint(w.cloud.made)
		if w.faults.hits(w, scenario.CloudError, w.configured(s.Group), name) {
			return func() { done(errCloud) }
		}
		if answer := w.withoutAnswer(s.Group, name, done, func() { _ = w.increaseTarget(s.Group, s.Nodes) }); answer != nil {
			return answer
		}
		err := w.increaseTarget(s.Group, s.Nodes)
		if w.faults.hits(w, scenario.CloudLost, w.configured(s.Group), name) {
			err = errors.New("the cloud's answer was lost")
		}
		return func() { done(err) }
	})
}

// callDeleteInstance deletes a node's instance, or one that isn't a node.
func (w *World) callDeleteInstance(d step.NodeDeletion, done func(error)) {
	w.callCloud(func() func() {
		name := fmt.Sprint(w.cloud.made)
		if w.faults.hits(w, scenario.CloudError, w.configured(d.Group), name) {
			delete(w.berth.leaving, d.Node)
			return func() { done(errCloud) }
		}
		if answer := w.withoutAnswer(d.Group, name, done, func() { _ = w.deleteInstance(d.Group, d) }); answer != nil {
			delete(w.berth.leaving, d.Node)
			return answer
		}
		if w.faults.hits(w, scenario.DeletionFails, w.configured(d.Group), name) {
			if w.chance("deletedAllTheSame", name) < 0.5 {
				_ = w.deleteInstance(d.Group, d)
			} else {
				delete(w.berth.leaving, d.Node)
			}
			return func() { done(errors.New("the instance could not be deleted")) }
		}
		err := w.deleteInstance(d.Group, d)
		if w.faults.hits(w, scenario.CloudLost, w.configured(d.Group), name) {
			err = errors.New("the cloud's answer was lost")
		} else if err != nil {
			delete(w.berth.leaving, d.Node)
		}
		return func() { done(err) }
	})
}

// cloudDeadline is how long a call waits for its answer.
const cloudDeadline = 5 * time.Second

// withoutAnswer returns what delivers, at the deadline, that a call had no answer, and has it
// carried out at once, later or never; nil when the call is answered.
func (w *World) withoutAnswer(group, name string, done func(error), call func()) (answer func()) {
	x := w.faults.thatHits(w, scenario.CloudNoAnswer, w.configured(group), name)
	if x == nil {
		return nil
	}
	w.cloud.deadline = cloudDeadline
	switch luck := w.chance("noAnswer", name); {
	case luck < 1.0/3:
		call()
	case luck < 2.0/3:
		w.after(cmp.Or(x.For.Duration, 30*time.Second), phaseCalls, call)
	}
	return func() {
		done(&nodegroup.UnknownOutcome{Err: errors.New("the cloud's answer hasn't come within its deadline")})
	}
}

// callDecreaseTarget gives up ordered instances that never came. Its answer is the list
// of groups, refused or not.
func (w *World) callDecreaseTarget(t step.TargetDecrease) {
	w.callCloud(func() func() {
		_ = w.decreaseTarget(t.Group, t.Nodes)
		return w.groupsAnswer()
	})
}

// callListGroups lists the groups; a call that fails has no answer.
func (w *World) callListGroups() {
	w.callCloud(func() func() {
		if w.faults.hits(w, scenario.CloudError, "", "look", fmt.Sprint(w.cloud.made)) {
			return nil
		}
		return w.groupsAnswer()
	})
}

// groupsAnswer returns what delivers the groups as the cloud has them now.
func (w *World) groupsAnswer() func() {
	groups, at := step.GroupsSet{Groups: w.listGroups()}, w.now
	return func() {
		for id := range tells(groups.Groups) {
			if g := w.group(id); g != nil { // it may have another name by now
				g.toldAt = at
			}
		}
		w.noteListedNames(groups.Groups)
		w.berth.receive(groups)
	}
}
