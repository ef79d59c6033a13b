package scaleup

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// drawSizes draws the sizes of an adversary, and what each of the classes is: refused by all
// groups, or taken by one of them.
func drawSizes(t *rapid.T, maxGroups, maxClasses int) sizes {
	x := sizes{
		groups:  rapid.IntRange(1, maxGroups).Draw(t, "groups"),
		classes: rapid.IntRange(1, maxClasses).Draw(t, "classes"),
		daemons: rapid.IntRange(0, 5).Draw(t, "DaemonSets"),
	}
	tenants := rapid.IntRange(0, 100).Draw(t, "tenants in 100 classes")
	kinds := make([]func(int) *testkit.PodBuilder, x.classes)
	for i := range kinds {
		kinds[i] = refused
		if testkit.Uniform(t, 100, "tenant") < tenants {
			kinds[i] = tenant
		}
	}
	x.pod = func(i int) *testkit.PodBuilder { return kinds[i](i) }
	return x
}

// TestPropertyWorkIsLinearInThePairs draws sizes and counts the work of a plan, as TestWorkIsBounded
// does for some sizes: it is linear in the groups, and in the pairs of a class and a group.
func TestPropertyWorkIsLinearInThePairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawSizes(t, 40, 300)
		p, req := adversarial(t, x)
		plan := autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		blocks := (x.classes + explainedTogether - 1) / explainedTogether
		most := Work{Nodes: x.groups * (1 + blocks), Asked: 2 * x.groups * x.classes, Packings: 3 * x.groups, Tried: 4 * x.groups * x.classes}
		if w := p.Work(); w.Nodes > most.Nodes || w.Asked > most.Asked || w.Packings > most.Packings || w.Tried > most.Tried {
			t.Fatalf("a plan for %d classes and %d groups did %+v, want no more than %+v", x.classes, x.groups, w, most)
		}
	})
}

// TestPropertyAPlanAsksLittleAfterItsTime draws sizes and how much a plan may ask before its time is over.
// What it asks after that is linear in the classes, and in the groups, beside what may be in vain.
func TestPropertyAPlanAsksLittleAfterItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawSizes(t, 60, 1200)
		p, req := adversarial(t, x)
		within := rapid.IntRange(0, x.groups*x.classes).Draw(t, "pairs within its time")
		p.Questions = &autoscaler.Questions{Watch: &byWork{p, 0, within}}
		p.Plan(req, autoscaler.NewPlan(&req, 0))
		if asked, most := p.Work().Asked, within+min(x.groups*x.classes, maxVain+2*x.classes)+explainedTogether*(x.groups+1); asked > most {
			t.Fatalf("a plan for %d classes and %d groups asked about %d pairs of them, and had time for %d; want %d at most", x.classes, x.groups, asked, within, most)
		}
	})
}

// TestPropertyTargetsAreNoWork draws groups whose targets say anything: no more coming nodes stand in the
// state than pods are to be placed.
func TestPropertyTargetsAreNoWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawSizes(t, 5, 20)
		p, req := adversarial(t, x)
		for _, old := range p.State.Groups() {
			g := *old
			g.Target = 1<<rapid.IntRange(0, 31).Draw(t, "digits of the target") - 1
			p.State.SetGroup(g.ID, &g)
		}
		plan := autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		// A coming node for each pod of each group, and one to explain why no group helps.
		if w, most := p.Work(), x.groups*(x.classes+1)+x.groups; w.Nodes > most {
			t.Fatalf("%d nodes were added to the state for %d pods and %d groups, want %d at most", w.Nodes, x.classes, x.groups, most)
		}
	})
}
