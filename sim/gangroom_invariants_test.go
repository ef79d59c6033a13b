package sim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestRoomOfAGangIsChecked binds pods into room that is kept for a gang of priority 0 on node a, of which they
// leave too little, and room that is kept for too long.
func TestRoomOfAGangIsChecked(t *testing.T) {
	pod := func(cpu string, priority int32, deadline int64) *testkit.PodBuilder {
		p := testkit.Pod("p").Req("cpu", cpu).Priority(priority)
		if deadline > 0 {
			p.Spec.ActiveDeadlineSeconds = &deadline
		}
		return p
	}
	intruded := "pod default/p was placed on node a in the room of pod group default/gang, and may not end in time"
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		node string
		was  bool // on the node before
		want []string
	}{
		{"for ever", pod("2", 0, 0), "a", false, []string{intruded}},
		{"for too long", pod("2", 0, 700), "a", false, []string{intruded}},
		{"in time", pod("2", 0, 500), "a", false, nil},
		{"beside the room", pod("1", 0, 0), "a", false, nil},
		{"on another node", pod("2", 0, 0), "b", false, nil},
		{"of a lower priority", pod("2", -1, 0), "a", false, nil},
		{"that was there", pod("2", 0, 0), "a", true, nil},
		{"of the gang", pod("2", 0, 0).PodGroup("gang"), "a", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, noGroups)
			for _, name := range []string{"a", "b"} {
				w.know(step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj()})
			}
			w.addPod(c.pod.Obj(), nil)
			w.know(step.PodSet{Pod: c.pod.On(c.node).Obj()})
			w.room = &gangRoom{group: "default/gang", until: w.serverTime().Add(10 * time.Minute), kept: map[string]int64{"a": 3000},
				before: map[types.UID]bool{"pod-p": c.was}, longest: time.Hour}
			w.checkRoom(&step.Ready{Binds: []step.Bind{{UID: "pod-p", Node: c.node}}})
			w.wantViolations(t, c.want...)
			w.now += 2 * time.Hour
			w.checkRoom(&step.Ready{})
			w.wantViolations(t, append(c.want, "room is kept for pod group default/gang since 0s")...)
			w.checkRoom(&step.Ready{Decisions: []step.Decision{{Kind: step.RoomLost, PodGroup: "default/gang"}}})
			if w.room != nil {
				t.Error("room is still known that was given back")
			}
		})
	}
}
