package scaledown_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestOrder has nodes come and go between passes, several in one place, and compares the order with
// all names sorted anew.
func TestOrder(t *testing.T) {
	schema := cluster.NewSchema()
	world := cluster.New(schema)
	rng := rand.New(rand.NewPCG(1, 2))
	var orderer scaledown.Orderer
	var cursor cluster.Cursor
	cursor.Read(world)
	for pass := range 300 {
		for range rng.IntN(8) {
			name := fmt.Sprintf("n%02d", rng.IntN(40))
			if rng.IntN(2) == 0 {
				world.SetNode(schema.ParseNode(testkit.Node(name).Obj(), ""))
			} else {
				world.RemoveNode(name)
			}
		}
		changes, ok := cursor.Read(world)
		if !ok {
			t.Fatal("the journal doesn't reach back to the last pass")
		}
		var want []string
		world.Nodes(func(n *cluster.Node) { want = append(want, n.Name) })
		slices.Sort(want)
		if got := orderer.Order(world, changes); !slices.Equal(got, want) {
			t.Fatalf("pass %d lists\n%v, want\n%v", pass, got, want)
		}
	}
}
