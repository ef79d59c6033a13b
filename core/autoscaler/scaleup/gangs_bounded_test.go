package scaleup

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// gangOf adds a pod group to a request that has to be in one domain of the label tenant, with two members that
// keep apart from one another there, so that it never fits, and others.
func gangOf(p *Packer, req *autoscaler.Request, name string, others int) {
	g := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: name}, MinCount: others + 2, Topologies: []string{"tenant"}}
	p.State.SetObject(testkit.PodGroup(name, g.MinCount, "tenant"))
	add := func(b *testkit.PodBuilder) {
		g.Members = append(g.Members, p.State.Schema.ParsePod(b.PodGroup(name).Obj()))
	}
	for i := range 2 {
		add(testkit.Pod(fmt.Sprint(name, "-apart", i)).Req("cpu", "1m").Label("app", name).Apart("tenant", "app", name))
	}
	for i := range others {
		add(testkit.Pod(fmt.Sprint(name, "-", i)).Req("cpu", "1m"))
	}
	req.Gangs = append(req.Gangs, g)
}

// TestWorkForGangsIsBounded has 10,000 pod groups, and one of 100,000 members, that don't fit in any of many
// domains, which is known only once they were packed there. What a plan does for them is bounded, nothing is
// bought, and a group that comes after the large one has its turn.
func TestWorkForGangsIsBounded(t *testing.T) {
	for _, x := range []struct{ groups, gangs, others int }{{20, 10_000, 0}, {64, 1, 100_000}, {64, 3, 10_000}} {
		t.Run(fmt.Sprintf("%d gangs of %d", x.gangs, x.others+2), func(t *testing.T) {
			p, req := adversarial(t, sizes{groups: x.groups})
			for _, g := range p.State.Groups() {
				more := *g
				more.Max = 1000
				p.State.SetGroup(more.ID, &more)
			}
			for i := range x.gangs {
				gangOf(p, &req, fmt.Sprint("gang", i), x.others)
			}
			plan := autoscaler.NewPlan(&req, 0)
			p.Plan(req, plan)
			members := x.gangs * (x.others + 2)
			if most := maxGangWork + maxWorkOfGang + 4*members; p.Work().Gangs > most || p.Work().Gangs == 0 {
				t.Errorf("it took %d steps, want some, and %d at most", p.Work().Gangs, most)
			}
			if len(plan.ScaleUps) > 0 || len(plan.Joins) > 0 {
				t.Errorf("%d times nodes are bought, and %d joined, for groups that don't fit", len(plan.ScaleUps), len(plan.Joins))
			}
			if tried := len(plan.Gangs); tried == 0 || x.gangs < 10 && (tried != x.gangs || len(plan.NoHelp) == 0) {
				t.Errorf("%d of %d groups were tried, and %d reasons given", tried, x.gangs, len(plan.NoHelp))
			}
		})
	}
}

// TestDomainsHaveTheirTurn: if a plan can't try all domains for a gang, the next plans begin with the others.
func TestDomainsHaveTheirTurn(t *testing.T) {
	const n, cost = 100, maxWorkOfGang / (2 * 30) // 30 at a time
	domains := make([]*gangDomain, n)
	for i := range domains {
		domains[i] = &gangDomain{}
	}
	tried := map[*gangDomain]bool{}
	for plan := range uint64(4) {
		turn := domainsInTurn(domains, cost, plan)
		if len(turn) != n {
			t.Fatalf("plan %d has %d domains, want %d", plan, len(turn), n)
		}
		for _, d := range turn[:30] {
			tried[d] = true
		}
	}
	if len(tried) != n {
		t.Errorf("%d of %d domains were among the first 30 in one of four plans", len(tried), n)
	}
	if turn := domainsInTurn(domains[:30], cost, 3); turn[0] != domains[0] {
		t.Error("domains that can all be tried don't keep their order")
	}
}
