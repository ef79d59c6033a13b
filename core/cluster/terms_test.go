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

func matching(pairs ...string) *metav1.LabelSelector {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return &metav1.LabelSelector{MatchLabels: set}
}

func without(key string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}}}
}

// near requires pods that a term selects in the same zone.
func near(name string, term v1.PodAffinityTerm) *testkit.PodBuilder {
	p := testkit.Pod(name)
	term.TopologyKey = v1.LabelTopologyZone
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}
	return p
}

func TestTermsOfAPod(t *testing.T) {
	p := testkit.Pod("p").Namespaced("ns").Together("zone", "app", "a").PreferTogether(7, "zone", "app", "b").
		Apart("host", "app", "c").PreferApart(9, "host", "app", "d")
	parsed := cluster.NewSchema().ParsePod(p.Obj())
	var got []string
	for _, term := range parsed.Terms {
		got = append(got, fmt.Sprintf("%c %d %s", term.Kind, term.Weight, term.Key))
		if term.OwnerKey != string(rune(term.Kind))+term.Key {
			t.Errorf("the owners' key of %s is %s", term.Key, term.OwnerKey)
		}
	}
	want := []string{"a 0 zone|ns||app=a", "c 7 zone|ns||app=b", "b 0 host|ns||app=c", "d 9 host|ns||app=d"}
	if !slices.Equal(got, want) || parsed.TermProblem != "" {
		t.Errorf("the terms are %q (%s), want %q", got, parsed.TermProblem, want)
	}
}

// TestWhatATermSelects has the namespaces and labels that a term of a pod of
// namespace default selects.
func TestWhatATermSelects(t *testing.T) {
	red, blue := labels.Set{"team": "red"}, labels.Set{"team": "blue"}
	for _, c := range []struct {
		name       string
		term       v1.PodAffinityTerm
		key        string
		in         string // the demand that it makes, among these namespaces
		own, other bool   // selects web of namespace default, which is red; of other, which is blue
		unknown    bool   // of a namespace that isn't known
	}{
		{"its own namespace", v1.PodAffinityTerm{LabelSelector: matching("app", "web")}, "|default||app=web", "default", true, false, false},
		{"named ones", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), Namespaces: []string{"other", "more", "other"}}, "|more,other||app=web", "more other", false, true, false},
		{"by labels", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), NamespaceSelector: matching("team", "blue")}, "||team=blue|app=web", "other", false, true, false},
		{"by labels and name", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), Namespaces: []string{"default", "other"}, NamespaceSelector: matching("team", "blue")},
			"|default,other|team=blue|app=web", "default other", true, true, false},
		{"by labels and three names", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), Namespaces: []string{"x", "z", "y"}, NamespaceSelector: matching("team", "blue")},
			"|x,y,z|team=blue|app=web", "other x y z", false, true, false},
		{"by labels that none has", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), NamespaceSelector: matching("team", "green")}, "||team=green|app=web", "none", false, false, false},
		{"all", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), NamespaceSelector: &metav1.LabelSelector{}}, "||<everything>|app=web", "all", true, true, true},
		{"all, and a name besides", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), Namespaces: []string{"default"}, NamespaceSelector: &metav1.LabelSelector{}},
			"|default|<everything>|app=web", "all", true, true, true},
		{"those without a label", v1.PodAffinityTerm{LabelSelector: matching("app", "web"), NamespaceSelector: without("team")}, "||!team|app=web", "none", false, false, true},
		{"other pods", v1.PodAffinityTerm{LabelSelector: matching("app", "db")}, "|default||app=db", "default", false, false, false},
		{"no pods", v1.PodAffinityTerm{}, "|default||<nothing>", "default", false, false, false},
		{"all pods", v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}}, "|default||<everything>", "default", true, false, false},
	} {
		s := newState()
		s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: red}})
		s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: blue}})
		term := s.Schema.ParsePod(near("p", c.term).Obj()).Terms[0]
		if want := v1.LabelTopologyZone + c.key; term.Key != want {
			t.Errorf("%s: the key is %s, want %s", c.name, term.Key, want)
		}
		pod := func(namespace string) *cluster.Pod {
			return s.Schema.ParsePod(testkit.Pod("q").Namespaced(namespace).Label("app", "web").Obj())
		}
		if own, other, unknown := term.Selects(pod("default"), red), term.Selects(pod("other"), blue), term.Selects(pod("far"), nil); own != c.own || other != c.other || unknown != c.unknown {
			t.Errorf("%s: selects its own %v, of other %v, of an unknown one %v; want %v %v %v", c.name, own, other, unknown, c.own, c.other, c.unknown)
		}
		term.In(s) // that it was asked before changes nothing
		demand := term.In(s)
		in := strings.Join(demand.Namespaces, " ")
		switch {
		case demand.Namespaces == nil:
			in = "all"
		case len(demand.Namespaces) == 0:
			in = "none"
		}
		if in != c.in || cluster.SelectorText(demand.Selector) != cluster.SelectorText(term.Selector) {
			t.Errorf("%s: among the namespaces there are it demands %q, want %q", c.name, in, c.in)
		}
	}
}

func TestTermsThatCantBeRead(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	term := v1.PodAffinityTerm{LabelSelector: bad, TopologyKey: "zone"}
	byNamespace := v1.PodAffinityTerm{LabelSelector: matching("app", "web"), NamespaceSelector: bad, TopologyKey: "zone"}
	weighted := []v1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}
	for _, c := range []struct {
		affinity v1.Affinity
		want     string
	}{
		{v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}, "requiredAffinityTerms"},
		{v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{byNamespace}}}, "requiredAffinityTerms"},
		{v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}}, "preferredAffinityTerms"},
		{v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}, "requiredAntiAffinityTerms"},
		{v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}}, "preferredAntiAffinityTerms"},
		{v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted},
			PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}, "preferredAffinityTerms"},
	} {
		p := testkit.Pod("p")
		p.Spec.Affinity = &c.affinity
		parsed := cluster.NewSchema().ParsePod(p.Obj())
		if want := c.want + `: "Near" is not a valid label selector operator`; parsed.TermProblem != want {
			t.Errorf("the problem is %q, want %q", parsed.TermProblem, want)
		}
	}
}

// TestTermsOfTheState: what pods own, or have owned, is remembered, with the
// labels that it reads, until it is forgotten. SignatureVersion rises when other labels are
// read than before.
func TestTermsOfTheState(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("n"))
	version := s.SignatureVersion()
	var nominee *cluster.Pod
	for _, c := range []struct {
		name          string
		do            func()
		rises         bool
		terms         int
		keys          string
		namespaceKeys string
	}{
		{"a pod without", func() { place(s, testkit.Pod("a").Label("app", "web"), "n") }, false, 0, "", ""},
		{"the first, which reads no label", func() { place(s, near("b", v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}}), "n") }, true, 1, "", ""},
		{"one that reads a label", func() { place(s, near("c", v1.PodAffinityTerm{LabelSelector: matching("tier", "x")}), "n") }, true, 2, "tier", ""},
		{"one more, and the same label", func() { place(s, near("d", v1.PodAffinityTerm{LabelSelector: matching("tier", "y")}), "n") }, false, 3, "tier", ""},
		{"one that reads two", func() { place(s, near("e", v1.PodAffinityTerm{LabelSelector: matching("app", "x", "zone", "z")}), "n") }, true, 4, "app tier zone", ""},
		{"the same again", func() { place(s, near("f", v1.PodAffinityTerm{LabelSelector: matching("app", "x", "zone", "z")}), "n") }, false, 4, "app tier zone", ""},
		{"one that selects namespaces by labels", func() {
			place(s, near("g", v1.PodAffinityTerm{LabelSelector: matching("app", "x"), NamespaceSelector: matching("team", "red")}), "n")
		}, true, 5, "app tier zone", "team"},
		{"another of those", func() {
			place(s, near("h", v1.PodAffinityTerm{LabelSelector: matching("app", "x"), NamespaceSelector: matching("team", "blue")}), "n")
		}, false, 6, "app tier zone", "team"},
		{"of a pod without a node", func() { place(s, near("i", v1.PodAffinityTerm{LabelSelector: matching("orphan", "x")}), "gone") }, false, 6, "app tier zone", "team"},
		{"of a nominated pod", func() {
			nominee = s.Schema.ParsePod(near("j", v1.PodAffinityTerm{LabelSelector: matching("nominee", "x")}).Obj())
			s.Nominate(nominee, "n")
		}, true, 7, "app nominee tier zone", "team"},
		{"its owner goes, and it is kept", func() { s.Nominate(nominee, ""); s.Remove("pod-c") }, false, 7, "app nominee tier zone", "team"},
		{"a namespace comes, which concerns some pods", func() { s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}) }, false, 7, "app nominee tier zone", "team"},
		{"a namespace has a new version", func() {
			s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "2"}})
		}, false, 7, "app nominee tier zone", "team"},
		{"a namespace goes", func() { s.RemoveObject(cluster.NamespaceKind, "", "x") }, false, 7, "app nominee tier zone", "team"},
		{"what nobody has is forgotten", s.Forget, true, 5, "app tier zone", "team"},
		{"there is nothing to forget", s.Forget, false, 5, "app tier zone", "team"},
		{"of two that read the same one goes", func() { s.Remove("pod-g"); s.Forget() }, false, 4, "app tier zone", "team"},
		{"nothing is forgotten in a what-if", func() {
			mark := s.Mark()
			s.Remove("pod-h")
			s.Forget()
			s.Rollback(mark)
		}, false, 4, "app tier zone", "team"},
		{"what reads namespaces goes", func() { s.Remove("pod-h"); s.Forget() }, true, 3, "app tier zone", ""},
		{"it comes back, and is a new one", func() {
			place(s, near("h", v1.PodAffinityTerm{LabelSelector: matching("app", "x"), NamespaceSelector: matching("team", "blue")}), "n")
		}, true, 4, "app tier zone", "team"},
		{"of a nominated pod nothing is forgotten", func() { s.Nominate(nominee, "n"); s.Forget() }, true, 5, "app nominee tier zone", "team"},
	} {
		c.do()
		now := s.SignatureVersion()
		if (now > version) != c.rises || now < version {
			t.Errorf("%s: the version went from %d to %d, rises is %v", c.name, version, now, c.rises)
		}
		version = now
		if got := strings.Join(s.TermLabelKeys(), " "); len(s.Terms()) != c.terms || got != c.keys || strings.Join(s.TermNamespaceKeys(), " ") != c.namespaceKeys {
			t.Errorf("%s: %d terms that read %q, and of namespaces %q; want %d, %q, %q", c.name, len(s.Terms()), got, s.TermNamespaceKeys(), c.terms, c.keys, c.namespaceKeys)
		}
		if broken := s.Broken(); len(broken) > 0 {
			t.Errorf("%s: %s", c.name, strings.Join(broken, "\n"))
		}
	}
}

func TestTermsThatSelectAPod(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("n"))
	s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "blue"}}})
	for i, term := range []v1.PodAffinityTerm{
		{LabelSelector: matching("tier", "front")},
		{LabelSelector: without("tier")},
		{LabelSelector: matching("app", "web")},
		{LabelSelector: matching("app", "web"), NamespaceSelector: matching("team", "blue")},
		{LabelSelector: matching("app", "db")},
		{LabelSelector: &metav1.LabelSelector{}, Namespaces: []string{"other"}},
		{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}}}}},
	} {
		place(s, near(fmt.Sprint("owner", i), term), "n")
	}
	for _, c := range []struct {
		pod  *testkit.PodBuilder
		want string // positions of the terms
	}{
		{testkit.Pod("p").Label("app", "web").Label("tier", "front"), "0 2 6"},
		{testkit.Pod("p").Label("app", "web"), "1 2 6"},
		{testkit.Pod("p").Label("app", "db"), "1 4 6"},
		{testkit.Pod("p"), "1"},
		{testkit.Pod("p").Namespaced("other").Label("app", "web"), "3 5"},
		{testkit.Pod("p").Namespaced("far").Label("app", "web"), ""},
	} {
		var got []string
		for _, term := range s.TermsSelecting(s.Schema.ParsePod(c.pod.Obj())) {
			got = append(got, fmt.Sprint(term.Position))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("a pod of %s with %v is selected by %v, want %s", c.pod.Pod.Namespace, c.pod.Labels, got, c.want)
		}
	}
}

func TestSelectorText(t *testing.T) {
	texts := map[string]bool{}
	for _, s := range []labels.Selector{labels.Nothing(), labels.Everything(), labels.SelectorFromSet(labels.Set{"a": "b"}), labels.SelectorFromSet(labels.Set{"a": ""})} {
		texts[cluster.SelectorText(s)] = true
	}
	if len(texts) != 4 {
		t.Errorf("four selectors have the texts %v", texts)
	}
}
