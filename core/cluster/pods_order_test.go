package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPodsOfUnknownNodesHaveAnOrder: whoever walks over all pods meets those of nodes that aren't
// known in the same order in each process.
func TestPodsOfUnknownNodesHaveAnOrder(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	for i := range 9 {
		testkit.Set(s, testkit.Pod(fmt.Sprint("p", i)).On(fmt.Sprint("gone", 9-i)).Obj())
	}
	var got []string
	s.Pods(func(p *cluster.Pod) { got = append(got, p.Object.Spec.NodeName) })
	if len(got) != 9 || !slices.IsSorted(got) {
		t.Errorf("pods are on %v", got)
	}
}
