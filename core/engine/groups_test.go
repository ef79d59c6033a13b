package engine

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// A node that moves through a hundred zones leaves no group behind: numbers of groups
// without nodes are used again.
func TestEmptyGroupsGiveTheirNumbersBack(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(New(s, plugins.Default(schema, plugins.Options{}), Options{}))
	c := e.Class(schema.ParsePod(testkit.Pod("p").Label("app", "web").SpreadHard(v1.LabelTopologyZone, 1, "app", "web").Obj()))
	put := func(name, zone string) {
		s.SetNode(schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "4Gi").Zone(zone).Obj(), ""))
	}
	put("stays", "a")
	for i := range 100 {
		put("moves", fmt.Sprint("z", i))
		best, ok := e.Best(c)
		if !ok || best.Score == 0 {
			t.Fatalf("in zone %d the best node is %+v, %v", i, best, ok)
		}
	}
	if n, keys := len(c.shared.groups), len(c.shared.byKey); n != 2 || keys != 2 {
		t.Errorf("%d groups by number and %d by key, want two of each", n, keys)
	}
	s.RemoveNode("moves")
	s.RemoveNode("stays")
	if _, ok := e.Best(c); ok || len(c.shared.byKey) != 0 || len(c.shared.free) != len(c.shared.groups) {
		t.Errorf("without nodes there is a best one: %v; %d groups by key, %d of %d numbers free", ok, len(c.shared.byKey), len(c.shared.free), len(c.shared.groups))
	}
}
