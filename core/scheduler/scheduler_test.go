package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestEachProfileHasItsEngine and pods of other schedulers have none.
func TestEachProfileHasItsEngine(t *testing.T) {
	schema := cluster.NewSchema()
	batch := plugins.Default(schema, plugins.Options{SchedulerName: "batch"})
	s := testkit.Must(scheduler.New(cluster.New(schema), []*framework.Profile{plugins.Default(schema, plugins.Options{}), batch}, engine.Options{}))
	of := func(name string) *cluster.Pod {
		b := testkit.Pod("p")
		b.Spec.SchedulerName = name
		return schema.ParsePod(b.Obj())
	}
	if s.Engine(of("batch")).Profile() != batch || !s.Responsible(of("batch")) || !s.Responsible(of("default-scheduler")) {
		t.Error("a profile has no engine, or another's")
	}
	if s.Responsible(of("other")) {
		t.Error("the scheduler feels responsible for the pods of another")
	}
	if _, err := scheduler.New(cluster.New(schema), []*framework.Profile{{SchedulerName: "heavy", Plugins: []framework.Weighted{{Plugin: batch.Plugins[0].Plugin, Weight: 1 << 40}}}}, engine.Options{}); err == nil {
		t.Error("a profile that no engine can serve is no error")
	}
}

func TestAGateKeepsAPodOut(t *testing.T) {
	w := newWorld(t, nil)
	if why := w.Gate(w.pod(testkit.Pod("free"))); why != nil {
		t.Errorf("a pod without a gate is kept out: %v", why)
	}
	if why := w.Gate(w.pod(testkit.Pod("gated").Gate("example.com/wait"))); why == nil || why.Messages[0] != "waiting for scheduling gates: [example.com/wait]" {
		t.Errorf("a gated pod is kept out for %+v, want its gates", why)
	}
}

// TestClassesThatNobodyUsesAreForgotten of engines that hold more than is kept: at once when
// that has grown by half, and otherwise after a while.
func TestClassesThatNobodyUsesAreForgotten(t *testing.T) {
	w := newWorld(t, nil)
	used, unused := w.pod(testkit.Pod("used").Req("cpu", "1")), w.pod(testkit.Pod("unused").Req("cpu", "2"))
	kept := w.Class(used)
	ask := func() {
		for _, p := range []*cluster.Pod{used, unused} {
			w.Engine(p).Best(w.Class(p))
		}
	}
	ask()
	asked := 0
	inUse := func() map[*engine.Class]bool { asked++; return map[*engine.Class]bool{kept: true} }
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name           string
		kept           engine.Size
		before         func()
		classes, asked int
	}{
		{"no more than is kept", engine.Size{Classes: 2, Columns: 2, KeyBytes: 1 << 20}, func() {}, 2, 0},
		{"too many classes", engine.Size{Classes: 1, Columns: 2, KeyBytes: 1 << 20}, func() {}, 1, 1},
		{"too many columns", engine.Size{Classes: 2, Columns: 1, KeyBytes: 1 << 20}, ask, 1, 2},
		{"keys that are too long", engine.Size{Classes: 2, Columns: 2, KeyBytes: 9}, ask, 1, 3},
		{"it was looked for just now", engine.Size{}, func() {}, 1, 3},
		{"a while ago", engine.Size{}, func() { now = now.Add(10 * time.Second) }, 1, 4},
	} {
		c.before()
		w.MaxHeld = c.kept
		w.ForgetClasses(now, inUse)
		if got := w.Engine(used).Size().Classes; got != c.classes || asked != c.asked {
			t.Errorf("%s: %d classes are left, and who uses them was asked %d times; want %d and %d", c.name, got, asked, c.classes, c.asked)
		}
	}
	if w.Class(used) != kept {
		t.Error("the class that is in use was forgotten")
	}
}

// TestQuestionsAboutAClassGoToItsEngine: whether changes help it, and what its message is.
func TestQuestionsAboutAClassGoToItsEngine(t *testing.T) {
	w := newWorld(t, fours("n1"), running("a", "4", 0, "n1"))
	class := w.Class(w.pod(vip()))
	d := w.Diagnose(class)
	from := w.Head()
	w.node(four("n2").Cordon())
	w.Remove("pod-a")
	changes, _ := w.Since(from)
	if help, _ := w.MayHelp(class, d, changes); help != engine.Fits {
		t.Errorf("a node has room now, and the change helps %d, want %d", help, engine.Fits)
	}
	if got, want := w.Refreshed(class, d).Message(), "0/2 nodes are available: 1 node(s) were unschedulable."; got != want {
		t.Errorf("the refreshed message is %q, want %q", got, want)
	}
}

// reader reads a pod's claims of the cluster when it signs, as far as it says.
type reader struct {
	framework.Plugin
	concerned string // the pod that it signs otherwise after each change
}

func (r reader) Reclassifies(*cluster.Change, *cluster.State) func(*cluster.Pod) bool {
	if r.concerned == "" {
		return nil
	}
	return func(p *cluster.Pod) bool { return p.Object.Name == r.concerned }
}

// TestPodsToReclassifyAreThoseThatSomePluginReadsAnew after changes.
func TestPodsToReclassifyAreThoseThatSomePluginReadsAnew(t *testing.T) {
	for _, c := range []struct {
		readers []string
		changes int
		want    string // of the pods a, b and c
	}{
		{[]string{"a", "b"}, 1, "ab"}, {[]string{"a", ""}, 1, "a"}, {[]string{""}, 1, "nobody"}, {[]string{"a"}, 0, "nobody"}, {nil, 1, "nobody"},
	} {
		w := newWorldWith(t, func(p *framework.Profile) {
			plain := p.Plugins[0].Plugin
			p.Plugins = nil
			for _, name := range c.readers {
				p.Plugins = append(p.Plugins, framework.Weighted{Plugin: reader{plain, name}})
			}
		}, nil)
		got := "nobody"
		if f := w.Reclassifies(make([]cluster.Change, c.changes)); f != nil {
			got = ""
			for _, name := range []string{"a", "b", "c"} {
				if f(w.pod(testkit.Pod(name))) {
					got += name
				}
			}
		}
		if got != c.want {
			t.Errorf("plugins read %q anew after %d changes: concerned is %s, want %s", c.readers, c.changes, got, c.want)
		}
	}
}

// TestClassesThatNameTheirNodesAreForgottenSoon when nobody uses them, and other classes stay.
func TestClassesThatNameTheirNodesAreForgottenSoon(t *testing.T) {
	w := newWorld(t, nil)
	now, asked := time.Unix(1000, 0), 0
	ordinary := w.pod(testkit.Pod("ordinary"))
	w.Class(ordinary)
	used := map[*engine.Class]bool{}
	for _, c := range []struct {
		name           string
		after          time.Duration
		classes, inUse int // that come, and that are in use from then on
		left, asked    int
	}{
		{"none", time.Minute, 0, 0, 0, 0},
		{"the first", 0, 1, 1, 1, 1},
		{"as many as are kept", time.Second, 256, 100, 257, 1},
		{"one too many", time.Second, 1, 0, 101, 2},
		{"as many as are kept, and half of those in use", time.Second, 306, 0, 407, 2},
		{"and one more", time.Second, 1, 0, 101, 3},
		{"no other, soon", 9 * time.Second, 0, 0, 101, 3},
		{"no other, after 10 seconds, and none in use", time.Second, 0, 0, 0, 4},
		{"none any more", time.Hour, 0, 0, 0, 4},
	} {
		now = now.Add(c.after)
		for i := range c.classes {
			class := w.Class(w.pod(testkit.DaemonPod("agent", fmt.Sprint(c.name, i))))
			used[class] = i < c.inUse
		}
		if c.left == 0 {
			clear(used)
		}
		w.ForgetClasses(now, func() map[*engine.Class]bool { asked++; return used })
		if size := w.Engine(ordinary).Size(); size.ByName != c.left || size.Classes != c.left+1 || asked != c.asked {
			t.Errorf("%s: %d classes by name of %d are left, and who uses them was asked %d times; want %d of %d and %d", c.name, size.ByName, size.Classes, asked, c.left, c.left+1, c.asked)
		}
	}
}
