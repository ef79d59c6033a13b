package scaleup_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
)

// TestPropertyAPlanCountsWhatExplainSaysByGroup makes random plans. Of one that buys nothing
// Explain says the same pod by pod: which have a place, and for each of the others why not,
// with every group accounted for. It leaves the state as it was. Rooms reports for each group
// what Explain says about any pod.
func TestPropertyAPlanCountsWhatExplainSaysByGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		before := f.dump("")
		covered, answers := 0, map[types.UID]podAnswer{}
		for _, pod := range f.req.Pending {
			a := f.answer(pod)
			answers[pod.UID] = a
			if a.place {
				covered++
			}
			if len(a.rooms) != len(f.state.Groups()) {
				t.Errorf("of %d groups %d are accounted for", len(f.state.Groups()), len(a.rooms))
			}
			if rooms := f.packer.Rooms(f.req); !slices.Equal(rooms, a.rooms) {
				t.Errorf("groups have the rooms %+v, and for a pod %+v", rooms, a.rooms)
			}
		}
		if after := f.dump(before); after != before {
			t.Errorf("Explain has left the state as\n%s\nit was\n%s", after, before)
		}
		if len(plan.ScaleUps) > 0 {
			return // its nodes have changed what the rules say
		}
		if covered != plan.Covered {
			t.Errorf("%d pods have a place, the plan covers %d", covered, plan.Covered)
		}
		for _, n := range plan.NoHelp {
			if a := answers[n.Pods[0]]; a.place || !slices.Equal(a.reasons, n.Reasons) {
				t.Errorf("Explain has a place for %s: %t, and else the reasons %q; the plan has %q", n.Pods[0], a.place, a.reasons, n.Reasons)
			}
		}
	})
}

// podAnswer is what Explain says about a pod, as a plan would.
type podAnswer struct {
	place   bool
	rooms   []scaleup.GroupAnswer // without reasons
	reasons []string
}

func (f *fixture) answer(pod *cluster.Pod) podAnswer {
	answer := f.packer.Explain(f.req, pod)
	counts := map[string]int{}
	rooms := []scaleup.GroupAnswer{}
	for _, g := range answer.Groups {
		rooms = append(rooms, scaleup.GroupAnswer{Group: g.Group, Room: g.Room, Limit: g.Limit, Next: g.Next})
		switch {
		case (g.Room > 0) != (g.Limit == "") || (g.Limit == "") != (g.Next != ""):
			counts["room and a limit, or neither; room without a next limit, or a next limit without room"]++
		case g.Limit != "":
			counts[g.Limit]++
		case g.Reason != nil:
			for _, m := range g.Reason.Messages {
				counts[m]++
			}
		default:
			counts["it would take the pod"]++
		}
	}
	return podAnswer{answer.Node != nil, rooms, autoscaler.CountReasons(counts)}
}
