package sim_test

import (
	"fmt"
	"testing"
)

// TestNodesOnTheirWayOutAreRecalled plays examples/scale-down/recalled.yaml with the second batch at
// several moments around the removal of the first one's nodes: before it, the nodes are needed; from
// their marking to the call to the provider, five seconds later, they are recalled; after it, others
// are bought.
func TestNodesOnTheirWayOutAreRecalled(t *testing.T) {
	playExample(t, "scale-down/recalled")
	const begins, marked, asked, ends = 980, 991.4, 996.4, 1010
	every := 1
	if testing.Short() {
		every = 6
	}
	for at := begins; at <= ends; at += every {
		at := float64(at)
		if at > asked-1 && at < asked+1 {
			continue // a plan is under way when the provider is asked
		}
		got := playExample(t, "scale-down/recalled", "after: 16m32s", fmt.Sprintf("after: %gs", at), "  expect:", "  expect: []\n#", "  - {metric:", "#")
		kept, launched := got.Decisions["NodeRecalled"], got.Nodes.Launched
		wantKept, wantLaunched := 0, 100
		switch {
		case at > asked:
			wantLaunched = 140
		case at > marked:
			wantKept = 40
		}
		if kept != wantKept || launched != wantLaunched {
			t.Errorf("when pods come after %g s, %d nodes are recalled and %d launched; want %d and %d", at, kept, launched, wantKept, wantLaunched)
		}
	}
}
