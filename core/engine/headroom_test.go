package engine_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAStandInKeepsItsRoomFromOthers of equal or lower priority, stand-ins among them; not
// from the pods that its headroom admits.
func TestAStandInKeepsItsRoomFromOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		in   cluster.HeadroomID // that the pod stands in for
		want bool
	}{
		{"a pod that may have the room", testkit.Pod("p").Label("app", "web"), "", true},
		{"another", testkit.Pod("p").Label("app", "db"), "", false},
		{"another of lower priority", testkit.Pod("p").Label("app", "db").Priority(4), "", false},
		{"another of higher priority", testkit.Pod("p").Label("app", "db").Priority(6), "", true},
		{"a stand-in beside it", testkit.Pod("p").Label("app", "web"), "web", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			s.SetNode(schema.ParseNode(testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj(), ""))
			standIn := schema.ParsePod(testkit.Pod("buffer-0").Label("app", "web").Priority(5).Req("cpu", "3").Obj())
			standIn.StandIn = "web"
			s.Nominate(standIn, "n")
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
			b := c.pod.Req("cpu", "2")
			if b.Spec.Priority == nil {
				b.Priority(5)
			}
			p := schema.ParsePod(b.Obj())
			p.StandIn = c.in
			e.Class(p) // before there is the headroom
			s.SetHeadroom(&cluster.Headroom{ID: "web", Namespace: "default", Labels: map[string]string{"app": "web"}})
			if _, got := e.Best(e.Class(p)); got != c.want {
				t.Errorf("a node takes it: %t, want %t", got, c.want)
			}
			s.RemoveHeadroom("web")
			if _, got := e.Best(e.Class(p)); got != (p.Priority > 5) {
				t.Errorf("without the headroom a node takes it: %t", got)
			}
		})
	}
}
