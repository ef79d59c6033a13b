package core_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/framework"
	"github.com/berthproject/berth/internal/testkit"
	"github.com/berthproject/berth/plugins"
)

// TestPropertyOddIntake gives a core what a bad day gives it: pods that change
// while their bind or preemption is under way, nodes that flap, everything told
// twice, relists in another order with other contents, answers that come late,
// twice or not before hours have passed. In the end it knows exactly the pods that
// there are where they are, nobody who fits waits, and nothing is held on to.
func TestPropertyOddIntake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := cluster.NewSchema()
		c, err := core.New(schema, core.Config{Profiles: []*framework.Profile{plugins.Default(schema, plugins.Options{})}})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1000, 0)
		e := &edge{t: t, pods: map[types.UID]*v1.Pod{}}
		nodes := map[string]*v1.Node{}
		told := ""
		step := func(wait time.Duration, failures int, in ...core.Input) {
			now = now.Add(wait)
			r := c.Step(now, in...)
			told += tell(in) + "→ " + text(&r)
			if n := c.Stats().MissedWakeups; n > 0 {
				t.Fatalf("%d pods were found schedulable by the leftover sweep; history:\n%s", n, told)
			}
			e.take(&r, failures)
		}
		// What is told of one object keeps its order.
		var in []core.Input
		twice := false
		say := func(list ...core.Input) {
			for _, x := range list {
				in = append(in, x)
				if twice {
					in = append(in, x)
				}
				switch x := x.(type) {
				case core.NodeSet:
					nodes[x.Node.Name] = x.Node
				case core.NodeGone:
					delete(nodes, x.Name)
				}
			}
			e.see(list)
		}
		chance := func(percent int, what string) bool { return rapid.IntRange(0, 99).Draw(t, what) < percent }
		pods := func() []types.UID { return slices.Sorted(maps.Keys(e.pods)) }
		mutated := func(uid types.UID) core.Input {
			old := e.pods[uid]
			p := old.DeepCopy()
			testkit.Perturb(t, p)
			p.UID, p.Name, p.Namespace, p.Spec.NodeName = old.UID, old.Name, old.Namespace, old.Spec.NodeName
			return core.PodSet{Pod: p}
		}
		for _, news := range randomHistory(t) {
			in, twice = nil, chance(20, "twice")
			say(e.some(rapid.IntRange(0, 3).Draw(t, "answers"))...)
			say(news...)
			for _, uid := range pods() {
				if chance(10, "mutated") {
					say(mutated(uid))
				}
			}
			for _, name := range slices.Sorted(maps.Keys(nodes)) {
				if n := nodes[name]; chance(10, "flaps") {
					say(core.NodeGone{Name: name}, core.NodeSet{Node: n})
				}
			}
			if chance(10, "relist") {
				for _, uid := range rapid.Permutation(pods()).Draw(t, "order") {
					if chance(30, "changed") {
						say(mutated(uid))
					} else {
						say(core.PodSet{Pod: e.pods[uid].DeepCopy()})
					}
				}
				for _, name := range slices.Sorted(maps.Keys(nodes)) {
					say(core.NodeSet{Node: nodes[name].DeepCopy()})
				}
			}
			wait := []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 3 * time.Hour}[rapid.IntRange(0, 3).Draw(t, "wait")]
			step(wait, 20, in...)
		}
		answer := func(wait time.Duration) {
			in, twice = nil, false
			say(e.some(len(e.owed))...)
			step(wait, 0, in...)
		}
		for range 60 {
			answer(11 * time.Second)
		}
		for range 3 {
			answer(6 * time.Minute)
		}
		for len(e.owed) > 0 {
			answer(time.Second)
		}
		for _, problem := range c.Unsettled() {
			t.Fatalf("%s; history:\n%s", problem, told)
		}
		want, got := map[types.UID]string{}, map[types.UID]string{}
		for uid, p := range e.pods {
			over := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
			if nodes[p.Spec.NodeName] != nil && !over {
				want[uid] = p.Spec.NodeName
			}
		}
		c.State().Nodes(func(n *cluster.Node) {
			for _, p := range n.Pods {
				got[p.UID] = n.Name
			}
		})
		if !maps.Equal(got, want) {
			t.Fatalf("the core has pods on %v, the API on %v; history:\n%s", fmt.Sprint(got), fmt.Sprint(want), told)
		}
	})
}
