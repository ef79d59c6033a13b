package framework_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// placed returns a state with nodes n0, n1, … on which so many pods of each app run,
// and one fact for each app that counts them per node.
func placed(apps []string, counts ...[]int) (*cluster.State, []*cluster.Fact) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	for i, list := range counts {
		node := fmt.Sprint("n", i)
		s.SetNode(schema.ParseNode(testkit.Node(node).Obj(), ""))
		for k, n := range list {
			for j := range n {
				s.Place(schema.ParsePod(testkit.Pod(fmt.Sprint(node, apps[k], j)).Label("app", apps[k]).Obj()), node)
			}
		}
	}
	var facts []*cluster.Fact
	for _, app := range apps {
		match := cluster.PodMatch{Selector: labels.SelectorFromSet(labels.Set{"app": app})}
		facts = append(facts, s.Fact(cluster.FactSpec{Key: app, Topology: cluster.PerNode, Match: []cluster.PodMatch{match}}))
	}
	return s, facts
}

// For no, one, two and three facts: which nodes have equal keys, which have key 0,
// and what Count makes of the keys.
func TestHostKeysAreEqualIffAllCountsAre(t *testing.T) {
	for _, c := range []struct {
		name   string
		apps   []string
		counts [][]int // by node, then by app
	}{
		{"no fact", nil, [][]int{{}, {}}},
		{"one fact", []string{"web"}, [][]int{{0}, {3}, {1}, {3}}},
		{"two facts", []string{"web", "db"}, [][]int{{0, 0}, {1, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}}},
		{"a count that passes a byte", []string{"web", "db"}, [][]int{{256, 0}, {1, 0}, {0, 1}}},
		{"three facts", []string{"web", "db", "batch"}, [][]int{{1, 2, 3}, {3, 2, 1}, {0, 0, 0}, {1, 2, 3}, {0, 0, 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, facts := placed(c.apps, c.counts...)
			var keys framework.HostKeys
			key := func(n int) int32 { return keys.Key(facts, cluster.NodeIndex(n)) }
			for a := range c.counts {
				zero := true
				for i, want := range c.counts[a] {
					zero = zero && want == 0
					if got := keys.Count(key(a), i, len(facts)); got != int32(want) {
						t.Errorf("node %d, key %d: count of %s is %d, want %d", a, key(a), c.apps[i], got, want)
					}
				}
				if (key(a) == 0) != zero {
					t.Errorf("node %d with counts %v has key %d; 0 is for no counts only", a, c.counts[a], key(a))
				}
				for b := range c.counts {
					if want := fmt.Sprint(c.counts[a]) == fmt.Sprint(c.counts[b]); (key(a) == key(b)) != want {
						t.Errorf("counts %v and %v have keys %d and %d; equal keys want %v", c.counts[a], c.counts[b], key(a), key(b), want)
					}
				}
			}
		})
	}
}

func TestHostKeyFollowsTheState(t *testing.T) {
	s, facts := placed([]string{"web", "db"}, []int{1, 1}, []int{1, 0})
	var keys framework.HostKeys
	both, one := keys.Key(facts, 0), keys.Key(facts, 1)
	s.Remove("pod-n0db0")
	if got := keys.Key(facts, 0); got != one || got == both {
		t.Errorf("after the second app left node 0 its key is %d, want that of node 1, %d", got, one)
	}
}

func TestHostKeysAllocateForNewCombinationsOnly(t *testing.T) {
	_, facts := placed([]string{"web", "db"}, []int{1, 1}, []int{1, 0}, []int{0, 0})
	var keys framework.HostKeys
	ask := func() {
		for n := range 3 {
			keys.Key(facts, cluster.NodeIndex(n))
		}
	}
	ask()
	if n := testing.AllocsPerRun(100, ask); n != 0 {
		t.Errorf("%v allocations for combinations that nodes had before, want none", n)
	}
}

func TestTopologyKeysAreListedOnce(t *testing.T) {
	var keys framework.TopologyKeys
	for _, c := range []struct {
		key  string
		want int
	}{{v1.LabelTopologyZone, 0}, {"rack", 1}, {v1.LabelTopologyZone, 0}, {"row", 2}, {"rack", 1}} {
		if got := keys.Index(c.key); got != c.want || keys[got] != c.key {
			t.Errorf("position of %s is %d in %v, want %d", c.key, got, keys, c.want)
		}
	}
	if len(keys) != 3 {
		t.Errorf("the keys are %v, want three", keys)
	}
}
