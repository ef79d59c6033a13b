package core_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// gang has the pods of a group wait until so many of them have a node, and lets go
// of all when one does. It is what a plugin for gangs does at these points.
type gang struct {
	name     string
	patience time.Duration
	held     map[types.UID]string // pods it keeps something for, with their nodes
	bound    map[types.UID]string
	log      *[]string
	full     int // refuses to reserve more than that; 0 for any number
}

func newGang(name string, patience time.Duration, log *[]string) *gang {
	return &gang{name: name, patience: patience, held: map[types.UID]string{}, bound: map[types.UID]string{}, log: log}
}

func (g *gang) Name() string { return g.name }

func (g *gang) say(format string, args ...any) {
	*g.log = append(*g.log, g.name+" "+fmt.Sprintf(format, args...))
}

func size(p *cluster.Pod) (group string, n int) {
	group = p.Object.Labels["gang"]
	if group != "" {
		n, _ = strconv.Atoi(group[strings.LastIndex(group, "-")+1:])
	}
	return group, n
}

func (g *gang) Reserve(p *cluster.Pod, n *cluster.Node) *framework.Reason {
	if g.full > 0 && len(g.held) >= g.full {
		return &framework.Reason{Plugin: g.name, Messages: []string{"no license is left"}}
	}
	if at, ok := g.held[p.UID]; ok {
		panic(fmt.Sprintf("%s was reserved for already, on %s", p.UID, at))
	}
	g.held[p.UID] = n.Name
	g.say("reserves %s on %s", p.Object.Name, n.Name)
	return nil
}

func (g *gang) Unreserve(p *cluster.Pod, node string, waiting framework.WaitingPods) {
	if g.held[p.UID] != node {
		panic(fmt.Sprintf("%s was reserved for on %q, not on %q", p.UID, g.held[p.UID], node))
	}
	delete(g.held, p.UID)
	g.say("unreserves %s on %s", p.Object.Name, node)
	group, n := size(p)
	if n == 0 {
		return
	}
	waiting.Each(func(w framework.WaitingPod) {
		if other, _ := size(w.Pod()); other == group {
			w.Reject(g.name, "its gang is not complete")
		}
	})
}

func (g *gang) Permit(p *cluster.Pod, _ *cluster.Node, waiting framework.WaitingPods) framework.Permission {
	group, n := size(p)
	if n == 0 {
		return framework.Permission{}
	}
	if p.Object.Labels["refused"] != "" {
		return framework.Permission{Reason: &framework.Reason{Plugin: g.name, Messages: []string{"this one is not wanted"}}}
	}
	var there []framework.WaitingPod
	waiting.Each(func(w framework.WaitingPod) {
		if other, _ := size(w.Pod()); other == group {
			there = append(there, w)
		}
	})
	if len(there)+1 < n {
		return framework.Permission{Wait: g.patience}
	}
	for _, w := range there {
		w.Allow(g.name)
	}
	return framework.Permission{}
}

func (g *gang) PostBind(p *cluster.Pod, node string) {
	if g.held[p.UID] != node {
		panic(fmt.Sprintf("%s is bound to %s, and was reserved for on %q", p.UID, node, g.held[p.UID]))
	}
	delete(g.held, p.UID)
	g.bound[p.UID] = node
	g.say("has seen %s bound to %s", p.Object.Name, node)
}

// permitting is a core with two gang plugins, the second of which is more patient.
type permitting struct {
	t      *testing.T
	c      *core.Core
	now    time.Time
	log    []string
	a, b   *gang
	ready  step.Ready
	ledger []string
}

func newPermitting(t *testing.T, nodes int) *permitting {
	w := &permitting{t: t, now: time.Unix(1000, 0)}
	w.a, w.b = newGang("first", 30*time.Second, &w.log), newGang("second", 60*time.Second, &w.log)
	schema := cluster.NewSchema()
	profile := withGangs(plugins.Default(schema, plugins.Options{}), w.a, w.b)
	c, err := core.New(schema, core.DefaultConfig(profile))
	if err != nil {
		t.Fatal(err)
	}
	w.c = c
	for _, name := range testkit.Names("n", nodes) {
		w.step(0, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()})
	}
	return w
}

func withGangs(p *framework.Profile, gangs ...*gang) *framework.Profile {
	for _, g := range gangs {
		p.Reservers, p.Permitters, p.PostBinders = append(p.Reservers, g), append(p.Permitters, g), append(p.PostBinders, g)
	}
	return p
}

func (w *permitting) step(wait time.Duration, in ...step.Input) {
	w.now = w.now.Add(wait)
	w.ready = w.c.Step(w.now, door.Must(in...)...)
	for i := range w.ready.Decisions {
		w.ledger = append(w.ledger, w.ready.Decisions[i].String())
	}
}

func (w *permitting) binds() (out []string) {
	for _, b := range w.ready.Binds {
		out = append(out, b.Name)
	}
	return out
}

func member(name, gang string) *testkit.PodBuilder {
	return testkit.Pod(name).Req("cpu", "1").Label("gang", gang)
}

func (w *permitting) expect(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: got %v, want %v; ledger:\n%s", what, got, want, strings.Join(w.ledger, "\n"))
	}
}

func TestPermitHoldsAGangUntilItIsComplete(t *testing.T) {
	w := newPermitting(t, 2)
	w.step(0, step.PodSet{Pod: member("a", "x-3").Obj()}, step.PodSet{Pod: member("b", "x-3").Obj()}, step.PodSet{Pod: testkit.Pod("alone").Req("cpu", "1").Obj()})
	w.expect("bound at once", w.binds(), "[alone]")
	w.expect("wakes when the first gives up", w.ready.NextWake, w.now.Add(30*time.Second))
	x, _ := w.c.View().Explain("default", "a")
	w.expect("explained", x.Permissions, []explain.PermissionWait{{Plugin: "first", Until: w.now.Add(30 * time.Second)}, {Plugin: "second", Until: w.now.Add(time.Minute)}})
	w.step(5*time.Second, step.PodSet{Pod: member("c", "x-3").Obj()})
	w.expect("bound when complete", w.binds(), "[c a b]")
	w.expect("waits", w.ready.PermitWaits, []step.PermitWait{{Allowed: true, Took: 5 * time.Second}, {Allowed: true, Took: 5 * time.Second}})
	for _, b := range w.ready.Binds {
		w.c.Step(w.now, door.Must(step.BindDone{UID: b.UID})...)
	}
	w.expect("told of what was bound", len(w.b.bound), 3)
}

func TestPermitTimesOut(t *testing.T) {
	w := newPermitting(t, 2)
	w.step(0, step.PodSet{Pod: member("a", "x-2").Obj()})
	w.step(30*time.Second - 1)
	w.expect("too early", len(w.ready.Decisions), 0)
	w.step(1)
	w.expect("condition", w.ready.Conditions[0].Message, "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin first.")
	w.expect("reason", w.ready.Conditions[0].Reason, "Unschedulable")
	w.expect("waits", w.ready.PermitWaits, []step.PermitWait{{Took: 30 * time.Second}})
	node := w.a.log
	w.expect("rolled back in reverse", strings.Join((*node)[len(*node)-2:], "; "), fmt.Sprintf("second unreserves a on %[1]s; first unreserves a on %[1]s", nodeOf(*node)))
	w.step(0, step.PodSet{Pod: testkit.Pod("big").Req("cpu", "2").Obj()}, step.PodSet{Pod: testkit.Pod("bigger").Req("cpu", "2").Obj()})
	w.expect("its room is free", w.binds(), "[big bigger]")
	w.step(time.Second, step.PodGone{UID: "pod-big"})
	w.expect("tried again after its backoff", strings.HasPrefix(w.ledger[len(w.ledger)-1], "Permitting pod default/a"), true)
}

// nodeOf reads the node from the last line.
func nodeOf(log []string) string { return log[len(log)-1][strings.LastIndex(log[len(log)-1], " ")+1:] }

func TestOneRejectionLetsGoOfTheGang(t *testing.T) {
	w := newPermitting(t, 3)
	w.step(0, step.PodSet{Pod: member("a", "x-3").Obj()}, step.PodSet{Pod: member("b", "x-3").Obj()},
		step.PodSet{Pod: member("c", "x-3").Label("refused", "yes").Obj()})
	w.expect("nobody is bound", len(w.ready.Binds), 0)
	w.expect("all are refused", strings.Count(strings.Join(w.ledger, "\n"), "Refused"), 3)
	w.expect("and nothing is kept", len(w.a.held)+len(w.b.held), 0)
	w.expect("they are tried again", w.ready.NextWake.IsZero(), false)
}

func TestReserveRefuses(t *testing.T) {
	w := newPermitting(t, 1)
	w.b.full = 1
	w.step(0, step.PodSet{Pod: testkit.Pod("a").Req("cpu", "1").Obj()}, step.PodSet{Pod: testkit.Pod("b").Req("cpu", "1").Obj()})
	w.expect("bound", w.binds(), "[a]")
	w.expect("condition", w.ready.Conditions[0].Message, "0/1 nodes are available: 1 no license is left.")
	w.expect("only what was kept is let go", w.log[len(w.log)-1], "first unreserves b on n0")
	w.step(0, step.BindDone{UID: "pod-a"})
	w.step(time.Second)
	w.expect("bound later", w.binds(), "[b]")
}

func TestWhatEndsAWaitForPermission(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     func(node string) []step.Input
		ledger string // the last entry that it makes
		again  bool   // whether the pod is tried again
	}{
		{"the pod is deleted", func(string) []step.Input { return []step.Input{step.PodGone{UID: "pod-a"}} }, "", false},
		{"it is being deleted", func(string) []step.Input {
			p := member("a", "x-2").Obj()
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
			return []step.Input{step.PodSet{Pod: p}}
		}, "", false},
		{"somebody binds it elsewhere", func(node string) []step.Input {
			return []step.Input{step.PodSet{Pod: member("a", "x-2").On(other(node)).Obj()}}
		}, "", false},
		{"its node goes", func(node string) []step.Input { return []step.Input{step.NodeGone{Name: node}} }, "Refused pod default/a node NODE: node NODE is gone", true},
		{"a pod of higher priority needs the room", func(string) []step.Input {
			return []step.Input{
				step.PodSet{Pod: testkit.Pod("p1").Priority(10).Req("cpu", "2").Obj()},
				step.PodSet{Pod: testkit.Pod("p2").Priority(10).Req("cpu", "2").Obj()}}
		}, "Refused pod default/a node NODE: preempted", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newPermitting(t, 2)
			w.step(0, step.PodSet{Pod: member("a", "x-2").Obj()})
			node := w.a.held["pod-a"]
			w.ledger = nil
			w.step(time.Second, c.in(node)...)
			if want := strings.ReplaceAll(c.ledger, "NODE", node); want != "" && !slices.Contains(w.ledger, want) {
				t.Errorf("the ledger has no %q:\n%s", want, strings.Join(w.ledger, "\n"))
			}
			w.expect("kept", w.a.held["pod-a"]+w.b.held["pod-a"], "")
			w.expect("evictions", len(w.ready.Preemptions), 0)
			for range 5 { // past its backoff, and that of those who took its place
				in := []step.Input{step.NodeSet{Node: testkit.Node("late").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()}}
				for _, b := range w.ready.Binds {
					in = append(in, step.BindDone{UID: b.UID})
				}
				w.step(time.Second, in...)
			}
			again := slices.ContainsFunc(w.ledger, func(l string) bool { return strings.HasPrefix(l, "Permitting pod default/a") })
			w.expect("tried again", again, c.again)
			w.step(0, step.PodGone{UID: "pod-a"})
			w.expect("kept in the end", w.a.held["pod-a"]+w.b.held["pod-a"], "")
		})
	}
}

func other(node string) string {
	if node == "n0" {
		return "n1"
	}
	return "n0"
}

// TestPropertyReservationsComeToAnEnd answers binds late, in any order and with
// failures, while pods and nodes come and go: in the end each reservation was
// taken back or has become a binding, and nobody waits.
func TestPropertyReservationsComeToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var log []string
		a, b := newGang("first", 30*time.Second, &log), newGang("second", 7*time.Second, &log)
		e := newEdge(t, func(schema *cluster.Schema) *framework.Profile { return withGangs(defaults(schema), a, b) })
		a.full = rapid.IntRange(0, 6).Draw(t, "licenses")
		b.full = a.full
		for _, in := range randomHistory(t) {
			for _, x := range in {
				if p, ok := x.(step.PodSet); ok && rapid.Bool().Draw(t, "in a gang") {
					if p.Pod.Labels == nil {
						p.Pod.Labels = map[string]string{}
					}
					p.Pod.Labels["gang"] = fmt.Sprintf("g%d-%d", rapid.IntRange(0, 2).Draw(t, "gang"), rapid.IntRange(2, 4).Draw(t, "size"))
					if rapid.IntRange(0, 9).Draw(t, "refused") == 0 {
						p.Pod.Labels["refused"] = "yes"
					}
				}
			}
			e.step(500*time.Millisecond, 20, append(e.some(rapid.IntRange(0, 3).Draw(t, "answers")), in...)...)
			if len(a.held) != len(b.held) {
				e.fatalf("the first plugin keeps %v, the second %v", a.held, b.held)
			}
		}
		a.full, b.full = 0, 0
		// Gangs that will never be complete go, and all others are placed.
		var gone []step.Input
		for _, uid := range slices.Sorted(maps.Keys(e.pods)) {
			if e.pods[uid].Labels["gang"] != "" && e.pods[uid].Spec.NodeName == "" {
				gone = append(gone, step.PodGone{UID: uid})
			}
		}
		e.step(time.Second, 0, gone...)
		e.settle()
		if n := len(a.held) + len(b.held); n > 0 {
			e.fatalf("%d reservations are left: %v, %v", n, a.held, b.held)
		}
	})
}

var errRefused = errors.New("refused")

// TestBindConflicts shows what is said and kept when a bind comes to nothing.
func TestBindConflicts(t *testing.T) {
	w := newPermitting(t, 2)
	w.step(0, step.PodSet{Pod: testkit.Pod("a").Req("cpu", "2").Obj()})
	first := w.ready.Binds[0]
	w.step(0, step.BindDone{UID: first.UID, Err: errRefused})
	w.expect("ledger", w.ledger[len(w.ledger)-1], fmt.Sprintf("Unplaced pod default/a node %s: refused", first.Node))
	w.expect("kept", len(w.a.held)+len(w.b.held), 0)
	w.expect("reason", w.ready.Conditions[0].Reason, "SchedulerError")
	w.step(time.Second)
	w.expect("tried again", w.binds(), "[a]")
	// Somebody else has bound it while the bind was under way.
	w.step(0, step.PodSet{Pod: testkit.Pod("a").Req("cpu", "2").On(other(w.ready.Binds[0].Node)).Obj()}, step.BindDone{UID: first.UID, Err: errRefused})
	w.expect("kept", len(w.a.held)+len(w.b.held), 0)
	w.expect("nothing is said", len(w.ready.Conditions), 0)
	w.expect("unsettled", w.c.Unsettled(), "[]")
}
