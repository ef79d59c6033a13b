package replay_test

import (
	"slices"
	"testing"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim/replay"
)

func TestDiffComparesWhatBecameOfEachThing(t *testing.T) {
	placed := func(pod, node string) step.Decision { return step.Decision{Kind: step.Placed, Pod: pod, Node: node} }
	ordered := func(group string, nodes int) step.Decision {
		return step.Decision{Kind: step.ScaledUp, Group: group, Nodes: nodes}
	}
	removed := func(node string) step.Decision { return step.Decision{Kind: step.NodeRemoved, Node: node} }
	for _, c := range []struct {
		name          string
		recorded, now []step.Decision
		want          []replay.Difference
	}{
		{"nothing", nil, nil, nil},
		{"another node", []step.Decision{placed("a", "n1")}, []step.Decision{placed("a", "n2")}, []replay.Difference{{What: "pod a", Recorded: "n1", Now: "n2"}}},
		{"the last node counts", []step.Decision{placed("a", "n1"), placed("a", "n2")}, []step.Decision{placed("a", "n2")}, nil},
		{"not placed", []step.Decision{placed("a", "n1")}, nil, []replay.Difference{{What: "pod a", Recorded: "n1", Now: "nothing"}}},
		{"orders add up", []step.Decision{ordered("g", 2), ordered("g", 1)}, []step.Decision{ordered("g", 3)}, nil},
		{"fewer nodes", []step.Decision{ordered("g", 2), ordered("g", 1)}, []step.Decision{ordered("g", 1)}, []replay.Difference{{What: "group g", Recorded: "3 nodes ordered", Now: "1 nodes ordered"}}},
		{"a node stays", []step.Decision{removed("n1")}, nil, []replay.Difference{{What: "node n1", Recorded: "removed", Now: "nothing"}}},
		{"other kinds don't count", []step.Decision{{Kind: step.Waits, Pod: "a"}}, nil, nil},
		{"in the order of the recording, then of the replay",
			[]step.Decision{placed("b", "n1"), placed("a", "n1")}, []step.Decision{placed("c", "n1"), placed("a", "n2")},
			[]replay.Difference{{What: "pod b", Recorded: "n1", Now: "nothing"}, {What: "pod a", Recorded: "n1", Now: "n2"}, {What: "pod c", Recorded: "nothing", Now: "n1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := replay.Diff(c.recorded, c.now); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
