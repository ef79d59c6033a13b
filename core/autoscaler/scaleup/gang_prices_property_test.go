package scaleup

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// pricedGroup is a node group as the search for the cheapest purchase sees it.
type pricedGroup struct {
	rack, cpu, most int
	price           float64
}

// pricedWorld is a gang for which nodes of some groups can be bought, and nothing is there.
type pricedWorld struct {
	groups   []pricedGroup
	requests []int // of the members, in CPUs
	inRack   bool  // all have to be in one rack
}

func drawPricedWorld(rt *rapid.T) (x pricedWorld) {
	for range rapid.IntRange(2, 4).Draw(rt, "groups") {
		x.groups = append(x.groups, pricedGroup{
			rack: rapid.IntRange(0, 1).Draw(rt, "rack"), cpu: rapid.IntRange(1, 6).Draw(rt, "cpu"), most: rapid.IntRange(1, 3).Draw(rt, "most"),
			price: float64(rapid.IntRange(1, 9).Draw(rt, "price")),
		})
	}
	sizes := []int{rapid.IntRange(1, 3).Draw(rt, "size"), rapid.IntRange(1, 3).Draw(rt, "other size")}
	for range rapid.IntRange(2, 6).Draw(rt, "members") {
		x.requests = append(x.requests, sizes[rapid.IntRange(0, 1).Draw(rt, "of size")])
	}
	x.inRack = rapid.Bool().Draw(rt, "in one rack")
	return x
}

// plan plans for the gang by an expander.
func (x *pricedWorld) plan(t rapid.TB, by string) autoscaler.GangPlan {
	p, req := adversarial(t, sizes{})
	chain, err := expander.NewChain(by, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Expander = chain
	for i, g := range x.groups {
		id := fmt.Sprint("g", i)
		b := testkit.Node(id).Alloc("cpu", fmt.Sprint(g.cpu), "memory", "64Gi", "pods", "110")
		b.Labels["rack"] = fmt.Sprint("r", g.rack)
		p.State.SetGroup(id, &cluster.NodeGroup{ID: id, Max: g.most, Price: g.price, Template: p.State.Schema.ParseNode(b.Obj(), id)})
	}
	gang := autoscaler.Gang{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}, MinCount: len(x.requests)}
	label := ""
	if x.inRack {
		label = "rack"
		gang.Topologies = []string{label}
	}
	p.State.SetObject(testkit.PodGroup("gang", gang.MinCount, label))
	for i, cpu := range x.requests {
		gang.Members = append(gang.Members, p.State.Schema.ParsePod(testkit.Pod(fmt.Sprint("m", i)).Req("cpu", fmt.Sprint(cpu)).PodGroup("gang").Obj()))
	}
	req.Gangs = []autoscaler.Gang{gang}
	plan := autoscaler.NewPlan(&req, 0)
	p.Plan(req, plan)
	return plan.Gangs[0]
}

// cheapest returns the price of the cheapest nodes that hold all members, 0 when none do. It tries all.
func (x *pricedWorld) cheapest() (best float64) {
	for _, rack := range []int{0, 1} {
		var try func(i int, bins []int, price float64)
		try = func(i int, bins []int, price float64) {
			if best > 0 && price >= best {
				return
			}
			if i == len(x.groups) {
				if packs(bins, x.requests) {
					best = price
				}
				return
			}
			g := x.groups[i]
			for n := 0; n <= g.most; n++ {
				if n > 0 {
					if x.inRack && g.rack != rack {
						return
					}
					bins = append(bins[:len(bins):len(bins)], g.cpu)
				}
				try(i+1, bins, price+float64(n)*g.price)
			}
		}
		try(0, nil, 0)
	}
	return best
}

// packs reports whether requests fit into bins, each into one. It tries all ways.
func packs(bins, requests []int) bool {
	if len(requests) == 0 {
		return true
	}
	tried := map[int]bool{}
	for i, free := range bins {
		if free < requests[0] || tried[free] {
			continue
		}
		tried[free] = true
		bins[i] -= requests[0]
		ok := packs(bins, requests[1:])
		if bins[i] += requests[0]; ok {
			return true
		}
	}
	return false
}

// TestPropertyWhatGangsCost has nodes bought for gangs of up to six members of two sizes, in one of two racks or
// anywhere, of up to four small groups, and compares with the cheapest nodes that hold all members, of all that could be
// bought. It must hold that
//
//   - nodes are bought for no gang that none would hold;
//   - for nearly all that some would hold, they are: the others are packed in an order that uses up what a large
//     member needs;
//   - none costs more than so many times the least, and so many gangs cost the least.
func TestPropertyWhatGangsCost(t *testing.T) {
	for _, c := range []struct {
		by            string
		most          float64 // times the least
		found, optima int     // at least, in 1/100
	}{{"price", 12, 97, 75}, {"cost", 2, 98, 95}} {
		t.Run(c.by, func(t *testing.T) {
			exist, found, optima := 0, 0, 0
			worst, sum := 0.0, 0.0
			rapid.Check(t, func(rt *rapid.T) {
				x := drawPricedWorld(rt)
				least, out := x.cheapest(), x.plan(rt, c.by)
				if out.Placed > 0 && (out.Placed != len(x.requests) || least == 0) {
					rt.Fatalf("%d members have places, of %d that nodes for %v would hold: %+v", out.Placed, len(x.requests), least, x)
				}
				if least == 0 {
					return
				}
				if exist++; out.Placed == 0 {
					return
				}
				found++
				ratio := out.Price / least
				if sum, worst = sum+ratio, max(worst, ratio); ratio <= 1+1e-9 {
					optima++
				}
				if ratio < 1-1e-9 || ratio > c.most {
					rt.Fatalf("the nodes cost %v, and %v would do: %+v", out.Price, least, x)
				}
			})
			t.Logf("by %s, of %d gangs that nodes would hold %d have some, %d of them the cheapest; on average they cost %.3f times as much, at most %.2f times", c.by, exist, found, optima, sum/float64(found), worst)
			const few = 3 // more than the share, where there are few gangs
			if found+few < exist*c.found/100 || optima+few < found*c.optima/100 {
				t.Errorf("of %d gangs %d have nodes, and %d the cheapest", exist, found, optima)
			}
		})
	}
}
