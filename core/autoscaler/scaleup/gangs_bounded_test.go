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

// TestPurchasesBehindDomainsThatRefuse: 100 tenants have a node with room for a gang, and one of all but 30 has a pod
// there that its members keep away from, as groups do that have racks for themselves. The first plan buys nodes for one
// of the others, or joins one that is there; tenants whose nodes refuse the gang are no reason to wait.
func TestPurchasesBehindDomainsThatRefuse(t *testing.T) {
	const tenants, refused = 100, 70
	for _, standing := range []int{refused, tenants} { // how many have a node
		p, req := adversarial(t, sizes{groups: tenants})
		for i := range standing {
			group := fmt.Sprintf("g%04d", i)
			b := testkit.Node("n-"+group).Alloc("cpu", "16", "memory", "64Gi", "pods", "110")
			b.Labels["tenant"] = fmt.Sprint(i)
			p.State.SetNode(p.State.Schema.ParseNode(b.Obj(), group))
			if i < refused {
				p.State.Place(p.State.Schema.ParsePod(testkit.Pod("on-"+b.Name).Req("cpu", "8").Label("owner", "other").Obj()), b.Name)
			}
		}
		g := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}, MinCount: 4, Topologies: []string{"tenant"}}
		p.State.SetObject(testkit.PodGroup("gang", g.MinCount, "tenant"))
		for i := range g.MinCount {
			pod := testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "2").Apart("tenant", "owner", "other").PodGroup("gang")
			g.Members = append(g.Members, p.State.Schema.ParsePod(pod.Obj()))
		}
		req.Gangs = []autoscaler.Gang{g}
		plan := autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		out := &plan.Gangs[0]
		if out.Placed != 4 || (len(plan.ScaleUps) == 1) != (standing == refused) {
			t.Errorf("%d tenants have nodes: %d members have places in %q, and nodes of %d groups are bought; it was tried in %d domains", standing, out.Placed, out.Domain, len(plan.ScaleUps), len(out.Tried))
		}
	}
}

// TestDomainsAreTriedInTurn: where a plan can't try all domains, the answer says that a later one may help, and one of
// the next plans buys.
func TestDomainsAreTriedInTurn(t *testing.T) {
	const tenants, others, plans = 120, 10_000, 6
	p, req := adversarial(t, sizes{groups: tenants})
	for _, group := range p.State.Groups() {
		more := *group
		more.Max = 1000
		p.State.SetGroup(more.ID, &more)
	}
	// Whoever is last of the gang keeps away from what each tenant but one has.
	for i := range tenants {
		if i == 41 {
			continue
		}
		b := testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "1", "memory", "1Gi", "pods", "1")
		b.Labels["tenant"] = fmt.Sprint(i)
		p.State.SetNode(p.State.Schema.ParseNode(b.Obj(), ""))
		p.State.Place(p.State.Schema.ParsePod(testkit.Pod(fmt.Sprint("on", i)).Label("owner", "other").Obj()), b.Name)
	}
	g := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}, MinCount: others + 1, Topologies: []string{"tenant"}}
	p.State.SetObject(testkit.PodGroup("gang", g.MinCount, "tenant"))
	for i := range g.MinCount {
		pod := testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "10m").PodGroup("gang")
		if i == others {
			pod.Apart("tenant", "owner", "other")
		}
		g.Members = append(g.Members, p.State.Schema.ParsePod(pod.Obj()))
	}
	req.Gangs = []autoscaler.Gang{g}
	for req.Number = range plans {
		plan := autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		if out := &plan.Gangs[0]; out.Placed > 0 {
			if out.Domain != "41" || len(plan.ScaleUps) != 1 || req.Number == 0 {
				t.Errorf("plan %d buys nodes of %d groups in domain %q", req.Number, len(plan.ScaleUps), out.Domain)
			}
			return
		}
		if len(plan.NoHelp) != 1 || !plan.NoHelp[0].Later {
			t.Fatalf("plan %d doesn't say that a later one may help: %+v", req.Number, plan.NoHelp)
		}
	}
	t.Errorf("nothing was bought by %d plans", plans)
}

// TestPurchasesAreNotCrowdedOut: more domains have room for a gang by what it requests, and refuse it, than a plan
// can try. Half of the work is left for those that nodes can be bought in, so that one of the first plans buys.
func TestPurchasesAreNotCrowdedOut(t *testing.T) {
	const standing, tenants, size, plans = 1_500, 20, 300, 4
	p, req := adversarial(t, sizes{groups: tenants})
	for i := range standing {
		b := testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "16", "memory", "64Gi", "pods", "500")
		b.Labels["tenant"] = fmt.Sprint("standing", i)
		p.State.SetNode(p.State.Schema.ParseNode(b.Obj(), ""))
		p.State.Place(p.State.Schema.ParsePod(testkit.Pod("on-"+b.Name).Req("cpu", "1").Label("owner", "other").Obj()), b.Name)
	}
	g := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}, MinCount: size, Topologies: []string{"tenant"}}
	p.State.SetObject(testkit.PodGroup("gang", size, "tenant"))
	for i := range size {
		pod := testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "10m").Apart("tenant", "owner", "other").PodGroup("gang")
		g.Members = append(g.Members, p.State.Schema.ParsePod(pod.Obj()))
	}
	req.Gangs = []autoscaler.Gang{g}
	for req.Number = range plans {
		plan := autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		if len(plan.ScaleUps) > 0 {
			return
		}
	}
	t.Errorf("nothing was bought by %d plans", plans)
}
