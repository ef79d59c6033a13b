package core_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// shadow is a core that shadows another scheduler, whose part the test plays. Any work that it
// asks for fails the test.
type shadow struct {
	*driven
	now      time.Time
	compared []step.Comparison     // in the last call of after
	nodes    []step.NodeComparison // likewise
	groups   []step.Decision       // about pod groups, of all calls
}

func newShadow(t rapid.TB, change func(*core.Config)) *shadow {
	cfg := core.DefaultConfig()
	how := core.DefaultShadow()
	cfg.Shadow = &how
	change(&cfg)
	s := &shadow{now: time.Unix(1000, 0)}
	s.driven = newDriven(t, cfg, inlinePlans{}, defaults, drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		s.nodes = append(s.nodes, r.NodeComparisons...)
		s.compared = append(s.compared, r.Comparisons...)
		for i := range r.Decisions {
			if r.Decisions[i].PodGroup != "" {
				s.groups = append(s.groups, r.Decisions[i])
			}
		}
		if work := asksFor(r); work != "" {
			t.Errorf("the shadow asks for %s: %+v", work, r)
		}
	}))
	s.BecomeLeader(s.now)
	return s
}

// asksFor names a kind of work that a Step asks for, "" for none.
func asksFor(r *step.Ready) string {
	x := reflect.ValueOf(*r)
	for i := range x.NumField() {
		switch name := x.Type().Field(i).Name; name {
		case "Comparisons", "NodeComparisons", "Decisions", "Plan", "NextWake":
		case "ScaleUpFailures", "RemovalWaits": // what was seen, for metrics
		default:
			if x.Field(i).Len() > 0 {
				return name
			}
		}
	}
	return ""
}

// after takes Steps at once and a while later, as often as the core wants to be woken until then.
func (s *shadow) after(wait time.Duration, in ...step.Input) {
	s.t.Helper()
	s.compared, s.nodes = nil, nil
	end := s.now.Add(wait)
	for {
		wake := s.step(s.now, in...)
		if in = s.take(); len(in) > 0 {
			continue // a plan was made
		}
		if wake.IsZero() || wake.After(end) {
			break
		}
		s.now = wake
	}
	s.now = end
	s.stepOut(s.now)
}

// verdicts returns what the last call has compared, a line each.
func (s *shadow) verdicts() string {
	var out []string
	for _, c := range s.compared {
		line := fmt.Sprintf("%s %s", strings.TrimPrefix(c.Pod, "default/"), c.Verdict)
		if c.Plugin != "" {
			line += " by " + c.Plugin
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

func set(pods ...*testkit.PodBuilder) (in []step.Input) {
	for _, p := range pods {
		in = append(in, step.PodSet{Pod: p.Obj()})
	}
	return in
}

// TestAShadowComparesPlacements of a scheduler that has other tastes.
func TestAShadowComparesPlacements(t *testing.T) {
	node := func(name, cpu string) *testkit.NodeBuilder {
		return testkit.Node(name).Alloc("cpu", cpu, "memory", "64Gi", "pods", "10").Label(v1.LabelHostname, name)
	}
	nodes := []step.Input{step.NodeSet{Node: node("small", "4").Obj()}, step.NodeSet{Node: node("big-1", "16").Obj()}, step.NodeSet{Node: node("big-2", "16").Obj()},
		step.NodeSet{Node: node("tainted", "64").Taint("only", "others", v1.TaintEffectNoSchedule).Obj()}}
	pod := func() *testkit.PodBuilder { return testkit.Pod("p").Req("cpu", "2", "memory", "1Gi") }
	for _, c := range []struct {
		name, node, want string
	}{
		{"on Berth's node or the one that is as good", "big-1", "p same|p equal"},
		{"on the other of them", "big-2", "p same|p equal"},
		{"on a node that is fuller", "small", "p worse"},
		{"on a node with a taint", "tainted", "p notAllowed by TaintToleration"},
		{"on a node that nobody knows", "gone", "p notAllowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShadow(t, func(*core.Config) {})
			s.after(0, nodes...)
			s.after(20*time.Millisecond, set(pod())...)
			if on := s.Core().State().NodeOf("pod-p"); on == nil {
				t.Fatal("the shadow has found no node")
			}
			s.after(10*time.Second, set(pod().On(c.node))...)
			if got := s.verdicts(); got == "" || !slices.Contains(strings.Split(c.want, "|"), got) {
				t.Errorf("the verdict is %q, want %q", got, c.want)
			}
			x := s.compared[0]
			if x.Took != 20*time.Millisecond || x.Earlier == nil || x.Earlier.Took != 0 || x.Earlier.Node == "" {
				t.Errorf("the other took %s and Berth decided %+v; want 20ms, and a node at once", x.Took, x.Earlier)
			}
			if n := s.Core().State().NodeOf("pod-p"); c.node != "gone" && (n == nil || n.Name != c.node) {
				t.Errorf("the pod is on %v in the model, want %s", n, c.node)
			}
			if left := s.Core().Unsettled(); len(left) > 0 {
				t.Errorf("what is left over: %q", left)
			}
		})
	}
}

// TestAShadowComparesPodGroups: where the first member of a gang goes is measured by the domain that Berth has
// chosen for all of them, though a node elsewhere would suit that member better; where the others go, by the
// domain where the first is.
func TestAShadowComparesPodGroups(t *testing.T) {
	node := func(name, rack, cpu string) step.Input {
		return step.NodeSet{Node: testkit.Node(name).Alloc("cpu", cpu, "memory", "64Gi", "pods", "10").Label("rack", rack).Obj()}
	}
	for _, c := range []struct {
		name  string
		nodes []string // of the members, by the other scheduler
		want  string
	}{
		{"in Berth's domain", []string{"b0", "b1", "b2"}, "p0 same, p1 same, p2 same"},
		{"the first where a single pod would go", []string{"a0"}, "p0 better"},
		{"the second in another domain", []string{"b0", "a0"}, "p0 same, p1 notAllowed by TopologyPlacementGenerator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShadow(t, func(*core.Config) {})
			// Rack a has the emptiest node, and room for two of three.
			s.after(0, node("a0", "a", "8"), node("b0", "b", "4"), node("b1", "b", "4"), node("b2", "b", "4"), step.ObjectSet{Object: testkit.PodGroup("gang", 3, "rack")})
			s.after(0, set(testkit.Pod("old").Req("cpu", "1").On("a0"))...)
			member := func(i int) *testkit.PodBuilder {
				return testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "3").PodGroup("gang")
			}
			s.after(time.Second, set(member(0), member(1), member(2))...)
			for i := range 3 {
				if on := s.Core().State().NodeOf(member(i).UID); on == nil || on.Object.Labels["rack"] != "b" {
					t.Fatalf("member %d is on %v, want a node of rack b", i, on)
				}
			}
			if g := s.groups; len(g) != 1 || g[0].Kind != step.GroupPlaced || g[0].PodGroup != "default/gang" || g[0].Members != 3 {
				t.Errorf("the records about the group are %+v, want one, that its three members were placed", g)
			}
			var got []string
			for i, at := range c.nodes {
				s.after(10*time.Second, set(member(i).On(at))...)
				got = append(got, strings.ReplaceAll(s.verdicts(), " equal", " same"))
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("the verdicts are %q, want %q", got, c.want)
			}
		})
	}
}

// TestWhatAShadowSaysOfDifferences has both scores, by plugin.
func TestWhatAShadowSaysOfDifferences(t *testing.T) {
	s := newShadow(t, func(*core.Config) {})
	s.after(0, step.NodeSet{Node: testkit.Node("good").Alloc("cpu", "16", "memory", "64Gi", "pods", "10").Obj()},
		step.NodeSet{Node: testkit.Node("bad").Alloc("cpu", "4", "memory", "64Gi", "pods", "10").Obj()})
	for i := range 12 {
		p := func() *testkit.PodBuilder { return testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "1") }
		s.after(time.Millisecond, set(p())...)
		s.after(time.Millisecond, set(p().On("bad"))...)
		s.after(time.Millisecond, step.PodGone{UID: p().Obj().UID})
	}
	r := s.Core().ShadowReport()
	if r.Compared != 12 || r.Verdicts[step.Worse] != 12 || len(r.Differences) != 10 || r.Agreement() != 0 || r.Allowed() != 1 {
		t.Errorf("the report: %+v", r)
	}
	d := r.Differences[0]
	sum := func(c *step.Comparison) (other, berth int64) {
		for _, x := range c.Scores {
			other += x.Score
		}
		for _, x := range c.BerthScores {
			berth += x.Score
		}
		return other, berth
	}
	if other, berth := sum(&d); d.BerthNode != "good" || d.Node != "bad" || other != d.Score || berth != d.BerthScore || d.Points() != berth-other || d.Points() <= 0 {
		t.Errorf("the first difference: %+v", d)
	}
	if r.Short != 12*d.Points() {
		t.Errorf("%d points are short, want 12 times %d", r.Short, d.Points())
	}
}

// TestAShadowHoldsNothingForEver: what the other scheduler doesn't place, deletes, or
// places elsewhere, leaves room for others.
func TestAShadowHoldsNothingForEver(t *testing.T) {
	s := newShadow(t, func(c *core.Config) { c.Shadow.GiveUp = time.Minute })
	one := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "2") }
	on := func() string {
		var out []string
		for _, p := range s.Core().State().NodeByName("n").Pods {
			out = append(out, p.Object.Name)
		}
		return fmt.Sprint(out)
	}
	s.after(0, step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()})
	s.after(time.Second, set(one("a"), one("b"))...)
	if got := on(); got != "[a]" {
		t.Errorf("on the node are %s, want [a]", got)
	}
	s.after(time.Minute)
	if got, where := s.verdicts(), on(); got != "a onlyBerth" || where != "[b]" {
		t.Errorf("after a minute: %q, and on the node are %s; want a given up for b", got, where)
	}
	s.after(time.Second, step.PodGone{UID: "pod-b"})
	if got, where := s.verdicts(), on(); got != "b onlyBerth" || where != "[]" {
		t.Errorf("after b was deleted: %q, and on the node are %s; want b to be Berth's alone, and nobody there", got, where)
	}
	if r := s.Core().ShadowReport(); r.Verdicts[step.OnlyBerth] != 2 || r.Compared != 0 {
		t.Errorf("the report: %+v", r)
	}
	s.after(time.Second, set(one("a").On("n"))...)
	if got := s.verdicts(); got != "a same" {
		t.Errorf("the other places a at last: %q, want the same node", got)
	}
	if r := s.Core().ShadowReport(); r.Verdicts[step.OnlyBerth] != 1 || r.Compared != 1 || len(s.Core().Unsettled()) > 0 {
		t.Errorf("the report: %+v; left over: %q", r, s.Core().Unsettled())
	}
}

// TestAShadowTakesNoVolume: what a decision has reserved for a pod is free again when the pod
// doesn't count as placed any more.
func TestAShadowTakesNoVolume(t *testing.T) {
	s := newShadow(t, func(c *core.Config) { c.Shadow.GiveUp = time.Minute })
	s.after(0, step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "8", "memory", "8Gi", "pods", "10").Label(v1.LabelHostname, "n").Obj()},
		step.ObjectSet{Object: testkit.Class("local", "kubernetes.io/no-provisioner").Mode(storagev1.VolumeBindingWaitForFirstConsumer).Obj()},
		step.ObjectSet{Object: testkit.Volume("pv", "local").Size("5Gi").In(v1.LabelHostname, "n").Obj()},
		step.ObjectSet{Object: testkit.Claim("claim", "local").Size("1Gi").Obj()})
	user := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Uses("claim") }
	free := func() bool { return s.Core().State().Volume("pv").Spec.ClaimRef == nil }
	for _, end := range []struct {
		name string
		now  func()
	}{
		{"given up", func() { s.after(time.Minute) }},
		{"deleted", func() { s.after(time.Second, step.PodGone{UID: "pod-deleted"}) }},
	} {
		s.after(time.Second, set(user(end.name))...)
		if on := s.Core().State().NodeOf(testkit.Pod(end.name).Obj().UID); on == nil || free() {
			t.Fatalf("%s: the pod counts as being on %v, and the volume as free: %t; want it on the node, and the volume taken", end.name, on, free())
		}
		end.now()
		if got := s.verdicts(); !free() || got != end.name+" onlyBerth" {
			t.Errorf("%s: the volume is free: %t; the verdict is %q", end.name, free(), got)
		}
	}
}

// TestAShadowIsNothingElse: what it can't be at the same time is refused.
func TestAShadowIsNothingElse(t *testing.T) {
	for want, change := range map[string]func(*core.Config){
		"ExternalScheduler and Shadow are both set": func(c *core.Config) { c.ExternalScheduler = true },
		"Shadow.GiveUp is 0s":                       func(c *core.Config) { c.Shadow.GiveUp = 0 },
	} {
		schema := cluster.NewSchema()
		cfg, how := core.DefaultConfig(defaults(schema)), core.DefaultShadow()
		cfg.Shadow = &how
		change(&cfg)
		if _, err := core.New(schema, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
}

// TestBindingsMayBeSeenInAnyOrder: of three pods that are spread over three zones the last is
// seen first, on a node that is allowed only with the others there.
func TestBindingsMayBeSeenInAnyOrder(t *testing.T) {
	web := func(name string) *testkit.PodBuilder {
		return testkit.Pod(name).Label("app", "web").SpreadHard(v1.LabelTopologyZone, 1, "app", "web")
	}
	s := newShadow(t, func(*core.Config) {})
	for _, zone := range []string{"a", "b"} {
		s.after(0, step.NodeSet{Node: testkit.Node(zone).Zone(zone).Alloc("cpu", "8", "memory", "8Gi", "pods", "10").Obj()})
	}
	s.after(0, set(web("first"), web("second"), web("third"))...)
	s.after(50*time.Millisecond, set(web("first").On("a"))...)
	if got := s.verdicts(); got != "first same" && got != "first equal" {
		t.Errorf("first: %q", got)
	}
	s.after(10*time.Millisecond, set(web("third").On("a"))...)
	if got := s.verdicts(); got != "" || s.Core().ShadowReport().Doubted != 1 {
		t.Errorf("third: %q, and %d doubted; want no verdict yet", got, s.Core().ShadowReport().Doubted)
	}
	s.after(time.Second, set(web("second").On("b"))...)
	if got := s.verdicts(); got != "second same, third same" && got != "second same, third equal" {
		t.Errorf("second, and third again: %q", got)
	}
	if r := s.Core().ShadowReport(); r.JudgedAgain != 1 || r.Allowed() != 1 || r.Doubted != 0 {
		t.Errorf("the report: %+v", r)
	}
}

// TestAShadowPreemptsNobody and nominates nobody: what it would do is in the ledger.
func TestAShadowPreemptsNobody(t *testing.T) {
	var ledger []string
	s := newShadow(t, func(*core.Config) {})
	s.after(0, step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "2", "memory", "8Gi", "pods", "10").Obj()})
	s.after(time.Second, set(testkit.Pod("low").Req("cpu", "2").On("n"))...)
	s.after(time.Second, set(testkit.Pod("high").Req("cpu", "2").Priority(10))...)
	if n := len(s.Core().State().Nominations()); n > 0 || s.Core().State().PodOn("pod-low") == nil {
		t.Errorf("%d pods are nominated, want none; ledger %q", n, ledger)
	}
	// The other scheduler preempts.
	s.after(time.Second, set(testkit.Pod("high").Req("cpu", "2").Priority(10).NominatedTo("n"))...)
	s.after(time.Second, step.PodGone{UID: "pod-low"})
	s.after(time.Second, set(testkit.Pod("high").Req("cpu", "2").Priority(10).On("n"))...)
	if got := s.verdicts(); got != "high same" {
		t.Errorf("the verdict is %q, want the same node", got)
	}
}

// TestPropertyAShadowAgreesWithALeader: another Berth schedules, with another seed. The shadow
// sees its bindings one by one, while its own decisions have put the pods elsewhere; each node is
// the shadow's choice or scores as much.
func TestPropertyAShadowAgreesWithALeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var binds []step.Bind
		cfg := core.DefaultConfig()
		cfg.Engine.Seed = 7
		leader := newDriven(t, cfg, drive.Unanswered{}, func(schema *cluster.Schema) *framework.Profile {
			p := defaults(schema)
			p.Preempter = nil // its nominations wouldn't be seen
			return p
		}, drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) { binds = append(binds, r.Binds...) }))
		s := newShadow(t, func(*core.Config) {})
		pods := map[string]*v1.Pod{}
		tell := func(in ...step.Input) {
			s.after(0, in...)
			for wake := leader.step(s.now, in...); !wake.IsZero() && !wake.After(s.now); wake = leader.step(s.now) {
			}
			for len(binds) > 0 {
				b := binds[0]
				binds = binds[1:]
				bound := pods[string(b.UID)].DeepCopy()
				bound.Spec.NodeName, bound.Status.NominatedNodeName = b.Node, ""
				pods[string(b.UID)] = bound
				s.after(time.Millisecond, step.PodSet{Pod: bound})
				for i := range s.compared {
					if c := &s.compared[i]; c.Verdict != step.SameNode && c.Verdict != step.EquallyGood {
						t.Errorf("the verdict on %s: %+v", b.Name, c)
					}
				}
				if len(s.compared) != 1 {
					t.Errorf("binding %s brought %d verdicts, want one: %+v", b.Name, len(s.compared), s.compared)
				}
				leader.step(s.now, step.PodSet{Pod: bound}, step.BindDone{UID: b.UID})
			}
		}
		for _, name := range testkit.Names("n", 2+testkit.Uniform(t, 5, "nodes")) {
			tell(step.NodeSet{Node: testkit.RandomNode(t, name)})
		}
		for i := range 12 {
			var in []step.Input
			for k := range 1 + testkit.Uniform(t, 4, "pods") {
				p := testkit.RandomPod(t, fmt.Sprintf("p%d-%d", i, k))
				testkit.AddTerms(t, p)
				testkit.AddConstraints(t, p)
				p.Spec.NodeName, p.Status = "", v1.PodStatus{Phase: v1.PodPending}
				p.DeletionTimestamp = nil
				pods[string(p.UID)] = p
				in = append(in, step.PodSet{Pod: p})
			}
			tell(in...)
		}
	})
}
