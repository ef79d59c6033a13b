package nomination_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// inTurn returns the pods that are nominated to a node, in turn.
func (w *world) inTurn(node string) string {
	var pods []*cluster.Pod
	for _, n := range w.State.Nominations() {
		if n.Name == node {
			pods = append(pods, n.Pod)
		}
	}
	w.State.SortNominated(pods)
	var names []string
	for _, p := range pods {
		names = append(names, p.Object.Name)
	}
	return strings.Join(names, " ")
}

// TestPodsKeepTheirTurns has pods be nominated to a node, c before b before a: whoever stays there, or has the place of
// another, keeps its turn, and who comes anew has the last.
func TestPodsKeepTheirTurns(t *testing.T) {
	place := func(w *world, name string) {
		p, item := w.find(name)
		w.State.Place(item.Pod(), "n")
		p.Placed(w.State, "n")
	}
	for _, c := range []struct {
		name string
		do   func(w *world)
		want string
	}{
		{"nothing happens", func(*world) {}, "c b a"},
		{"an attempt is in vain", func(w *world) { w.decide("b", "") }, "c b a"},
		{"an attempt nominates it once more", func(w *world) {
			_, item := w.find("b")
			w.State.Nominate(item.Pod(), "") // for the attempt
			w.decide("b", "n")
		}, "c a b"},
		{"an attempt nominates it elsewhere, and another is in vain", func(w *world) { w.decide("b", "m"); w.decide("b", "") }, "c a b"},
		{"its place ends, and it has another there", func(w *world) { w.m.Release(w.Turn, "pod-b"); w.m.Reserve(w.Turn, "pod-b", "n") }, "c a b"},
		{"another takes its place", func(w *world) { w.m.HandOver(w.Turn, "pod-b", "pod-d", "n") }, "c d a"},
		{"another takes a place that isn't registered", func(w *world) {
			w.m.Reserve(w.Turn, "pod-b", "")
			w.m.HandOver(w.Turn, "pod-b", "pod-d", "")
			w.m.Reserve(w.Turn, "pod-d", "n")
		}, "c a d"},
		{"a pod has the turn of one that is gone", func(w *world) {
			was := w.State.NominationOf("pod-b")
			w.m.Release(w.Turn, "pod-b")
			p, _ := w.find("d")
			p.TakeTurn(was)
			w.m.Reserve(w.Turn, "pod-d", "n")
		}, "c d a"},
		{"and no place there", func(w *world) {
			p, _ := w.find("d")
			p.TakeTurn(w.State.NominationOf("pod-b"))
			w.m.Reserve(w.Turn, "pod-d", "m")
			w.m.Reserve(w.Turn, "pod-d", "n")
		}, "c b a d"},
		{"it is placed there, and its bind fails", func(w *world) {
			place(w, "b")
			p, item := w.find("b")
			w.State.Remove("pod-b")
			w.m.Restore(w.Turn, p, item)
		}, "c b a"},
		{"one is placed there, another is nominated, and then the bind fails", func(w *world) {
			place(w, "d")
			w.m.Reserve(w.Turn, "pod-e", "n")
			p, item := w.find("d")
			w.State.Remove("pod-d")
			w.m.Restore(w.Turn, p, item)
			w.m.KeepPlace(w.Turn, p, item, "n")
		}, "c b a d e"},
		{"one whose bind fails was nominated there before", func(w *world) {
			w.decide("d", "n")
			w.m.Reserve(w.Turn, "pod-e", "n")
			place(w, "d")
			p, item := w.find("d")
			w.State.Remove("pod-d")
			w.m.Restore(w.Turn, p, item)
			w.m.KeepPlace(w.Turn, p, item, "n")
		}, "c b a d e"},
	} {
		w := newWorld()
		w.State.SetNode(w.State.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "4").Obj(), ""))
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.shows(name, "")
		}
		for _, name := range []string{"c", "b", "a"} {
			w.m.Reserve(w.Turn, testkit.Pod(name).Obj().UID, "n")
		}
		if c.do(w); w.inTurn("n") != c.want {
			t.Errorf("%s: %q in turn, want %q", c.name, w.inTurn("n"), c.want)
		}
		if problems := w.problems(); len(problems) > 0 {
			t.Errorf("%s: %q", c.name, problems)
		}
	}
}

// TestAShownNominationIsSomebodyElses as long as no decision came after it.
func TestAShownNominationIsSomebodyElses(t *testing.T) {
	w := newWorld()
	w.shows("a", "")
	var got []string
	note := func() { p, _ := w.find("a"); got = append(got, p.Shown()) }
	note()
	w.shows("a", "n")
	note()
	w.decide("a", "n")
	note()
	w.shows("a", "m")
	w.decide("a", "")
	note()
	if want := []string{"", "n", "", ""}; !slices.Equal(got, want) {
		t.Errorf("somebody else has nominated it to %q, want %q", got, want)
	}
}
