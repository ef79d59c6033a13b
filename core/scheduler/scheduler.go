// Package scheduler makes one decision for one pod: where it goes, or why it has to
// wait, and who has to leave a node for it.
package scheduler

// This file holds the profiles' engines and the questions that concern no attempt;
// decide.go makes decisions, postfilter.go those about pods that no node takes.
// The scheduler remembers nothing of pods: which wait is the queue's to know, where
// they are and are nominated to is in the state.

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/weighing"
)

// Scheduler decides for the pods of its profiles.
type Scheduler struct {
	state         *cluster.State
	engines       map[string]*engine.Engine // by schedulerName
	names         []string                  // of the profiles, sorted
	reclassifiers []framework.Reclassifier  // one of each plugin and profile
	// Leaving reports whether a pod was told to leave its node for another, before
	// the API shows it terminating.
	Leaving func(types.UID) bool
	// Gone reports whether there is no pod of a UID any more.
	Gone func(types.UID) bool
	// Reserved reports whether a place is kept for a pod on a node that is coming, and Asking
	// whether it asks for one (core/lifecycle/reservation). Such a pod preempts nobody.
	Reserved, Asking func(types.UID) bool
	// Weigh decides whether a pod that could preempt the victims of a candidate asks for a place on
	// a coming node first; nil when it preempts and nothing else was possible.
	Weigh func(*cluster.Pod, *engine.Candidate) *weighing.Result
	// WeighGroup is Weigh for the members of a pod group that have no node, and the victims without which
	// it finds places.
	WeighGroup func([]Member, *framework.Victims) *weighing.Result
	// MaxHeld is how much each engine may hold before the classes are forgotten that nobody needs
	// (ForgetClasses).
	MaxHeld engine.Size

	forgot forgot
}

// New returns a scheduler over a state with an engine per profile, or an error
// that names the profile for which there can be no engine.
func New(state *cluster.State, profiles []*framework.Profile, how engine.Options) (*Scheduler, error) {
	s := &Scheduler{state: state, engines: map[string]*engine.Engine{}, MaxHeld: DefaultMaxHeld(),
		Leaving:  func(types.UID) bool { return false },
		Gone:     func(types.UID) bool { return false },
		Reserved: func(types.UID) bool { return false },
		Asking:   func(types.UID) bool { return false },
		Weigh:    func(*cluster.Pod, *engine.Candidate) *weighing.Result { return nil },

		WeighGroup: func([]Member, *framework.Victims) *weighing.Result { return nil }}
	for _, p := range profiles {
		e, err := engine.New(state, p, how)
		if err != nil {
			return nil, err
		}
		s.engines[p.SchedulerName] = e
		s.names = append(s.names, p.SchedulerName)
		for i := range p.Plugins {
			if r, ok := p.Plugins[i].Plugin.(framework.Reclassifier); ok {
				s.reclassifiers = append(s.reclassifiers, r)
			}
		}
	}
	slices.Sort(s.names)
	return s, nil
}

// Responsible reports whether the pod names one of the profiles. The other methods
// are for such pods only.
func (s *Scheduler) Responsible(pod *cluster.Pod) bool {
	return s.engines[pod.Object.Spec.SchedulerName] != nil
}

// Engine returns the engine of the pod's profile.
func (s *Scheduler) Engine(pod *cluster.Pod) *engine.Engine {
	return s.engines[pod.Object.Spec.SchedulerName]
}

// EngineOf returns the engine of a profile, by its name.
func (s *Scheduler) EngineOf(profile string) *engine.Engine { return s.engines[profile] }

// Profile returns the pod's profile.
func (s *Scheduler) Profile(pod *cluster.Pod) *framework.Profile { return s.Engine(pod).Profile() }

// Class returns the pod's class, as the pod is signed now.
func (s *Scheduler) Class(pod *cluster.Pod) *engine.Class { return s.Engine(pod).Class(pod) }

// Evaluations calls f for each profile, by name, with how many pods each of its
// plugins was asked about.
func (s *Scheduler) Evaluations(f func(profile string, of engine.Evaluations)) {
	for _, name := range s.names {
		for _, x := range s.engines[name].Evaluations() {
			f(name, x)
		}
	}
}

// Gate returns why the pod must not be queued yet, or nil.
func (s *Scheduler) Gate(pod *cluster.Pod) *framework.Reason {
	for _, g := range s.Engine(pod).Profile().Gates {
		if why := g.PreEnqueue(pod, s.state); why != nil {
			return why
		}
	}
	return nil
}

// Diagnose says why a class fits on no node.
func (s *Scheduler) Diagnose(c *engine.Class) *engine.Diagnosis {
	return s.Engine(c.Pod()).Diagnose(c)
}

// Refreshed returns a class's diagnosis with its messages as the cluster is now.
func (s *Scheduler) Refreshed(c *engine.Class, d *engine.Diagnosis) *engine.Diagnosis {
	return s.Engine(c.Pod()).Refreshed(c, d)
}

// MayHelp returns what changes do for a waiting class, and the diagnosis to keep
// (engine.MayHelp).
func (s *Scheduler) MayHelp(c *engine.Class, d *engine.Diagnosis, changes []cluster.Change) (engine.Help, *engine.Diagnosis) {
	return s.Engine(c.Pod()).MayHelp(c, d, changes)
}

// Reclassifies returns which pods may have another signature after the changes, nil
// when none has.
func (s *Scheduler) Reclassifies(changes []cluster.Change) func(*cluster.Pod) bool {
	var concern []func(*cluster.Pod) bool
	for i := range changes {
		for _, r := range s.reclassifiers {
			if f := r.Reclassifies(&changes[i], s.state); f != nil {
				concern = append(concern, f)
			}
		}
	}
	if concern == nil {
		return nil
	}
	return func(pod *cluster.Pod) bool {
		return slices.ContainsFunc(concern, func(f func(*cluster.Pod) bool) bool { return f(pod) })
	}
}
