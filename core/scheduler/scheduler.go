// Package scheduler makes one decision for one pod: where it goes, or why it
// has to wait.
package scheduler

import (
	"slices"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
)

// Scheduler decides for the pods of its profiles.
type Scheduler struct {
	state         *cluster.State
	engines       map[string]*engine.Engine
	names         []string
	reclassifiers []framework.Reclassifier // one of each plugin and profile
	// Leaving tells whether a pod was told to leave its node for another.
	Leaving func(types.UID) bool
}

// New returns a scheduler over a state with an engine per profile, or an error
// that names the profile for which there can be no engine.
func New(state *cluster.State, profiles []*framework.Profile, how engine.Options) (*Scheduler, error) {
	s := &Scheduler{state: state, engines: map[string]*engine.Engine{}, Leaving: func(types.UID) bool { return false }}
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
	Score     int64                  // of that node, 0 when it was nominated there
	Account   engine.Account         // how that node was chosen
	Diagnosis *engine.Diagnosis      // why its class fits nowhere
	Message   string                 // the same of the pod, as the condition has it
	Victims   *engine.Candidate      // what has to leave the node that it is now nominated to
	Writes    []cluster.ObjectChange // that have to be written before it is bound
	Consult   []string               // nodes that extenders have to be asked about first; nothing is decided then
	// Candidates are what extenders have to be asked about before others are told
	// to leave; nothing is decided then.
	Candidates []engine.Candidate
}

// Decide finds a node for a pod that was popped from the queue and puts it
// there, or finds out who has to leave one for it. A class that waits isn't
// evaluated again.
func (s *Scheduler) Decide(i *queue.Item, q *queue.Queue) (d Decision) {
	e := s.Engine(i.Pod)
	to := s.withdraw(i)
	defer func() {
		e.CountFiltered(i.Class)
		if d.Node != nil {
			e.CountScored(i.Class)
		}
	}()
	consults := e.Profile().Consults(i.Pod.Object)
	if n := s.state.NodeByName(to); n != nil && !consults && e.FitsOn(i.Class, n) {
		return Decision{Node: n, Account: engine.Account{RunnerUp: cluster.NoNode}, Writes: e.PlaceOn(i.Pod, n.Index)}
	}
	if d := q.StillRejected(i.Class); d != nil {
		if d.Nodes != s.state.Live() {
			s.Reword(i.Class, d) // the reason stands, its words don't
		}
		return s.postFilter(i, to, d)
	}
	if consults {
		if nodes := e.Feasible(i.Class); len(nodes) > 0 {
			s.state.Nominate(i.Pod, to)
			return Decision{Consult: nodes}
		}
		return s.postFilter(i, to, nil)
	}
	choice, account, ok := e.PlaceWithAccount(i.Class, i.Pod)
	if !ok {
		return s.postFilter(i, to, nil)
	}
	return Decision{Node: s.state.Node(choice.Node), Score: choice.Score, Writes: choice.Writes, Account: account}
}

// DecideAmong places a pod on the best of the nodes that extenders allow, whose
// bonus is added to the node's own score. failed are their reasons against
// others.
func (s *Scheduler) DecideAmong(i *queue.Item, allowed map[string]int64, failed []string) Decision {
	e := s.Engine(i.Pod)
	to := s.withdraw(i)
	choice, account, ok := e.PlaceAmong(i.Class, i.Pod, func(n *cluster.Node) (int64, bool) {
		bonus, ok := allowed[n.Name]
		return bonus, ok
	})
	if !ok {
		d := e.Diagnose(i.Class)
		d.AddOutside(failed)
		return s.postFilter(i, to, d)
	}
	return Decision{Node: s.state.Node(choice.Node), Score: choice.Score, Writes: choice.Writes, Account: account}
}

// withdraw takes back the nomination of a pod that is to be decided on, and
// returns to which node it was: what is kept for it is no obstacle to it. It
// signs the pod anew, since workloads may have changed what it reads.
func (s *Scheduler) withdraw(i *queue.Item) string {
	to := s.state.NominatedTo(i.Pod.UID)
	s.state.Nominate(i.Pod, "")
	i.Class = s.Engine(i.Pod).Class(i.Pod)
	return to
}

// postFilter decides for a pod that no node takes, of whose class d says why if
// that is known already. A pod that was nominated to a node stays so while pods
// that had to leave it are still there (DefaultPreemption's
// PodEligibleToPreemptOthers); else it may have others leave the node where the
// least has to go.
func (s *Scheduler) postFilter(i *queue.Item, to string, d *engine.Diagnosis) Decision {
	e := s.Engine(i.Pod)
	x := e.Profile().Preempter
	able := x != nil && x.Eligible(i.Pod) == nil
	var out Decision
	awaits := able && s.awaits(i, to)
	if awaits {
		s.state.Nominate(i.Pod, to)
	} else if able && (d == nil || !d.NoVictims) && e.Profile().ConsultsVictims(i.Pod.Object) {
		if list := e.Candidates(i.Class); list != nil {
			s.state.Nominate(i.Pod, to)
			return Decision{Candidates: list}
		}
	} else if able && (d == nil || !d.NoVictims) {
		if best, ok := e.Preempt(i.Class); ok {
			out.Victims = &best
			s.state.Nominate(i.Pod, s.state.Node(best.Node).Name)
		}
	}
	return s.refuse(i, d, out, awaits)
}

// DecideVictims has the victims that extenders agreed to leave the node where the
// least has to go. What has become of them since they were asked counts: only
// pods of lower priority that are still on the node do.
func (s *Scheduler) DecideVictims(i *queue.Item, agreed []step.Agreed) Decision {
	e := s.Engine(i.Pod)
	s.withdraw(i)
	var out Decision
	var list []engine.Candidate
	for _, a := range agreed {
		n := s.state.NodeByName(a.Node)
		if n == nil {
			continue
		}
		c := engine.Candidate{Node: n.Index, Victims: framework.Victims{Violations: a.Violations}}
		for _, p := range n.Pods {
			if p.Priority < i.Pod.Priority && slices.Contains(a.Pods, p.UID) {
				c.Pods = append(c.Pods, p)
			}
		}
		if c.Pods != nil {
			list = append(list, c)
		}
	}
	if best, ok := e.Cheapest(i.Class, list); ok {
		out.Victims = &best
		s.state.Nominate(i.Pod, s.state.Node(best.Node).Name)
	}
	d := e.Diagnose(i.Class)
	if out.Victims == nil {
		d.Preemption = "no candidate node for preemption"
		d.AddOutside(nil) // any change may have the extenders think again
	}
	return s.refuse(i, d, out, false)
}

// refuse words the decision for a pod that no node takes now.
func (s *Scheduler) refuse(i *queue.Item, d *engine.Diagnosis, out Decision, awaits bool) Decision {
	e := s.Engine(i.Pod)
	x := e.Profile().Preempter
	if d == nil {
		d = e.Diagnose(i.Class)
	}
	if x != nil && !d.NoVictims && !awaits && out.Victims == nil {
		d.NoVictims = true
		if d.Preemption == "" {
			d.Preemption = e.DiagnosePreemption(i.Class)
		}
	}
	own := *d
	switch {
	case awaits:
		own.Preemption = "not eligible due to a terminating pod on the nominated node."
	case out.Victims != nil:
		own.Preemption = ""
	}
	out.Diagnosis, out.Message = d, own.Message()
	return out
}

// awaits tells whether pods of lower priority are on their way out of the node
// that a pod was nominated to, and that can be enough.
func (s *Scheduler) awaits(i *queue.Item, to string) bool {
	n := s.state.NodeByName(to)
	return n != nil && s.Engine(i.Pod).CodeOn(i.Class, n) != framework.Final &&
		slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool { return p.Priority < i.Pod.Priority && (preempted(p) || s.Leaving(p.UID)) })
}

// preempted tells whether a pod is being deleted because a scheduler wanted so.
func preempted(p *cluster.Pod) bool {
	if p.Object.DeletionTimestamp == nil {
		return false
	}
	for _, c := range p.Object.Status.Conditions {
		if c.Type == v1.DisruptionTarget {
			return c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// Awaited tells whether the node that a waiting pod is nominated to takes it now.
func (s *Scheduler) Awaited(i *queue.Item) bool {
	n := s.state.NodeByName(s.state.NominatedTo(i.Pod.UID))
	if n == nil {
		return false
	}
	mark := s.state.Mark()
	defer s.state.Rollback(mark)
	s.state.Nominate(i.Pod, "")
	return s.Engine(i.Pod).FitsOn(i.Class, n)
}

// InVain tells whether a pod waits for its node, and nobody is on the way out of
// it any more.
func (s *Scheduler) InVain(i *queue.Item) bool {
	return !s.awaits(i, s.state.NominatedTo(i.Pod.UID))
}

// Fits tells whether some node takes a waiting pod now.
func (s *Scheduler) Fits(i *queue.Item) bool {
	if s.Awaited(i) {
		return true
	}
	_, ok := s.Engine(i.Pod).Best(i.Class)
	return ok
}

// Reword brings a diagnosis up to date whose reasons stand.
func (s *Scheduler) Reword(c *engine.Class, d *engine.Diagnosis) {
	e := s.Engine(c.Pod())
	fresh := e.Diagnose(c)
	if fresh.NoVictims = d.NoVictims; d.NoVictims {
		fresh.Preemption = e.DiagnosePreemption(c)
	}
	d.Reword(fresh)
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
