package keptnodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/keptnodes"
	"github.com/berthproject/berth/core/step"
)

// kept reads what a plan says about nodes: "NODE REASON [POD [DETAIL]]", separated by semicolons.
func kept(text string) (out []autoscaler.Kept) {
	for line := range strings.SplitSeq(text, ";") {
		if f := strings.Fields(line); len(f) > 0 {
			k := autoscaler.Kept{Node: f[0], Reason: autoscaler.KeptReason(f[1])}
			if len(f) > 2 {
				k.Pod, k.Detail = f[2], strings.Join(f[3:], " ")
			}
			out = append(out, k)
		}
	}
	return out
}

func newTurn() *lifecycle.Turn {
	return &lifecycle.Turn{State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
}

// plan hands a machine a plan that is made at a second, and returns what the ledger got.
func plan(m *keptnodes.Machine, at int64, change func(*autoscaler.Plan)) string {
	p := &autoscaler.Plan{Now: time.Unix(at, 0)}
	change(p)
	t := newTurn()
	m.CommitPlan(t, p)
	var out []string
	for i := range t.Ready.Decisions {
		out = append(out, t.Ready.Decisions[i].String())
	}
	return strings.Join(out, "\n")
}

// TestLedgerHasReasonsThatBegin follows nodes through plans, ten seconds apart.
func TestLedgerHasReasonsThatBegin(t *testing.T) {
	m := keptnodes.New()
	for i, x := range []struct {
		why   string // of what follows
		plan  string
		sick  string
		want  string
		since string // of each node, in seconds
	}{
		{"a pod blocks one node, two others are dull", "a BlockedByPod d/p has local storage; b NotUnderutilized; c NotAutoscaled", "", "NodeStays pod d/p node a: BlockedByPod: has local storage", "a0 b0 c0"},
		{"nothing is another", "a BlockedByPod d/p has local storage; b NotUnderutilized; c NotAutoscaled", "", "", "a0 b0 c0"},
		{"only the quantities are others", "a BlockedByPod d/p has 2 volumes; b NotUnderutilized; c NotAutoscaled", "", "", "a0 b0 c0"},
		{"another pod blocks", "a BlockedByPod d/q it is alone; b NotUnderutilized; c NotAutoscaled", "", "NodeStays pod d/q node a: BlockedByPod: it is alone", "a30 b0 c0"},
		{"a dull reason in between", "a IsDestination; b NotUnderutilized; c NotAutoscaled", "", "", "a40 b0 c0"},
		{"the blocked one is blocked as before: the ledger has that", "a BlockedByPod d/q it is alone; b NotUnderutilized; c NotAutoscaled", "", "", "a50 b0 c0"},
		{"it could go", "a could-go; b NotUnderutilized; c NotAutoscaled", "", "", "b0 c0"},
		{"it can't go any more: NodeNeeded says it", "a BlockedByPod d/q it is alone; b NotUnderutilized; c NotAutoscaled", "", "", "a70 b0 c0"},
		{"too many nodes aren't ready: said once", "", "5 of 9 aren't ready", "NodeStays: ClusterUnhealthy: 5 of 9 aren't ready", "a70 b0 c0"},
		{"more aren't", "", "6 of 9 aren't ready", "", "a70 b0 c0"},
		{"they are ready: what there was before goes on", "a BlockedByPod d/q it is alone; b NotUnderutilized; c NotAutoscaled", "", "", "a70 b0 c0"},
		{"displaced pods hold all nodes: said once", "a DisplacedPods d/r no room; b DisplacedPods d/r no room", "", "NodeStays pod d/r: DisplacedPods: no room", "a110 b110"},
		{"nodes come and go", "aa NodeGroupMinSizeReached; b DisplacedPods d/r no room; z ScaleDownDisabledAnnotation", "",
			"NodeStays node aa: NodeGroupMinSizeReached\nNodeStays node z: ScaleDownDisabledAnnotation", "aa120 b110 z120"},
	} {
		got := plan(m, int64(10*i), func(p *autoscaler.Plan) {
			p.Sick = x.sick
			for _, k := range kept(x.plan) {
				if k.Reason == "could-go" {
					p.Removals = append(p.Removals, &autoscaler.Removal{Node: k.Node})
				} else {
					p.Kept = append(p.Kept, k)
				}
			}
		})
		if got != x.want {
			t.Errorf("plan %d (%s): the ledger gets\n%s\nwant\n%s", i, x.why, got, x.want)
		}
		var since []string
		for _, name := range []string{"a", "aa", "b", "c", "z"} {
			if s, ok := m.Of(name); ok {
				since = append(since, fmt.Sprint(name, s.Since.Unix()))
			}
		}
		if got := strings.Join(since, " "); got != x.since {
			t.Errorf("plan %d (%s): nodes stay since %s, want %s", i, x.why, got, x.since)
		}
		if broken := m.Invariants(); len(broken) > 0 {
			t.Errorf("plan %d: broken: %v", i, broken)
		}
	}
}

// TestPropertySinceIsTheFirstPlanInARow compares the walk along two plans with a map by name,
// through random plans.
func TestPropertySinceIsTheFirstPlanInARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type cause struct{ reason, pod string }
		type spell struct {
			cause
			since int64
		}
		m, reference := keptnodes.New(), map[string]spell{}
		var last []autoscaler.Kept
		for now := range rapid.Int64Range(2, 8).Draw(t, "plans") {
			var list []autoscaler.Kept
			next := map[string]spell{}
			for _, name := range []string{"a", "ab", "b", "c", "d"} {
				if !rapid.Bool().Draw(t, "kept") {
					continue
				}
				k := cause{rapid.SampledFrom([]string{"BlockedByPod", "NoPlaceToMovePods", "NotUnderutilized"}).Draw(t, "reason"), rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pod")}
				list = append(list, autoscaler.Kept{Node: name, Reason: autoscaler.KeptReason(k.reason), Pod: k.pod})
				next[name] = spell{k, now + 1}
				if before, ok := reference[name]; ok && before.cause == k {
					next[name] = before
				}
			}
			if len(last) > 0 && rapid.Bool().Draw(t, "the very list again") {
				list, next = last, reference
			}
			plan(m, now+1, func(p *autoscaler.Plan) { p.Kept = list })
			reference, last = next, list
			for _, name := range []string{"a", "ab", "b", "c", "d"} {
				s, ok := m.Of(name)
				want, wanted := reference[name]
				if ok != wanted || ok && (s.Since.Unix() != want.since || string(s.Reason) != want.reason) {
					t.Fatalf("node %s: %v %v, want %v %v", name, s, ok, want, wanted)
				}
			}
		}
	})
}

// TestInvariantsNameAPlanOutOfOrder: the walk along plans relies on their order.
func TestInvariantsNameAPlanOutOfOrder(t *testing.T) {
	m := keptnodes.New()
	plan(m, 1, func(p *autoscaler.Plan) { p.Kept = kept("b BlockedByPod; a BlockedByPod") })
	if got := m.Invariants(); !slices.Contains(got, "a plan keeps node a after node b; they have to be in order, once each") {
		t.Errorf("broken: %v", got)
	}
}

// BenchmarkCommitPlan takes in the plan of a large cluster at rest.
func BenchmarkCommitPlan(b *testing.B) {
	var list []autoscaler.Kept
	for i := range 5000 {
		list = append(list, autoscaler.Kept{Node: fmt.Sprintf("node-%05d", i), Reason: autoscaler.KeptBlockedByPod, Pod: "default/p"})
	}
	m, t := keptnodes.New(), newTurn()
	p := &autoscaler.Plan{Now: time.Unix(1, 0), Kept: list}
	b.ReportAllocs()
	for b.Loop() {
		m.CommitPlan(t, p)
	}
}
