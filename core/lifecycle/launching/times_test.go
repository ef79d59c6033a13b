package launching_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestUnderway follows three orders of a group: what was ordered, listed, registered and
// usable, under no limit.
func TestUnderway(t *testing.T) {
	m := launching.New(launching.Config{})
	schema := cluster.NewSchema()
	start := time.Unix(1000, 0)
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	node := func(name string) *cluster.NodeInfo { return schema.ParseNode(testkit.Node(name).Obj(), "g") }
	for _, x := range []struct {
		name   string
		happen func()
		want   string
	}{
		{"nothing", func() {}, "[]"},
		{"an order", func() { m.NodesOrdered(after(0), "g", 2) }, "[2 since 0s]"},
		{"another group's", func() { m.NodesOrdered(after(1), "h", 5) }, "[2 since 0s]"},
		{"a later order", func() { m.NodesOrdered(after(10), "g", 1) }, "[2 since 0s 1 since 10s]"},
		{"an instance is of the latest order", func() { m.InstanceListed(after(20), "g", "i", "") }, "[2 since 0s i since 10s]"},
		{"a node that isn't listed is of the oldest", func() { m.NodeSet(after(30), node("n"), false) }, "[1 since 0s n since 0s i since 10s]"},
		{"it is usable", func() { m.NodeSet(after(40), node("n"), true) }, "[1 since 0s i since 10s]"},
		{"the provider lists the instance no longer", func() { m.InstanceUnlisted("i", "") }, "[1 since 0s]"},
		{"after more than an hour and another order", func() { m.NodesOrdered(after(3610), "g", 3) }, "[3 since 1h0m10s]"},
	} {
		x.happen()
		var got []string
		for _, l := range m.Underway("g") {
			what := l.Node
			if what == "" {
				what = fmt.Sprint(l.Nodes)
			}
			got = append(got, fmt.Sprintf("%s since %s", what, l.Ordered.Sub(start)))
		}
		if fmt.Sprint(got) != x.want {
			t.Errorf("%s: got %v, want %s", x.name, got, x.want)
		}
	}
}
