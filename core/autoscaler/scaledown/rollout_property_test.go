package scaledown_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyNodesOfAGroupThatRollsOutStay has a group begin to roll out and end it between passes over
// clusters with random histories: no pass removes a node while it does, and each keeps the rules.
func TestPropertyNodesOfAGroupThatRollsOutStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 6).Draw(t, "passes") {
			if testkit.Uniform(t, 2, "change") == 0 {
				h.change()
			}
			g := *h.State.Group("g")
			g.KeepNodes = []string{"", "it is rolling out"}[testkit.Uniform(t, 2, "rolls out")]
			h.log = append(h.log, "the group's nodes are kept: "+g.KeepNodes)
			h.State.SetGroup(g.ID, &g)
			if plan := h.check(); g.KeepNodes != "" && len(plan.Removals) > 0 {
				h.fail("%d nodes would go though their group rolls out", len(plan.Removals))
			}
		}
	})
}
