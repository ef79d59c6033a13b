package core_test

import (
	"strings"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestTopologyLevelsThatCannotBeRead: the group isn't tried, and its condition, its members' and an event say
// what to write. Once the annotation can be read it is placed.
func TestTopologyLevelsThatCannotBeRead(t *testing.T) {
	w := newGroupWorld(t, func(*framework.Profile) {})
	group := testkit.PodGroup("gang", 2, "")
	group.Annotations = map[string]string{cluster.TopologyLevelsAnnotation: "topology.kubernetes.io/zone=must"}
	r := w.Step(w.now, door.Must(append(members("a", "b"), step.ObjectSet{Object: group})...)...)
	const want = `annotation berth.dev/topology-levels: "topology.kubernetes.io/zone" isn't required or preferred`
	if len(r.Binds) > 0 || len(r.StatusWrites) != 1 || r.StatusWrites[0].PodGroup == nil || !strings.HasPrefix(r.StatusWrites[0].PodGroup.Message, want) {
		t.Errorf("%d binds, and of the group is written: %+v", len(r.Binds), r.StatusWrites)
	}
	if len(r.Conditions) != 2 || !strings.HasPrefix(r.Conditions[0].Message, want) {
		t.Errorf("of the members is written: %+v", r.Conditions)
	}
	if e := r.Conditions[0].Event; e == nil || !strings.HasPrefix(e.Message, want) {
		t.Errorf("event: %+v", e)
	}
	fixed := group.DeepCopy()
	fixed.Annotations[cluster.TopologyLevelsAnnotation] = "topology.kubernetes.io/zone=preferred"
	binds := w.step(step.ObjectSet{Object: fixed})
	if binds = append(binds, w.step()...); len(binds) != 2 {
		t.Errorf("bound: %q", binds)
	}
}
