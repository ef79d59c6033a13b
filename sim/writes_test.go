package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
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

// TestANodeIsCordonedAndNotedWithItsTaint: with the taint come the cordon and the note, and
// with it they go.
func TestANodeIsCordonedAndNotedWithItsTaint(t *testing.T) {
	w := newTestWorld(t, "  end: {at: 1h}\n")
	w.addNodes("n")
	taint := v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: "1", Effect: v1.TaintEffectNoSchedule}
	for _, x := range []struct {
		taint step.Taint
		want  string // whether it is tainted and unschedulable, and its note
	}{
		{step.Taint{Taint: taint, Cordon: true, Note: "why"}, "true true cordoned; why"},
		{step.Taint{Taint: v1.Taint{Key: "other"}, Remove: true}, "true true cordoned; why"},
		{step.Taint{Taint: taint, Remove: true, Note: "why"}, "false false "},
	} {
		x.taint.Node = "n"
		before := w.nodes["n"].obj.Annotations[autoscaler.RemovalNote]
		old := w.nodes["n"].obj
		if err := w.taint(x.taint); err != nil {
			t.Fatal(err)
		}
		n := w.nodes["n"]
		if got := fmt.Sprint(n.hasTaint(taint.Key), n.obj.Spec.Unschedulable, " ", n.obj.Annotations[autoscaler.RemovalNote]); got != x.want {
			t.Errorf("after %+v: got %q, want %q", x.taint, got, x.want)
		}
		if old.Annotations[autoscaler.RemovalNote] != before {
			t.Errorf("%+v has changed an object that Berth has read", x.taint)
		}
	}
}
