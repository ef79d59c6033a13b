package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/scenario"
)

// TestFaultsAreInForceForATimeAndAGroup: from the first instant to before the last, and
// for calls of their group only, if they have one.
func TestFaultsAreInForceForATimeAndAGroup(t *testing.T) {
	during := func(from, until time.Duration, group string) *scenario.Fault {
		return &scenario.Fault{From: metav1.Duration{Duration: from}, Until: metav1.Duration{Duration: until}, Group: group}
	}
	for _, c := range []struct {
		name  string
		fault *scenario.Fault
		now   time.Duration
		group string
		want  bool
	}{
		{"always", during(0, 0, ""), 0, "", true},
		{"before it begins", during(time.Minute, 0, ""), time.Minute - 1, "", false},
		{"when it begins", during(time.Minute, 0, ""), time.Minute, "", true},
		{"before it ends", during(0, time.Hour, ""), time.Hour - 1, "", true},
		{"when it ends", during(0, time.Hour, ""), time.Hour, "", false},
		{"of its group", during(0, 0, "g"), 0, "g", true},
		{"of another group", during(0, 0, "g"), 0, "h", false},
		{"of no group", during(0, 0, "g"), 0, "", false},
		{"for all groups", during(0, 0, ""), 0, "g", true},
	} {
		if got := inForce(c.fault, c.now, c.group); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCallsAreHitByTheirNameAndRate: a call's luck depends on its name and on the kind of
// the fault alone; so many calls are hit as the rate says; and with two faults of a kind
// either may hit.
func TestCallsAreHitByTheirNameAndRate(t *testing.T) {
	w := newTestWorld(t, `  faults:
  - {kind: APIError, rate: 0.3, until: 1h}
  - {kind: APIError, rate: 0.6, from: 2h, until: 3h}
  - {kind: APITimeout, rate: 0.3}
  - {kind: StockOut, until: 1h}
`)
	hits := func(kind string) (n int, which string) {
		for i := range 1000 {
			if w.faults.hits(w, kind, "", "call", fmt.Sprint(i)) {
				n++
				which += fmt.Sprint(i, " ")
			}
		}
		return n, which
	}
	first, calls := hits(scenario.APIError)
	if first < 250 || first > 350 {
		t.Errorf("got %d of 1,000 calls hit at a rate of 0.3", first)
	}
	if _, again := hits(scenario.APIError); again != calls {
		t.Error("calls of the same names are hit one time and not another")
	}
	if _, others := hits(scenario.APITimeout); others == calls {
		t.Error("faults of two kinds hit the same calls")
	}
	if n, _ := hits(scenario.AnswerLost); n > 0 {
		t.Errorf("got %d calls hit by a fault that the scenario doesn't have", n)
	}
	for _, c := range []struct {
		now      time.Duration
		low      int
		high     int
		stockOut bool
	}{{time.Hour - tick, 250, 350, true}, {time.Hour, 0, 0, false}, {2 * time.Hour, 550, 650, false}, {3 * time.Hour, 0, 0, false}} {
		w.now = c.now
		if n, _ := hits(scenario.APIError); n < c.low || n > c.high {
			t.Errorf("at %s: got %d of 1,000 calls hit, want %d to %d", c.now, n, c.low, c.high)
		}
		if got := w.faults.anyInForce(w, scenario.StockOut, "g"); got != c.stockOut {
			t.Errorf("at %s: a fault without a rate is in force: got %v, want %v", c.now, got, c.stockOut)
		}
	}
}

// TestEventsComeAtTheirTimes counts the deletions of pods that faults bring.
func TestEventsComeAtTheirTimes(t *testing.T) {
	for _, c := range []struct {
		name      string
		fault     string
		until     time.Duration
		low, high int
	}{
		{"at no time yet", "at: [1m, 5m]", time.Minute - tick, 0, 0},
		{"at the first time", "at: [1m, 5m]", time.Minute, 1, 1},
		{"at both times", "at: [1m, 5m]", time.Hour, 2, 2},
		{"next to never", "perHour: 1.0e-300", time.Hour, 0, 0},
		{"60 an hour, on average", "perHour: 60", time.Hour, 45, 75},
		{"from a time on", "perHour: 60, from: 2h", 2 * time.Hour, 0, 0},
		{"until a time", "perHour: 60, until: 1h", 10 * time.Hour, 45, 75},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, "  faults: [{kind: DeletePod, "+c.fault+"}]\n")
			const pods = 700
			for i := range pods {
				w.addPod(testkit.Pod(fmt.Sprint("p", i)).Obj(), nil)
			}
			w.pass(c.until)
			if got := pods - w.activePods(); got < c.low || got > c.high {
				t.Errorf("got %d events, want %d to %d", got, c.low, c.high)
			}
		})
	}
}

// eventWorld has two pods, a on node n and b waiting; a node in group g, and four nodes in
// none. One event comes after an hour.
func eventWorld(t *testing.T, event string) *World {
	t.Helper()
	w := newTestWorld(t, `  nodeGroups: [{name: g, max: 3, initial: 1, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  faults: [{`+event+`, at: [1h]}]
`)
	w.addNodes("n", "n2", "n3", "n4")
	a := w.addPod(testkit.Pod("a").Label("app", "w").Obj(), nil)
	w.addPod(testkit.Pod("b").Label("app", "w").Obj(), nil)
	if err := w.bind(a.obj.UID, "n"); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Hour - tick)
	return w
}

// TestWhatEventsDo: what an event of each kind changes at once, and what is left of that
// after a while.
func TestWhatEventsDo(t *testing.T) {
	up := func(w *World) string { return fmt.Sprintf("Berth is up: %v", w.berth.up) }
	stalled := func(w *World) string { return fmt.Sprintf("nothing is shown for %s", max(w.faults.stalled-w.now, 0)) }
	instances := func(w *World) string {
		return fmt.Sprintf("%d instances of %d, %d nodes", len(w.groups[0].instances), w.groups[0].target, len(w.nodes))
	}
	cordoned := func(w *World) string {
		var out []string
		for _, n := range w.sortedNodes() {
			if n.obj.Spec.Unschedulable {
				out = append(out, n.obj.Name)
			}
		}
		return "cordoned: " + strings.Join(out, " ")
	}
	warned := func(w *World) string {
		var out []string
		for _, n := range w.sortedNodes() {
			if n.hasTaint(spotTaint) {
				out = append(out, n.obj.Name)
			}
		}
		return fmt.Sprintf("warned: %s, %d instances of %d", strings.Join(out, " "), len(w.groups[0].instances), w.groups[0].target)
	}
	zones := func(w *World) string {
		labelled := 0
		for _, n := range w.nodes {
			if strings.Contains("abc", n.obj.Labels[v1.LabelTopologyZone]) && n.obj.Labels[v1.LabelTopologyZone] != "" {
				labelled++
			}
		}
		return fmt.Sprintf("%d nodes in a zone", labelled)
	}
	for _, c := range []struct {
		event          string
		look           func(*World) string
		before, during string
		wait           time.Duration
		after          string
	}{
		{"kind: CrashBerth", up, "Berth is up: true", "Berth is up: false", 5 * time.Second, "Berth is up: true"},
		{"kind: CrashBerth, for: 1m", up, "Berth is up: true", "Berth is up: false", time.Minute, "Berth is up: true"},
		{"kind: WatchStall", stalled, "nothing is shown for 0s", "nothing is shown for 30s", 30 * time.Second, "nothing is shown for 0s"},
		{"kind: WatchStall, for: 2m", stalled, "nothing is shown for 0s", "nothing is shown for 2m0s", 2 * time.Minute, "nothing is shown for 0s"},
		{"kind: SpotReclaim", instances, "1 instances of 1, 5 nodes", "0 instances of 0, 5 nodes", 2 * time.Second, "0 instances of 0, 4 nodes"},
		{"kind: SpotWarning, for: 30s", warned, "warned: , 1 instances of 1", "warned: g-0001, 1 instances of 1", 32 * time.Second, "warned: , 0 instances of 0"},
		{"kind: DeletePod", (*World).podNames, "a b", "a", time.Hour, "a"},
		{"kind: EvictPod", (*World).podNames, "a b", "a(terminating) b", 5 * time.Second, "b"},
		{"kind: Cordon, group: g", cordoned, "cordoned: ", "cordoned: g-0001", 10 * time.Minute, "cordoned: "},
		{"kind: Cordon, group: g, for: 1m", cordoned, "cordoned: ", "cordoned: g-0001", time.Minute, "cordoned: "},
		{"kind: Relabel", zones, "0 nodes in a zone", "1 nodes in a zone", time.Hour, "1 nodes in a zone"},
	} {
		t.Run(c.event, func(t *testing.T) {
			w := eventWorld(t, c.event)
			for _, s := range []struct {
				when string
				wait time.Duration
				want string
			}{{"before", 0, c.before}, {"when it has come", tick, c.during}, {fmt.Sprintf("%s after it", c.wait), c.wait, c.after}} {
				w.pass(s.wait)
				if got := c.look(w); got != s.want {
					t.Errorf("%s: got %q, want %q", s.when, got, s.want)
				}
			}
		})
	}
}

// TestReclaimsTakeAnInstanceOfTheirGroup: one that runs, not one that was only ordered.
func TestReclaimsTakeAnInstanceOfTheirGroup(t *testing.T) {
	w := newTestWorld(t, `  nodeGroups:
  - {name: g, max: 9, initial: 5, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  - {name: h, max: 9, initial: 1, launchDelay: {min: 1h, max: 1h}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  faults: [{kind: SpotReclaim, group: h, at: [1m, 2m]}]
`)
	if err := w.increaseTarget("h", 4); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		at   time.Duration
		want string
	}{
		{time.Minute - tick, "g has 5, h has 5, reclaimed at 0s"},
		{time.Minute, "g has 5, h has 4, reclaimed at 1m0s"},
		{2 * time.Minute, "g has 5, h has 4, reclaimed at 1m0s"}, // the others are ordered only
	} {
		w.pass(s.at - w.now)
		g, h := w.group("g"), w.group("h")
		if got := fmt.Sprintf("g has %d, h has %d, reclaimed at %s", len(g.instances), len(h.instances), h.lastReclaim); got != s.want {
			t.Errorf("at %s: got %s, want %s", s.at, got, s.want)
		}
	}
}

// TestTheEndOfACordonShowsNoNodeThatIsGone: a node may be deleted while it is cordoned.
func TestTheEndOfACordonShowsNoNodeThatIsGone(t *testing.T) {
	w := eventWorld(t, "kind: Cordon, group: g")
	w.pass(tick)
	w.terminate(w.groups[0].instances[0], false)
	w.pass(time.Minute)
	w.berth.inbox = nil
	w.pass(time.Hour)
	for _, in := range w.berth.inbox {
		if n, ok := in.(step.NodeSet); ok {
			t.Errorf("Berth is shown node %s", n.Node.Name)
		}
	}
}

// TestEventsWithoutAnythingToHappenTo change nothing.
func TestEventsWithoutAnythingToHappenTo(t *testing.T) {
	for _, kind := range []string{scenario.SpotReclaim, scenario.ReclaimDraining, scenario.ForbidEvictions, scenario.DeletePod, scenario.EvictPod, scenario.Cordon, scenario.Relabel} {
		w := newTestWorld(t, "  faults: [{kind: "+kind+", at: [1m]}]\n")
		w.pass(time.Hour)
		if w.lastChange > 0 {
			t.Errorf("%s in an empty world: something has changed at %s", kind, w.lastChange)
		}
	}
}

// TestEvictionEventsKeepToBudgets: a pod whose budget is used up stays.
func TestEvictionEventsKeepToBudgets(t *testing.T) {
	w := eventWorld(t, "kind: EvictPod")
	w.create(budgetFor("b", "max 0"))
	w.pass(time.Minute)
	if got, want := w.podNames(), "a b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestEventsHappenToPodsThatCount: not to one that terminates already or has ended.
func TestEventsHappenToPodsThatCount(t *testing.T) {
	w := newTestWorld(t, `  kubelet: {stop: {min: 10m, max: 10m}}
  faults: [{kind: DeletePod, at: [1h]}]
`)
	w.addNodes("n")
	for i := range 20 {
		p := w.addPod(testkit.Pod(fmt.Sprint("p", i)).With(func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) }).Obj(), nil)
		if err := w.bind(p.obj.UID, "n"); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(time.Hour - tick)
	pods := w.sortedPods()
	for i, p := range pods[:19] {
		if i%2 == 0 {
			w.deletePod(p)
		} else {
			w.endPod(p, v1.PodSucceeded)
		}
	}
	w.pass(tick)
	if !pods[19].terminating() || w.activePods() > 0 {
		t.Errorf("got %s, want the only pod that counts to terminate", w.podNames())
	}
}

// TestTheEndOfAFaultIsAChange: what was refused may succeed from then on, so the run must
// not be over before.
func TestTheEndOfAFaultIsAChange(t *testing.T) {
	w := newTestWorld(t, "  faults: [{kind: StockOut, until: 3h}]\n")
	if w.pass(3*time.Hour - tick); w.foreground != 1 || w.lastChange != 0 {
		t.Errorf("before the end: %d events keep the run going, the last change was at %s; want 1 and 0s", w.foreground, w.lastChange)
	}
	if w.pass(tick); w.foreground != 0 || w.lastChange != 3*time.Hour {
		t.Errorf("at the end: %d events keep the run going, the last change was at %s; want 0 and 3h", w.foreground, w.lastChange)
	}
}

// TestAStalledWatchShowsEverythingLaterInOrder: a change that is made while nothing
// arrives is shown when the longest stall is over, after those before it.
func TestAStalledWatchShowsEverythingLaterInOrder(t *testing.T) {
	w := newTestWorld(t, "  api: {watchLatency: {min: 1s, max: 1s}}\n  faults: [{kind: WatchStall, at: [10s], for: 20s}, {kind: WatchStall, at: [15s], for: 1s}]\n")
	shown := func() (out []string) {
		for _, in := range w.berth.inbox {
			if p, ok := in.(step.PodSet); ok {
				out = append(out, p.Pod.Name)
			}
		}
		return out
	}
	for _, s := range []struct {
		at   time.Duration
		add  string
		want string
	}{{9 * time.Second, "a", "[]"}, {17 * time.Second, "b", "[a]"}, {20 * time.Second, "c", "[a]"}, {30 * time.Second, "d", "[a b c]"}, {31 * time.Second, "", "[a b c d]"}} {
		w.pass(s.at - w.now)
		if got := fmt.Sprint(shown()); got != s.want {
			t.Errorf("at %s: Berth was shown %s, want %s", s.at, got, s.want)
		}
		if s.add != "" {
			w.addPod(testkit.Pod(s.add).Obj(), nil)
		}
	}
}
