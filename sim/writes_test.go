package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// TestTheLaterNominationOfAPodStays has many pods nominated to one node and then to
// another. Each call has a latency of its own, so some are served in the other order.
func TestTheLaterNominationOfAPodStays(t *testing.T) {
	w := newTestWorld(t, "  end: {at: 1h}\n")
	answers := 0
	var pods []*pod
	for i := range 30 {
		p := w.addPod(testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "1").Obj(), nil)
		pods = append(pods, p)
		for _, node := range []string{"first", "second"} {
			x := step.Nomination{UID: p.obj.UID, Namespace: "default", Name: p.obj.Name, Node: node}
			workers{w.berth}.Nominate(x, func(error) { answers++ })
		}
	}
	w.pass(time.Second)
	for _, p := range pods {
		if got := p.obj.Status.NominatedNodeName; got != "second" {
			t.Errorf("pod %s is nominated to %q, want second", p.name, got)
		}
	}
	if answers != 60 {
		t.Errorf("%d calls were answered, want 60", answers)
	}
}
