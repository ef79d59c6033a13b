package scaledown_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// These tests make passes over clusters that a reader can check by eye, one after the other: what
// a pass says about each node, and where pods go.

// passes is a simulator over nodes of 4 cores in the group g.
type passes struct {
	t    *testing.T
	s    *cluster.State
	sim  *scaledown.Simulator
	req  *autoscaler.Request
	last *autoscaler.Plan
}

// newPasses returns one over nodes with pods, each given as "NODE: POD CPU, …"; a pod whose name
// begins with "alone" has no controller and keeps its node.
func newPasses(t *testing.T, lines ...string) *passes {
	t.Helper()
	p := &passes{t: t, s: cluster.New(cluster.NewSchema())}
	p.s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: len(lines), Max: 99, Template: p.s.Schema.ParseNode(aNode("t").Obj(), "g")})
	p.s.SetWorkload(cluster.WorkloadOf(testkit.ReplicaSet("r", "app", "r")))
	for _, line := range lines {
		name, list, _ := strings.Cut(line, ":")
		p.s.SetNode(p.s.Schema.ParseNode(aNode(name).Obj(), "g"))
		for pod := range strings.SplitSeq(list, ",") {
			if f := strings.Fields(pod); len(f) == 2 {
				p.place(f[0], f[1], name)
			}
		}
	}
	p.sim, p.req = newSimulator(t, p.s)
	return p
}

func (p *passes) pod(name, cpu string) *cluster.Pod {
	b := testkit.Pod(name).Req("cpu", cpu)
	if !strings.HasPrefix(name, "alone") {
		b.Owner("apps/v1", "ReplicaSet", "r")
	}
	return p.s.Schema.ParsePod(b.Obj())
}

func (p *passes) place(name, cpu, node string) { p.s.Place(p.pod(name, cpu), node) }

// pass makes a pass with displaced pods, each of so much CPU, and checks what it says about each node:
// where the pods go of one that could be removed, or why it stays.
func (p *passes) pass(displaced []string, want ...string) {
	p.t.Helper()
	p.req.ScaleDown.Displaced = nil
	for i, cpu := range displaced {
		p.req.ScaleDown.Displaced = append(p.req.ScaleDown.Displaced, p.pod(fmt.Sprint("displaced", i), cpu))
	}
	p.last = pass(p.sim, p.req)
	var got []string
	for _, r := range p.last.Removals {
		line := r.Node + " goes"
		for _, h := range r.Homes {
			line += fmt.Sprintf(", %s to %s", strings.TrimPrefix(string(h.Pod), "pod-"), h.Node)
		}
		got = append(got, line)
	}
	for i := range p.last.Kept {
		line := p.last.Kept[i].Node + " " + string(p.last.Kept[i].Reason)
		if pod := p.last.Kept[i].Pod; pod != "" {
			line += " " + pod
		}
		got = append(got, line)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		p.t.Errorf("after %s with %v displaced the pass says\n%s\nwant\n%s", p.req.Now.Sub(time.Unix(100000, 0)), displaced, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if broken := p.sim.Broken(); len(broken) > 0 {
		p.t.Error(broken)
	}
}

func (p *passes) after(d time.Duration) {
	p.req.Now, p.req.ServerNow = p.req.Now.Add(d), p.req.ServerNow.Add(d)
}

// TestDisplacedPodsComeBeforeCandidates has pods that are being evicted, or were, take the room that
// candidates' pods have moved to, or that of candidates. When one finds none even so, no node may
// go: the document on parallel drain has the pass end there with no candidate.
func TestDisplacedPodsComeBeforeCandidates(t *testing.T) {
	p := newPasses(t, "n0: a 1", "n1: b 1", "n2: alone 2500m")
	goes := []string{"n0 goes, a to n2", "n1 NoPlaceToMovePods default/b", "n2 NotUnderutilized"}
	none := func(pod string) []string {
		return []string{"n0 DisplacedPods default/" + pod, "n1 DisplacedPods default/" + pod, "n2 DisplacedPods default/" + pod}
	}
	p.pass(nil, goes...)
	p.pass([]string{"2"}, "n0 goes, a to n2", "n1 IsDestination", "n2 IsDestination") // beside the candidate
	p.pass([]string{"3", "3"}, "n0 IsDestination", "n1 IsDestination", "n2 NotUnderutilized")
	p.pass([]string{"3500m"}, none("displaced0")...)
	p.pass([]string{"3", "3", "2"}, none("displaced2")...)
	p.pass(nil, goes...)
}

// TestAPodThatLeavesIsDisplaced has the pod that is displaced still on its node, which is on its
// way out: it needs a second place meanwhile.
func TestAPodThatLeavesIsDisplaced(t *testing.T) {
	p := newPasses(t, "n0: a 1", "n1: alone 3500m", "n2: leaves 1")
	p.s.SetNode(p.s.Schema.ParseNode(aNode("n2").Taint(autoscaler.ToBeDeletedTaint, "1", "NoSchedule").Obj(), "g"))
	p.pass(nil, "n0 NoPlaceToMovePods default/a", "n1 NotUnderutilized", "n2 CurrentlyBeingDeleted")
	p.req.ScaleDown.Displaced = []*cluster.Pod{p.s.PodOn("pod-leaves")}
	plan := pass(p.sim, p.req)
	if len(plan.Removals) != 0 || plan.Kept[0].Reason != autoscaler.KeptDestination {
		t.Errorf("n0, where the pod has its second place: %+v", plan.Kept[0])
	}
	p.place("more", "2500m", "n0")
	plan = pass(p.sim, p.req)
	for i := range plan.Kept {
		if plan.Kept[i].Reason != autoscaler.KeptDisplaced || plan.Kept[i].Pod != "default/leaves" {
			t.Errorf("when n0 has no room for it: %+v", plan.Kept[i])
		}
	}
	if len(plan.Removals) != 0 || len(plan.Kept) != 3 {
		t.Errorf("when n0 has no room for it, %d nodes go and %d stay", len(plan.Removals), len(plan.Kept))
	}
}

// TestPodsKeepTheirDestinations has pods of candidates that have to be looked at again find the
// destination that they had, though another node is the better choice by then, as long as it takes
// them: the destination hints of the document on parallel drain.
func TestPodsKeepTheirDestinations(t *testing.T) {
	stays := []string{"m1 NotUnderutilized", "m2 NotUnderutilized"}
	begin := func() *passes {
		p := newPasses(t, "n: a 1", "m1: alone1 2500m", "m2: alone2 2200m")
		p.pass(nil, append(stays, "n goes, a to m1")...)
		p.place("alone3", "500m", "m2") // now it is the fuller one
		return p
	}
	t.Run("the candidate changes", func(t *testing.T) {
		p := begin()
		p.place("small", "100m", "n")
		p.pass(nil, append(stays, "n goes, a to m1, small to m1")...)
	})
	t.Run("the destination changes", func(t *testing.T) {
		p := begin()
		p.place("alone4", "100m", "m1")
		p.pass(nil, "m1 IsDestination", "m2 NotUnderutilized", "n goes, a to m1")
	})
	t.Run("the destination is full", func(t *testing.T) {
		p := begin()
		p.place("alone4", "1", "m1")
		p.pass(nil, "m1 NotUnderutilized", "m2 IsDestination", "n goes, a to m2")
	})
	t.Run("the candidate changes and the destination is full", func(t *testing.T) {
		p := begin()
		p.place("small", "100m", "n")
		p.place("alone4", "1", "m1")
		p.pass(nil, append(stays, "n goes, a to m2, small to m2")...)
	})
	t.Run("a displaced pod needs the room of another candidate", func(t *testing.T) {
		p := newPasses(t, "k: c 1200m", "n: a 1", "m1: alone1 2500m", "m2: alone2 2200m")
		p.pass(nil, "k goes, c to m2", "m1 NotUnderutilized", "m2 NotUnderutilized", "n goes, a to m1")
		p.place("alone3", "600m", "m2")
		p.pass([]string{"2700m"}, "k IsDestination", "m1 NotUnderutilized", "m2 NotUnderutilized", "n goes, a to m1")
	})
}

// TestNodesThatCannotGoAreLookedAtAgain: a node whose pod has nowhere to go isn't simulated again
// before --unremovable-node-recheck-timeout is over, though there is room meanwhile, unless the
// node itself changes.
func TestNodesThatCannotGoAreLookedAtAgain(t *testing.T) {
	begin := func() *passes {
		p := newPasses(t, "n: a 1", "m: alone 3500m")
		p.req.ScaleDown.Rules.RecheckAfter = 5 * time.Minute
		p.pass(nil, "m NotUnderutilized", "n NoPlaceToMovePods default/a")
		p.s.SetNode(p.s.Schema.ParseNode(aNode("new").Obj(), "g"))
		p.place("alone2", "2500m", "new")
		return p
	}
	t.Run("when the time is over", func(t *testing.T) {
		p := begin()
		p.after(time.Minute)
		p.pass(nil, "m NotUnderutilized", "n NoPlaceToMovePods default/a", "new NotUnderutilized")
		p.after(4*time.Minute - time.Second)
		p.pass(nil, "m NotUnderutilized", "n NoPlaceToMovePods default/a", "new NotUnderutilized")
		p.after(time.Second)
		p.pass(nil, "m NotUnderutilized", "n goes, a to new", "new NotUnderutilized")
	})
	t.Run("when the node changes", func(t *testing.T) {
		p := begin()
		p.after(time.Minute)
		p.place("small", "100m", "n")
		p.pass(nil, "m NotUnderutilized", "n goes, a to new, small to new", "new NotUnderutilized")
	})
}

// TestAnAtomicGroupGoesAsAWhole: of a group that its provider scales to zero or its maximum no node
// goes while another has to stay.
func TestAnAtomicGroupGoesAsAWhole(t *testing.T) {
	p := newPasses(t, "n0:", "n1: alone 1", "n2:")
	p.s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 3, Max: 3, Options: &cluster.GroupOptions{ZeroOrMax: true}, Template: p.s.Schema.ParseNode(aNode("t").Obj(), "g")})
	p.pass(nil, "n0 AtomicScaleDownFailed", "n1 BlockedByPod default/alone", "n2 AtomicScaleDownFailed")
	if want := "the nodes of group g are removed all together or not at all, and 2 of 3 are removable"; p.last.Kept[0].Detail != want {
		t.Errorf("got %s, want %s", p.last.Kept[0].Detail, want)
	}
	p.s.Remove("pod-alone")
	p.pass(nil, "n0 goes", "n1 goes", "n2 goes")
}
