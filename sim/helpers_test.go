package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/scenario"
)

// newTestWorld returns the world of a scenario's spec. Tests of its parts move its clock
// and never let Berth step: pods are bound by the test.
func newTestWorld(t *testing.T, spec string) *World {
	t.Helper()
	run, err := scenario.Parse("test.yaml", []byte("apiVersion: berth.dev/v1alpha1\nkind: Scenario\nspec:\n  seed: 1\n"+spec))
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(run, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// pass lets time pass, with all that happens in it.
func (w *World) pass(d time.Duration) {
	end := w.now + d
	for w.next(end) {
	}
	w.now = end
}

// addNodes adds ready nodes with these names.
func (w *World) addNodes(names ...string) {
	for _, name := range names {
		w.addNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), nil)
	}
}

// bindAll binds every pod without a node to a node, and waits until all run.
func (w *World) bindAll(t *testing.T, node string) {
	t.Helper()
	for _, p := range w.sortedPods() {
		if p.active() && p.obj.Spec.NodeName == "" {
			if err := w.bind(p.obj.UID, node); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.pass(5 * time.Second)
}

// podNames returns the names of the pods of the API without their namespace, each with a
// state if it isn't active: "a b(terminating) c(ended)".
func (w *World) podNames() string {
	var out []string
	for _, p := range w.sortedPods() {
		name := p.obj.Name
		switch {
		case p.terminating():
			name += "(terminating)"
		case p.ended:
			name += "(ended)"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// activePods returns how many pods count for their controllers.
func (w *World) activePods() int {
	return len(slices.DeleteFunc(w.sortedPods(), func(p *pod) bool { return !p.active() }))
}

// createAll creates objects.
func (w *World) createAll(objects ...runtime.Object) {
	for _, obj := range objects {
		w.create(obj)
	}
}
