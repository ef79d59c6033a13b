package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestForgottenTermsLeaveNoClass has a pod's term read the label x, and, when it is forgotten,
// another's the label z: a pod whose z is what another's x was is no pod of that one's class.
func TestForgottenTermsLeaveNoClass(t *testing.T) {
	w, e, _ := setUp(2)
	w.State.SetNode(w.State.Schema.ParseNode(testkit.Node("n0").Label(v1.LabelHostname, "n0").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), ""))
	place := func(name, key string) {
		w.State.Place(w.State.Schema.ParsePod(testkit.Pod(name).Apart(v1.LabelHostname, key, "1").Obj()), "n0")
	}
	place("first", "x")
	parse := func(name, key string) *cluster.Pod {
		return w.State.Schema.ParsePod(testkit.Pod(name).Req("cpu", "1").Label(key, "1").Obj())
	}
	old := e.Class(parse("p", "x"))
	w.State.Remove("pod-first")
	w.State.Forget()
	if n := len(w.State.Terms()); n != 0 {
		t.Fatalf("%d terms are left", n)
	}
	place("second", "z")
	if e.Class(parse("q", "z")) == old {
		t.Error("pods of other labels are one class: what a term reads now, and what one read that is forgotten")
	}
}

// TestRulesAreMadeAnewWhenTermsWereForgotten, and hold no facts about them any more.
func TestRulesAreMadeAnewWhenTermsWereForgotten(t *testing.T) {
	w, e, _ := setUp(2)
	w.State.SetNode(w.State.Schema.ParseNode(testkit.Node("n0").Label(v1.LabelHostname, "n0").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), ""))
	w.State.Place(w.State.Schema.ParsePod(testkit.Pod("owner").Apart(v1.LabelHostname, "app", "web").Obj()), "n0")
	class := e.Class(w.State.Schema.ParsePod(testkit.Pod("p").Req("cpu", "1").Label("app", "web").Obj()))
	best := func(want int) {
		t.Helper()
		e.Best(class)
		if got := len(w.State.Facts()); got != want {
			t.Errorf("%d facts are kept, want %d", got, want)
		}
	}
	best(1)
	w.State.Remove("pod-owner")
	best(1)
	w.State.Forget()
	best(0)
	e.Sweep(func(*engine.Class) bool { return false })
}
