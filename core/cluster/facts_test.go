package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// zoned is a state with two nodes in zone a, one in b, one in none, and pods of
// web on them.
func zoned() *cluster.State {
	s := newState()
	setNode(s, testkit.Node("a0").Zone("a").Label("disk", "ssd"))
	setNode(s, testkit.Node("a1").Zone("a"))
	setNode(s, testkit.Node("b0").Zone("b").Label("disk", "ssd"))
	setNode(s, testkit.Node("x0"))
	for _, p := range []struct{ name, node string }{{"w0", "a0"}, {"w1", "a0"}, {"w2", "a1"}, {"w3", "b0"}, {"w4", "x0"}} {
		place(s, testkit.Pod(p.name).Label("app", "web"), p.node)
	}
	terminating := testkit.Pod("terminating").Label("app", "web")
	terminating.DeletionTimestamp = &metav1.Time{}
	place(s, terminating, "b0")
	place(s, testkit.Pod("elsewhere").Namespaced("other").Label("app", "web"), "b0")
	place(s, testkit.Pod("owner").PreferTogether(40, v1.LabelTopologyZone, "app", "web"), "a0")
	place(s, testkit.Pod("second owner").PreferTogether(2, v1.LabelTopologyZone, "app", "web"), "a1")
	place(s, testkit.Pod("foe").Apart(v1.LabelTopologyZone, "app", "web"), "b0")
	return s
}

func web(namespaces ...string) []cluster.PodMatch {
	return []cluster.PodMatch{{Namespaces: namespaces, Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}}
}

// counted prints the counts by domain, named by a node of each, and the lowest.
func counted(s *cluster.State, f *cluster.Fact) string {
	var out []string
	for i := range f.Nonzero() {
		d, count := f.NonzeroAt(i)
		var members []string
		f.Topology().Members(d, func(i cluster.NodeIndex) { members = append(members, s.Node(i).Name) })
		slices.Sort(members)
		out = append(out, fmt.Sprintf("%s=%d", strings.Join(members, "+"), count))
		if f.Count(d) != count {
			out = append(out, fmt.Sprintf("(but %d)", f.Count(d)))
		}
	}
	slices.Sort(out)
	if f.Spec().Lowest {
		count, domains := f.Lowest()
		out = append(out, fmt.Sprintf("lowest %d of %d", count, domains))
	}
	return strings.Join(out, " ")
}

func TestWhatFactsCount(t *testing.T) {
	owners := func(kind cluster.TermKind) string {
		for _, term := range zoned().Terms() {
			if term.Kind == kind {
				return term.OwnerKey
			}
		}
		t.Fatal("no such term")
		return ""
	}
	for _, c := range []struct {
		name string
		spec cluster.FactSpec
		want string
	}{
		{"pods by zone", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web()}, "a0+a1=3 b0=3"},
		{"nodes without the label are in the domain of those with an empty one", cluster.FactSpec{Topology: cluster.OrEmpty(v1.LabelTopologyZone), Match: web()}, "a0+a1=3 b0=3 x0=1"},
		{"pods by node", cluster.FactSpec{Topology: cluster.PerNode, Match: web()}, "a0=2 a1=1 b0=3 x0=1"},
		{"by host name", cluster.FactSpec{Topology: v1.LabelHostname, Match: web()}, "a0=2 a1=1 b0=3 x0=1"},
		{"of a namespace", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web("other")}, "b0=1"},
		{"of no namespace", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: []cluster.PodMatch{{Namespaces: []string{}, Selector: labels.Everything()}}}, ""},
		{"that stay", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web(), SkipTerminating: true}, "a0+a1=3 b0=2"},
		{"on some nodes", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web(), NodeFilter: onNodesWith("disk")}, "a0+a1=2 b0=3"},
		{"that meet two demands", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: append(web("default"), web("other", "default")...)}, "a0+a1=3 b0=2"},
		{"that can't meet both", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: append(web("default"), web("other")...)}, ""},
		{"owners of a preferred term, by its weight", cluster.FactSpec{Topology: v1.LabelTopologyZone, Owners: owners(cluster.PreferredAffinity)}, "a0+a1=42"},
		{"owners of a required term", cluster.FactSpec{Topology: v1.LabelTopologyZone, Owners: owners(cluster.RequiredAntiAffinity)}, "b0=1"},
		{"the lowest of all zones", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web("other"), Lowest: true}, "b0=1 lowest 0 of 2"},
		{"the lowest of zones with such nodes", cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web("other"), Lowest: true, NodeFilter: onNodesWith("disk")}, "b0=1 lowest 0 of 2"},
		{"the lowest of no zone", cluster.FactSpec{Topology: "rack", Match: web(), Lowest: true}, "lowest 0 of 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := zoned()
			c.spec.Key = "key"
			f := s.Fact(c.spec)
			if got := counted(s, f); got != c.want {
				t.Errorf("counted when asked for: %s\nwant: %s", got, c.want)
			}
			if f.Key() != "key" || f.Spec().Topology != c.spec.Topology || f.Topology() != s.Topology(c.spec.Topology) {
				t.Errorf("the fact %s counts by %s", f.Key(), f.Topology().Key)
			}

			// The same, asked for before anything is there.
			early := newState()
			g := early.Fact(c.spec)
			s.Nodes(func(n *cluster.Node) {
				early.SetNode(n.NodeInfo)
				for _, p := range n.Pods {
					early.Place(p, n.Name)
				}
			})
			if got := counted(early, g); got != c.want {
				t.Errorf("counted as it came: %s\nwant: %s", got, c.want)
			}
		})
	}
}

// unreserved counts pods on nodes without a taint that keeps pods off, and how often it is asked.
type unreserved struct{ asked *int }

func (u unreserved) Match(n *cluster.NodeInfo) bool {
	*u.asked++
	return !slices.ContainsFunc(n.Object.Spec.Taints, func(t v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule })
}

// TestTaintsThatCountPodsAnew: taints that keep pods off a node may change where its pods
// count. Those of the effect PreferNoSchedule can't, and cost nothing.
func TestTaintsThatCountPodsAnew(t *testing.T) {
	for _, c := range []struct {
		name       string
		from, to   []v1.Taint
		want       string
		countsAnew bool
	}{
		{"a soft one comes", nil, []v1.Taint{{Key: "k", Effect: v1.TaintEffectPreferNoSchedule}}, "a0+a1=3 b0=3", false},
		{"a soft one goes, beside a hard one", []v1.Taint{{Key: "h", Effect: v1.TaintEffectNoSchedule}, {Key: "k", Effect: v1.TaintEffectPreferNoSchedule}},
			[]v1.Taint{{Key: "h", Effect: v1.TaintEffectNoSchedule}}, "a0+a1=1 b0=3", false},
		{"a hard one comes", nil, []v1.Taint{{Key: "h", Effect: v1.TaintEffectNoSchedule}}, "a0+a1=1 b0=3", true},
		{"a hard one goes", []v1.Taint{{Key: "h", Effect: v1.TaintEffectNoExecute}}, nil, "a0+a1=3 b0=3", true},
		{"one becomes hard", []v1.Taint{{Key: "k", Effect: v1.TaintEffectPreferNoSchedule}}, []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}, "a0+a1=1 b0=3", true},
		{"a hard one behind a soft one becomes another", []v1.Taint{{Key: "k", Effect: v1.TaintEffectPreferNoSchedule}, {Key: "h", Effect: v1.TaintEffectNoSchedule}},
			[]v1.Taint{{Key: "k", Effect: v1.TaintEffectPreferNoSchedule}, {Key: "i", Effect: v1.TaintEffectNoSchedule}}, "a0+a1=1 b0=3", true},
	} {
		s, asked := zoned(), 0
		have := func(taints []v1.Taint) {
			n := testkit.Node("a0").Zone("a").Label("disk", "ssd")
			n.Spec.Taints = taints
			setNode(s, n)
		}
		have(c.from)
		f := s.Fact(cluster.FactSpec{Key: "k", Topology: v1.LabelTopologyZone, Match: web(), NodeFilter: unreserved{&asked}})
		asked = 0
		have(c.to)
		if got := counted(s, f); got != c.want {
			t.Errorf("%s: counted %s, want %s", c.name, got, c.want)
		}
		if asked > 0 != c.countsAnew {
			t.Errorf("%s: the filter was asked %d times; want it asked: %t", c.name, asked, c.countsAnew)
		}
	}
}

func TestWhichPodsCount(t *testing.T) {
	s := zoned()
	terminating := testkit.Pod("p").Label("app", "web")
	terminating.DeletionTimestamp = &metav1.Time{}
	foe := testkit.Pod("p").Apart(v1.LabelTopologyZone, "app", "web")
	key := s.Schema.ParsePod(foe.Obj()).Terms[0].OwnerKey
	for _, c := range []struct {
		name string
		spec cluster.FactSpec
		pod  *testkit.PodBuilder
		want bool
	}{
		{"selected", cluster.FactSpec{Match: web()}, testkit.Pod("p").Label("app", "web"), true},
		{"not selected", cluster.FactSpec{Match: web()}, testkit.Pod("p").Label("app", "db"), false},
		{"of another namespace", cluster.FactSpec{Match: web("other")}, testkit.Pod("p").Label("app", "web"), false},
		{"terminating", cluster.FactSpec{Match: web()}, terminating, true},
		{"terminating, and these are skipped", cluster.FactSpec{Match: web(), SkipTerminating: true}, terminating, false},
		{"an owner", cluster.FactSpec{Owners: key}, foe, true},
		{"no owner", cluster.FactSpec{Owners: key}, testkit.Pod("p").Label("app", "web"), false},
	} {
		c.spec.Key = c.name
		if got := s.CountAfresh(c.spec).Counts(s.Schema.ParsePod(c.pod.Obj())); got != c.want {
			t.Errorf("%s: counts is %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLowestCount follows the lowest count through all that can raise and lower
// it.
func TestLowestCount(t *testing.T) {
	s := newState()
	for _, zone := range []string{"a", "b", "c"} {
		setNode(s, testkit.Node(zone).Zone(zone))
	}
	f := s.Fact(cluster.FactSpec{Key: "k", Topology: v1.LabelTopologyZone, Match: web(), Lowest: true})
	put := func(names ...string) func() {
		return func() {
			for _, name := range names { // named after the zone, and a digit
				place(s, testkit.Pod(name).Label("app", "web"), name[:1])
			}
		}
	}
	for _, c := range []struct {
		name           string
		do             func()
		count, domains int32
	}{
		{"no pods", func() {}, 0, 3},
		{"one of three zones is empty", put("a0", "b0"), 0, 3},
		{"one everywhere", put("c0"), 1, 3},
		{"more in two", put("a1", "a2", "b1", "b2"), 1, 3},
		{"the third has as many", put("c1", "c2"), 3, 3},
		{"one leaves", func() { s.Remove("pod-b0") }, 2, 3},
		{"its zone goes", func() { s.RemoveNode("b") }, 3, 2},
		{"an empty zone comes", func() { setNode(s, testkit.Node("d").Zone("d")) }, 0, 3},
		{"a second node of a zone", func() { setNode(s, testkit.Node("a'").Zone("a")) }, 0, 3},
		{"the empty zone goes", func() { s.RemoveNode("d") }, 3, 2},
		{"the first node of a zone goes, with its pods", func() { s.RemoveNode("a") }, 0, 2},
		{"a node moves to another zone, with its pods", func() { setNode(s, testkit.Node("c").Zone("a")) }, 3, 1},
		{"a node loses its zone", func() { setNode(s, testkit.Node("c")) }, 0, 1},
	} {
		c.do()
		if count, domains := f.Lowest(); count != c.count || domains != c.domains {
			t.Errorf("%s: lowest %d of %d domains, want %d of %d", c.name, count, domains, c.count, c.domains)
		}
		if broken := s.Broken(); len(broken) > 0 {
			t.Errorf("%s: %s", c.name, strings.Join(broken, "\n"))
		}
	}
}

// A fact is one for all who ask for the same, and kept until the last lets go.
func TestFactsAreShared(t *testing.T) {
	s := zoned()
	spec := cluster.FactSpec{Key: "k", Topology: v1.LabelTopologyZone, Match: web()}
	other := cluster.FactSpec{Key: "j", Topology: v1.LabelTopologyZone, Match: web("other")}
	f, g := s.Fact(spec), s.Fact(spec)
	if f != g {
		t.Error("two facts for one key")
	}
	s.Fact(other)
	keys := func() (out []string) {
		for _, f := range s.Facts() {
			out = append(out, f.Key())
		}
		return out
	}
	if got := keys(); !slices.Equal(got, []string{"j", "k"}) {
		t.Errorf("the facts are %v, want j and k, by key", got)
	}
	s.DropFact(f)
	place(s, testkit.Pod("more").Label("app", "web"), "b0")
	if got := counted(s, g); got != "a0+a1=3 b0=4" {
		t.Errorf("one of two has let go, and the fact counts %s", got)
	}
	s.DropFact(g)
	place(s, testkit.Pod("even more").Label("app", "web"), "b0")
	if got := counted(s, g); got != "a0+a1=3 b0=4" || !slices.Equal(keys(), []string{"j"}) {
		t.Errorf("both have let go, and the fact counts %s; kept are %v", got, keys())
	}
}

// TestFactsShareNodeFilters: of a hundred facts with one filter, a node that comes, changes or goes
// and the pods on it ask the filter once for each version of the node.
func TestFactsShareNodeFilters(t *testing.T) {
	s, asked := zoned(), 0
	spec := func(i int) cluster.FactSpec {
		app := fmt.Sprint("app-", i)
		return cluster.FactSpec{Key: app, Topology: v1.LabelTopologyZone, Lowest: true, NodeFilter: unreserved{&asked}, FilterKey: "unreserved",
			Match: []cluster.PodMatch{{Selector: labels.SelectorFromSet(labels.Set{"app": app})}}}
	}
	for i := range 100 {
		s.Fact(spec(i))
	}
	for _, c := range []struct {
		name string
		do   func()
		want int
	}{
		{"a node comes", func() { setNode(s, testkit.Node("new").Zone("a")) }, 1},
		{"pods come", func() {
			for i := range 100 {
				place(s, testkit.Pod(fmt.Sprint("p", i)).Label("app", fmt.Sprint("app-", i)), "new")
			}
		}, 0},
		{"the node changes", func() { setNode(s, testkit.Node("new").Zone("b").Label("disk", "ssd")) }, 1},
		{"the node goes", func() { s.RemoveNode("new") }, 0},
	} {
		asked = 0
		c.do()
		if asked != c.want {
			t.Errorf("%s: the filter was asked %d times, want %d", c.name, asked, c.want)
		}
	}
	one := spec(100)
	one.FilterKey = ""
	s.Fact(one)
	asked = 0
	setNode(s, testkit.Node("last").Zone("a"))
	if asked != 2 {
		t.Errorf("the filters of facts without a common key were asked %d times, want each asked once", asked)
	}
}

// Many domains, of which only the first are repeated densely, are counted alike.
func TestFactsOfManyDomains(t *testing.T) {
	s := newState()
	f := s.Fact(cluster.FactSpec{Key: "k", Topology: v1.LabelTopologyZone, Match: web()})
	nodes := testkit.Names("n", 4100)
	for _, name := range nodes {
		setNode(s, testkit.Node(name).Zone(name))
	}
	for _, name := range nodes {
		place(s, testkit.Pod("on-"+name).Label("app", "web"), name)
	}
	for i := range nodes {
		if got := f.CountAt(cluster.NodeIndex(i)); got != 1 {
			t.Fatalf("domain %d has %d, want 1", i, got)
		}
	}
	if f.Count(cluster.NoDomain) != 0 || f.Nonzero() != len(nodes) {
		t.Errorf("no domain has %d; %d domains have some", f.Count(cluster.NoDomain), f.Nonzero())
	}
}

func TestEqualFacts(t *testing.T) {
	s := zoned()
	count := func(spec cluster.FactSpec) *cluster.Fact { return s.CountAfresh(spec) }
	zones := cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web()}
	lowest := zones
	lowest.Lowest = true
	if !count(zones).Equal(count(zones)) || count(zones).Equal(count(lowest)) ||
		count(zones).Equal(count(cluster.FactSpec{Topology: v1.LabelTopologyZone, Match: web("other")})) {
		t.Error("facts are equal that aren't, or the other way round")
	}
}

// asking counts how many pods a selector is asked about.
type asking struct {
	labels.Selector
	asked *int
}

func (a asking) Matches(l labels.Labels) bool {
	*a.asked++
	return a.Selector.Matches(l)
}

// TestANewFactAsksFewPods counts one of ten apps for the first time, on 50 nodes of which each
// has two pods of one app. When another app is counted already, only pods beside those of the app
// are asked, in a what-if and after it, too.
func TestANewFactAsksFewPods(t *testing.T) {
	s := newState()
	for i := range 50 {
		node, app := fmt.Sprint("n", i), fmt.Sprint("app", i%10)
		setNode(s, testkit.Node(node).Zone("a"))
		place(s, testkit.Pod("first-"+node).Label("app", app), node)
		place(s, testkit.Pod("second-"+node).Label("app", app), node)
	}
	spec := func(app string, asked *int) cluster.FactSpec {
		selector := asking{labels.SelectorFromSet(labels.Set{"app": app}), asked}
		return cluster.FactSpec{Key: app, Topology: v1.LabelTopologyZone, Match: []cluster.PodMatch{{Selector: selector}}}
	}
	var ignored int
	s.Fact(spec("app0", &ignored))
	for _, app := range []string{"app1", "app2", "nobody's"} {
		asked := 0
		m := s.Mark()
		place(s, testkit.Pod("what-if").Label("app", app), "n0")
		f := s.Fact(spec(app, &asked))
		inWhatIf, _ := f.NonzeroAt(0)
		if got, want := f.Count(inWhatIf), int32(11); app != "nobody's" && got != want {
			t.Errorf("%d pods of %s count in a what-if, want %d", got, app, want)
		}
		s.Rollback(m)
		s.DropFact(f)
		f = s.Fact(spec(app, &asked))
		if got := f.Count(inWhatIf); app != "nobody's" && got != 10 {
			t.Errorf("%d pods of %s count, want 10", got, app)
		}
		// 10 pods, those of the what-if's node and the pod as it comes and goes, and the 10 once more.
		if asked > 30 {
			t.Errorf("%d pods were asked whether they are of %s, want 30 at most", asked, app)
		}
	}
}

// TestAFactWhosePodsAreGone has a fact outlive the pods that count in it. The one that didn't come
// last leaves its node with what is known of the label, which is less than what is recounted.
func TestAFactWhosePodsAreGone(t *testing.T) {
	s := newState()
	for _, node := range []string{"a0", "a1"} {
		setNode(s, testkit.Node(node).Zone("a"))
		place(s, testkit.Pod("on-"+node).Label("app", "web"), node)
	}
	f := s.Fact(cluster.FactSpec{Key: "web", Topology: v1.LabelTopologyZone, Match: web("default")})
	for _, node := range []string{"a0", "a1"} {
		s.Remove(testkit.Pod("on-" + node).Obj().UID)
	}
	for _, fault := range s.Broken() {
		t.Error(fault)
	}
	if got := counted(s, f); got != "" {
		t.Errorf("without pods %s is counted", got)
	}
}
