package scaleup_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// said writes what a plan proposes and why it proposes no more.
func said(plan *autoscaler.Plan) string {
	out := fmt.Sprint(plan.Sick, plan.Covered, plan.Unneeded, plan.Unplanned)
	for _, up := range plan.ScaleUps {
		out += fmt.Sprintln(up.Group, up.Nodes, up.Pods, up.Bins)
	}
	return out + fmt.Sprint(plan.NoHelp)
}

// TestPropertyPodsAreServedWholeOrNotAtAll makes random plans in which some of the pods are
// to be served together. The plan is that for all pods if it has a place for each of these;
// otherwise it is the one without them.
func TestPropertyPodsAreServedWholeOrNotAtAll(t *testing.T) {
	served := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		pods := f.req.Pending
		at := len(pods) - testkit.Uniform(t, min(len(pods), 6)+1, "whole")
		plan := func(pending, whole int) *autoscaler.Plan {
			t.Helper()
			f.req.Pending, f.req.Whole = pods[:pending:pending], pods[pending:whole]
			p, err := f.plan()
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		got, with, without := plan(at, len(pods)), plan(len(pods), len(pods)), plan(at, at)
		left := false
		whole := map[types.UID]bool{}
		for _, pod := range pods[at:] {
			whole[pod.UID] = true
		}
		for _, x := range with.NoHelp {
			for _, uid := range x.Pods {
				left = left || whole[uid]
			}
		}
		want := with
		if left || len(whole) == 0 {
			want = without
		}
		if said(got) != said(want) || got.Whole != (len(whole) > 0 && !left) {
			t.Errorf("of %d pods %d are to be served together (some would be left: %t); the plan is\n%s\nserving them: %t; want\n%s", len(pods), len(whole), left, said(got), got.Whole, said(want))
		}
		served[got.Whole]++
	})
	if served[true] == 0 || served[false] == 0 {
		t.Errorf("of the sets, %d were served and %d not", served[true], served[false])
	}
}
