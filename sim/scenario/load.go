package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/config/nodeprices"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
)

// This file makes runs of files: it tells scenarios, policies and manifests apart, and
// resolves what a scenario refers to. Everything that can be wrong with the input is
// found here, before a world is made.

// Run is a scenario with everything it refers to, ready to be played.
type Run struct {
	Name, Description string
	Spec              Spec
	// Objects exist at the beginning.
	Objects []runtime.Object
	// Arrivals come later, in order of time.
	Arrivals []Arrival
	// Notes are for people: what was left out of the input, and what can't happen.
	Notes []string
	// Scheduler and Autoscale are the policy. Whoever plays the run reads them and not
	// Spec.Policy.
	Scheduler config.Scheduler
	Autoscale core.Autoscale
	Expander  expander.Chain     // that Autoscale names
	Prices    *nodeprices.Prices // of the policy; nil for none
	// MemberByMember is that of the policy.
	MemberByMember bool
}

// PriceTold returns what Berth is told that a node of a group costs an hour, 0 for nothing.
// A price file counts more than the provider's own prices, as for a real provider.
func (r *Run) PriceTold(g *NodeGroup) float64 {
	if price, ok := r.Prices.Of(g.NewNode(g.Name).Labels); ok {
		return price
	}
	if g.PriceHidden {
		return 0
	}
	return g.PricePerHour
}

// Arrival is objects that come to the cluster together.
type Arrival struct {
	At      time.Duration // since the beginning
	Objects []runtime.Object
	// DeleteAfter is how long after At the objects are deleted; never when 0.
	DeleteAfter time.Duration
}

// Pods returns how many pods come: pods, and the replicas or completions of controllers;
// a DaemonSet counts as one, since it depends on the nodes how many it makes.
// It is for progress and estimates; the world counts what really comes.
func (a *Arrival) Pods() int {
	n := 0
	for _, obj := range a.Objects {
		switch o := obj.(type) {
		case *v1.Pod, *appsv1.DaemonSet:
			n++
		case *batchv1.Job:
			n += int(ptr.Deref(o.Spec.Completions, ptr.Deref(o.Spec.Parallelism, 1)))
		case *appsv1.ReplicaSet:
			n += int(ptr.Deref(o.Spec.Replicas, 1))
		case *appsv1.StatefulSet:
			n += int(ptr.Deref(o.Spec.Replicas, 1))
		}
	}
	return n
}

// Load reads files: scenarios, each of which becomes a run; policies, under each
// of which every scenario is run instead of its own; and manifests or dumps,
// which are added to every run. Without a scenario the manifests alone are one.
// Errors name file, line and field.
// The order of runs is that of scenarios, and of policies for each.
func Load(paths []string) ([]*Run, error) {
	// A file is told by its kind, wherever it stands among the arguments.
	byKind := map[string][]string{}
	for _, p := range paths {
		kind, err := kindOfFile(p)
		if err != nil {
			return nil, err
		}
		byKind[kind] = append(byKind[kind], p)
	}
	scenarios, manifests := []loaded{}, byKind[""]
	for _, p := range byKind[Kind] {
		s, err := loadScenario(p)
		if err != nil {
			return nil, err
		}
		scenarios = append(scenarios, s)
	}
	if len(scenarios) == 0 {
		// Whatever makes no run is refused instead of ignored.
		if len(manifests) == 0 {
			return nil, errors.New("only policies were given; also give a scenario, a dump or a manifest")
		}
		scenarios = append(scenarios, loaded{&Scenario{APIVersion: APIVersion, Kind: Kind}, &validator{src: source{path: manifests[0], dir: "."}}})
	}
	var runs []*Run
	for _, s := range scenarios {
		under, err := s.runs(byKind[PolicyKind], manifests)
		if err != nil {
			return nil, err
		}
		runs = append(runs, under...)
	}
	return runs, nil
}

// loaded is a scenario with what is wrong in the file that it is from.
type loaded struct {
	*Scenario
	v *validator
}

// loadScenario reads and validates a scenario, but for its policy.
func loadScenario(path string) (loaded, error) {
	s := &Scenario{}
	v, err := read(path, s)
	if err == nil {
		v.scenario(s)
	}
	return loaded{s, v}, err
}

// runs returns the scenario's run under each of the policies' files, or under its
// own policy when there are none.
func (s loaded) runs(policies, manifests []string) ([]*Run, error) {
	if len(policies) == 0 {
		r, err := s.resolve(s.v, &s.Spec.Policy, "spec.policy", s.v, manifests)
		return []*Run{r}, err
	}
	var runs []*Run
	for _, path := range policies {
		p := &PolicyFile{}
		v, err := read(path, p)
		if err != nil {
			return nil, err
		}
		v.policyFile(p)
		r, err := s.resolve(s.v, &p.Spec, "spec", v, manifests)
		if err != nil {
			return nil, err
		}
		// Names tell the runs apart in tables.
		r.Name += " under " + cmp.Or(p.Metadata.Name, v.src.name())
		runs = append(runs, r)
	}
	return runs, nil
}

// Parse reads a scenario from text; path is for errors and relative files.
// It is for scenarios that aren't files: tests draw them.
func Parse(path string, raw []byte) (*Run, error) {
	s := &Scenario{}
	v, err := parse(path, raw, s)
	if err != nil {
		return nil, err
	}
	v.scenario(s)
	return s.resolve(v, &s.Spec.Policy, "spec.policy", v, nil)
}

// resolve returns the scenario's run under a policy, which stands in a field of the file that
// policy validates; v has what is wrong with the scenario's. The manifests are added to what the
// scenario itself refers to.
// All that is wrong in either file is reported at once, before manifests are read, which
// may be large.
func (s *Scenario) resolve(v *validator, p *Policy, field string, policy *validator, manifests []string) (*Run, error) {
	src := v.src
	r := &Run{Name: s.Metadata.Name, Description: s.Metadata.Description, Spec: s.Spec, Scheduler: config.Default()}
	if r.Name == "" {
		r.Name = src.name()
	}
	policy.policy(p, field, r)
	o := &objects{run: r, unknown: map[string]int{}, defined: map[string]bool{}}
	for i, raw := range s.Spec.Objects {
		if err := o.inline(raw); err != nil {
			v.bad(fmt.Sprintf("spec.objects[%d]", i), "%v", err)
		}
	}
	for i, f := range s.Spec.Files {
		if _, err := os.Stat(src.rel(f)); err != nil {
			v.bad(fmt.Sprintf("spec.files[%d]", i), "%s: %v", f, cause(err))
		}
		// The list is shared by all runs.
		manifests = append(slices.Clip(manifests), src.rel(f))
	}
	errs := v.err()
	if policy != v {
		errs = errors.Join(errs, policy.err())
	}
	if errs != nil {
		return nil, errs
	}
	if err := s.gather(o, src, manifests); err != nil {
		return nil, err
	}
	o.finish()
	return r, nil
}

// policy has a run played under a policy, which stands in a field.
// What isn't given is as by default, so an empty policy is Berth as it is installed.
func (v *validator) policy(p *Policy, field string, r *Run) {
	var emulated config.EmulatedVersion
	err := emulated.Set(p.EmulatedVersion)
	if err != nil {
		v.bad(field+".emulatedVersion", "%v", err)
	}
	r.Scheduler.Version = emulated.Or(r.Scheduler.Version)
	r.MemberByMember = p.MemberByMember
	if p.SchedulerConfig != "" {
		if r.Scheduler, err = config.Load(v.src.rel(p.SchedulerConfig), r.Scheduler.Version); err != nil {
			v.bad(field+".schedulerConfig", "%v", err)
			// A simulation has no network.
		} else if len(r.Scheduler.Extenders) > 0 {
			v.bad(field+".schedulerConfig", "%s has extenders, which a simulation can't call; use a file without them", p.SchedulerConfig)
		}
	}
	var priorities *expander.Priorities
	if p.ExpanderPriorities != "" {
		if priorities, err = expander.ParsePriorities(p.ExpanderPriorities); err != nil {
			v.bad(field+".expanderPriorities", "%v", err)
		}
	}
	if p.NodePrices != "" {
		if r.Prices, err = nodeprices.Load(v.src.rel(p.NodePrices)); err != nil {
			v.bad(field+".nodePrices", "%v", err)
		}
	}
	if r.Autoscale, err = config.ParseAutoscaler(p.Flags); err != nil {
		v.bad(field+".flags", "%v", err)
		return
	}
	// Priorities never change within a run.
	priority := &expander.Priority{Current: func() *expander.Priorities { return priorities }}
	if r.Expander, err = expander.NewChain(r.Autoscale.Expander, map[string]expander.Strategy{expander.PriorityName: priority}); err != nil {
		v.bad(field+".flags", "%v", err)
	}
}

// gather adds the manifests, and what the scenario says in short.
// Later parts may name objects of earlier ones: workloads the device classes, for example.
func (s *Scenario) gather(o *objects, src source, manifests []string) error {
	for _, m := range manifests {
		if err := o.file(m); err != nil {
			return err
		}
	}
	for i := range s.Spec.DeviceClasses {
		if err := o.add(s.Spec.DeviceClasses[i].object()); err != nil {
			return src.errorf(fmt.Sprintf("spec.deviceClasses[%d]", i), "%v", err)
		}
	}
	for i := range s.Spec.Nodes {
		if err := o.nodes(&s.Spec.Nodes[i]); err != nil {
			return src.errorf(fmt.Sprintf("spec.nodes[%d]", i), "%v", err)
		}
	}
	for i := range s.Spec.Traces {
		if err := o.trace(&s.Spec.Traces[i], src.rel(s.Spec.Traces[i].Path)); err != nil {
			return src.errorf(fmt.Sprintf("spec.traces[%d].path", i), "%v", err)
		}
	}
	for i := range s.Spec.Workload {
		o.workload(&s.Spec.Workload[i], s.Spec.Seed)
	}
	return nil
}
