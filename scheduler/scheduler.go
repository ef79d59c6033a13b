// Package scheduler makes one decision for one pod: where it goes, or why it
// has to wait.
package scheduler

import (
	"slices"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/engine"
	"github.com/berthproject/berth/framework"
	"github.com/berthproject/berth/queue"
)

// Scheduler decides for the pods of its profiles.
type Scheduler struct {
	state     *cluster.State
	engines   map[string]*engine.Engine
	names     []string
	rereaders []framework.Rereader // one of each plugin and profile
}

// New returns a scheduler over a state with an engine per profile.
func New(state *cluster.State, profiles []*framework.Profile, how engine.Options) *Scheduler {
	s := &Scheduler{state: state, engines: map[string]*engine.Engine{}}
	for _, p := range profiles {
		s.engines[p.SchedulerName] = engine.New(state, p, how)
		s.names = append(s.names, p.SchedulerName)
		for i := range p.Plugins {
			if r, ok := p.Plugins[i].Plugin.(framework.Rereader); ok {
				s.rereaders = append(s.rereaders, r)
			}
		}
	}
	slices.Sort(s.names)
	return s
}

// Responsible tells whether the pod names one of the profiles.
func (s *Scheduler) Responsible(p *cluster.Pod) bool {
	return s.engines[p.Object.Spec.SchedulerName] != nil
}

// Engine returns the engine of the pod's profile.
func (s *Scheduler) Engine(p *cluster.Pod) *engine.Engine {
	return s.engines[p.Object.Spec.SchedulerName]
}

// Class returns the pod's class.
func (s *Scheduler) Class(p *cluster.Pod) *engine.Class { return s.Engine(p).Class(p) }

// Gate returns why the pod must not be queued yet, or nil.
func (s *Scheduler) Gate(p *cluster.Pod) *framework.Reason {
	for _, g := range s.Engine(p).Profile().Gates {
		if reason := g.PreEnqueue(p); reason != nil {
			return reason
		}
	}
	return nil
}

// Decision is the outcome for one pod.
type Decision struct {
	Node      *cluster.Node          // where it is now assumed to be, nil when nowhere
	Score     int64                  // of that node
	Diagnosis *engine.Diagnosis      // why nowhere
	Writes    []cluster.ObjectChange // that have to be written before it is bound
	Consult   []string               // nodes that extenders have to be asked about first; nothing is decided then
}

// Decide finds a node for a pod that was popped from the queue and puts it
// there. A class that waits isn't evaluated again.
func (s *Scheduler) Decide(i *queue.Item, q *queue.Queue) Decision {
	e := s.Engine(i.Pod)
	i.Class = e.Class(i.Pod) // workloads may have changed what it reads
	if d := q.StillRejected(i.Class); d != nil {
		if d.Nodes != s.state.Live() {
			*d = *e.Diagnose(i.Class) // the reason stands, its words don't
		}
		return Decision{Diagnosis: d}
	}
	if e.Profile().Consults(i.Pod.Object) {
		if nodes := e.Feasible(i.Class); len(nodes) > 0 {
			return Decision{Consult: nodes}
		}
		return Decision{Diagnosis: e.Diagnose(i.Class)}
	}
	choice, ok := e.Place(i.Class, i.Pod)
	if !ok {
		return Decision{Diagnosis: e.Diagnose(i.Class)}
	}
	return Decision{Node: s.state.Node(choice.Node), Score: choice.Score, Writes: choice.Writes}
}

// DecideAmong places a pod on the best of the nodes that extenders allow, whose
// bonus is added to the node's own score. failed are their reasons against
// others.
func (s *Scheduler) DecideAmong(i *queue.Item, allowed map[string]int64, failed []string) Decision {
	e := s.Engine(i.Pod)
	i.Class = e.Class(i.Pod)
	choice, ok := e.PlaceAmong(i.Class, i.Pod, func(n *cluster.Node) (int64, bool) {
		bonus, ok := allowed[n.Name]
		return bonus, ok
	})
	if !ok {
		d := e.Diagnose(i.Class)
		d.AddOutside(failed)
		return Decision{Diagnosis: d}
	}
	return Decision{Node: s.state.Node(choice.Node), Score: choice.Score, Writes: choice.Writes}
}

// Rereads returns which pods may have another signature after the changes, nil
// when none has.
func (s *Scheduler) Rereads(changes []cluster.Change) func(*cluster.Pod) bool {
	var concern []func(*cluster.Pod) bool
	for i := range changes {
		for _, r := range s.rereaders {
			if f := r.Rereads(&changes[i], s.state); f != nil {
				concern = append(concern, f)
			}
		}
	}
	if concern == nil {
		return nil
	}
	return func(p *cluster.Pod) bool {
		return slices.ContainsFunc(concern, func(f func(*cluster.Pod) bool) bool { return f(p) })
	}
}

// MayHelp asks whether changes may let a waiting class in.
func (s *Scheduler) MayHelp(c *engine.Class, d *engine.Diagnosis, changes []cluster.Change) engine.Help {
	return s.Engine(c.Pod()).MayHelp(c, d, changes)
}

// Diagnose says why a class fits nowhere.
func (s *Scheduler) Diagnose(c *engine.Class) *engine.Diagnosis {
	return s.Engine(c.Pod()).Diagnose(c)
}

// Sweep forgets the classes that no queued pod uses, when many have gathered.
func (s *Scheduler) Sweep(q *queue.Queue, most int) {
	var uses map[*engine.Class]bool
	for _, name := range s.names {
		if s.engines[name].Classes() <= most {
			continue
		}
		if uses == nil {
			uses = q.Uses()
		}
		s.engines[name].Sweep(func(c *engine.Class) bool { return uses[c] })
	}
}

// Trim forgets all classes of engines that hold more than most: for a
// scheduler without a queue, between two uses.
func (s *Scheduler) Trim(most int) {
	for _, name := range s.names {
		if s.engines[name].Classes() > most {
			s.engines[name].Sweep(func(*engine.Class) bool { return false })
		}
	}
}
