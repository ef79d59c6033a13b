package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// onNodesWith counts pods on nodes with a label only.
type onNodesWith string

func (key onNodesWith) Match(n *cluster.NodeInfo) bool {
	_, ok := n.Object.Labels[string(key)]
	return ok
}

// randomFact draws what a fact may count.
func randomFact(t *rapid.T, s *cluster.State) cluster.FactSpec {
	pick := func(from ...string) string { return from[testkit.Uniform(t, len(from), "of the fact")] }
	spec := cluster.FactSpec{Topology: pick(cluster.PerNode, v1.LabelHostname, v1.LabelTopologyZone, cluster.OrEmpty(v1.LabelTopologyZone), "disk")}
	selectors := []string{}
	if testkit.Uniform(t, 3, "owners") == 0 {
		if terms := s.Terms(); len(terms) > 0 {
			spec.Owners = terms[testkit.Uniform(t, len(terms), "term")].OwnerKey
		}
	} else {
		for range 1 + testkit.Uniform(t, 2, "demands") {
			selector := pick("", "app=web", "app in (web,db)", "app!=db", "index", "!index")
			selectors = append(selectors, selector)
			m := cluster.PodMatch{Selector: labels.Everything()}
			if selector != "" {
				parsed, err := labels.Parse(selector)
				if err != nil {
					t.Fatal(err)
				}
				m.Selector = parsed
			}
			if testkit.Uniform(t, 2, "namespaces") == 0 {
				m.Namespaces = []string{"default"}
				selectors = append(selectors, "in default")
			}
			spec.Match = append(spec.Match, m)
		}
	}
	if testkit.Uniform(t, 3, "filter") == 0 {
		spec.FilterKey = "disk"
		spec.NodeFilter = onNodesWith(spec.FilterKey)
	}
	spec.SkipTerminating = testkit.Uniform(t, 2, "skip") == 0
	spec.Lowest = testkit.Uniform(t, 2, "lowest") == 0
	spec.Key = fmt.Sprint(spec.Topology, selectors, spec.Owners, spec.FilterKey, spec.SkipTerminating, spec.Lowest)
	return spec
}

// TestPropertyInvariantsHold takes a state through histories with what-ifs and
// facts that come and go, and checks after every step what the heads of the files
// say.
func TestPropertyInvariantsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := testkit.NewWorld(newState(), 5)
		w.Furnish(t)
		s := w.State
		s.Topology(v1.LabelTopologyZone)
		var marks []cluster.Mark
		var facts []*cluster.Fact
		var history []string
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch k := testkit.Uniform(t, 12, "step"); {
			case k == 0:
				marks = append(marks, s.Mark())
				history = append(history, "mark")
			case k <= 2 && len(marks) > 0:
				last := marks[len(marks)-1]
				marks = marks[:len(marks)-1]
				if k == 1 {
					s.Rollback(last)
					history = append(history, "rollback")
				} else {
					s.Release(last)
					history = append(history, "release")
				}
			case k <= 4:
				spec := randomFact(t, s)
				facts = append(facts, s.Fact(spec))
				history = append(history, "fact "+spec.Key)
			case k == 5 && len(facts) > 0:
				i := testkit.Uniform(t, len(facts), "which fact")
				history = append(history, "drop "+facts[i].Key())
				s.DropFact(facts[i])
				facts = append(facts[:i], facts[i+1:]...)
			default:
				w.Group = []string{"", "a", "b"}[testkit.Uniform(t, 3, "group")]
				history = append(history, w.Change(t))
			}
			if broken := s.Broken(); len(broken) > 0 {
				t.Fatalf("after %q:\n%s\nhistory:\n%s", history[len(history)-1], strings.Join(broken, "\n"), strings.Join(history, "\n"))
			}
		}
		for _, f := range facts {
			s.DropFact(f)
		}
		if left := s.Facts(); len(left) > 0 {
			t.Fatalf("%d facts are kept for nobody, such as %s", len(left), left[0].Key())
		}
		if broken := s.Broken(); len(broken) > 0 {
			t.Fatalf("after all facts were dropped:\n%s", strings.Join(broken, "\n"))
		}
	})
}
