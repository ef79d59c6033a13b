package sim

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/internal/simulatedresizes"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/scenario"
)

// TestKubeletsResize has two pods on a node of 4 CPUs that grow: the second has to wait for the first, and a third
// never fits.
func TestKubeletsResize(t *testing.T) {
	w := newTestWorld(t, "  workload: [{name: none, count: 1, arrive: {after: 100h}, template: {spec: {containers: [{name: c}]}}}]\n")
	w.addNodes("n")
	to := func(name, after, cpu string) {
		w.create(testkit.Pod(name).Req("cpu", "1").Annotate(scenario.ResizeTo, `{"after": {"min": "`+after+`", "max": "`+after+`"}, "requests": {"cpu": "`+cpu+`"}}`).Obj())
	}
	to("a", "10s", "2")
	to("b", "20s", "1500m")
	to("c", "30s", "5")
	w.bindAll(t, "n")
	states := func(want string) {
		t.Helper()
		got := ""
		for _, p := range w.sortedPods() {
			cpu := simulatedresizes.Allocated(p.obj)["cpu"]
			got += p.obj.Name + " " + cpu.String() + " " + simulatedresizes.Pending(p.obj) + "; "
		}
		if got != want {
			t.Errorf("at %s: got %s, want %s", w.now, got, want)
		}
	}
	states("a 1 ; b 1 ; c 1 ; ")
	w.pass(8 * time.Second)
	states("a 2 ; b 1 ; c 1 ; ")
	w.pass(10 * time.Second)
	states("a 2 ; b 1 Deferred; c 1 ; ")
	w.pass(10 * time.Second)
	states("a 2 ; b 1 Deferred; c 1 Infeasible; ")
	before := *w.byName["default/b"].obj
	w.removePod(w.byName["default/a"])
	w.pass(time.Second)
	states("b 1500m ; c 1 Infeasible; ")
	if simulatedresizes.Pending(&before) != v1.PodReasonDeferred {
		t.Error("an object that Berth has read was changed")
	}
	got := w.stats.summary().Resizes
	if want := (scenario.Resizes{Requested: 3, Done: 2, Deferred: 1, Infeasible: 1, Waiting: 1}); got != want {
		t.Errorf("counted are %+v, want %+v", got, want)
	}
	if w.stats.requestedCPU != 2500 {
		t.Errorf("the node's pods count with %dm, want 2500m", w.stats.requestedCPU)
	}
}

// TestResizesInTheEnd: at rest it is a violation that a pod waits for a resize which its node could carry out, or which
// another node has room for.
func TestResizesInTheEnd(t *testing.T) {
	w := newTestWorld(t, "  workload: [{name: none, count: 1, arrive: {after: 100h}, template: {spec: {containers: [{name: c}]}}}]\n")
	w.run.Autoscale.MoveResizesAfter = time.Minute
	w.addNodes("n")
	web := replicaSet(1)
	web.Spec.Template.Spec = testkit.Pod("web").Req("cpu", "1").Spec
	w.createAll(web, testkit.Pod("full").Req("cpu", "3").Obj())
	w.pass(time.Second)
	w.bindAll(t, "n")
	var p *pod
	for _, q := range w.pods {
		if q.controller != nil {
			p = q
		}
	}
	w.resize(p, v1.ResourceList{"cpu": resource.MustParse("2")})
	w.pass(2 * time.Second)
	check := func(want int) {
		t.Helper()
		w.stats.Violations = nil
		var nodes []*v1.Node
		for _, n := range w.sortedNodes() {
			nodes = append(nodes, n.obj)
		}
		if w.checkResizes(nodes); len(w.stats.Violations) != want {
			t.Errorf("got violations %v, want %d", w.stats.Violations, want)
		}
	}
	check(0) // nothing can be done
	w.addNodes("m")
	check(1)
	w.run.Autoscale.MoveResizesAfter = 0
	check(0)
	w.byName["default/full"].gone = true // without the retry that its removal would bring
	p.node.pods = []*pod{p}
	check(1)
}
