package replay

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
)

// TestAnswersAreGivenOnceEach has two expanders of one chain give three recorded answers,
// among them one that forbids everything; then all options stay, and the fewest nodes
// decide.
func TestAnswersAreGivenOnceEach(t *testing.T) {
	var options []expander.Option
	for i, id := range []string{"a", "b", "c"} {
		options = append(options, expander.Option{Group: &cluster.NodeGroup{ID: id}, Nodes: 3 - i})
	}
	a := answers{left: [][]string{{"a", "b"}, {"a"}, {}}}
	chain, err := a.newChain("priority,grpc,least-nodes")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, -1, 2} {
		if got := chain.Choose(expander.Round{Number: i}, options); got != want {
			t.Errorf("in round %d option %d is chosen, want %d", i, got, want)
		}
	}
}
