package nodegroups_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file draws what providers list: nodes that come late or never, instances whose IDs come
// again, and groups that a list doesn't have. The reference keeps what was listed, and counts.

// provisionTime is how long instances may take in this file.
const provisionTime = 10 * time.Minute

// lister is a provider of a group g that lists what it has.
type lister struct {
	t       *rapid.T
	m       *nodegroups.Machine
	turn    *lifecycle.Turn
	group   nodegroup.Group
	ids     map[string]bool // of its instances
	history []string
}

func newLister(t *rapid.T) *lister {
	return &lister{t: t, ids: map[string]bool{},
		turn: &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}},
		m: nodegroups.New(nodegroups.Config{MaxProvisionTime: provisionTime, InitialBackoff: time.Minute, MaxBackoff: time.Minute, BackoffReset: time.Hour},
			&fakeDeletions{}, launching.New(launching.Config{})),
		group: nodegroup.Group{ID: "g", Max: 1000, Template: testkit.Node("t").Obj()},
	}
}

// list has the provider list its group, and returns what the machine asks for.
func (l *lister) list() *step.Ready {
	l.turn.Ready = &step.Ready{}
	g := l.group
	g.Instances = []nodegroup.Instance{}
	for _, id := range slices.Sorted(maps.Keys(l.ids)) {
		g.Instances = append(g.Instances, nodegroup.Instance{ID: id, Node: id})
	}
	l.note("the target is %d, instances %v", g.Target, slices.Sorted(maps.Keys(l.ids)))
	l.m.GroupsSet(l.turn, step.GroupsSet{Groups: []nodegroup.Group{g}})
	return l.turn.Ready
}

func (l *lister) wait() {
	l.turn.Now = l.turn.Now.Add(time.Duration(testkit.Uniform(l.t, 500, "seconds")) * time.Second)
}

func (l *lister) note(format string, args ...any) {
	l.history = append(l.history, fmt.Sprintf("%s "+format, append([]any{l.turn.Now.Sub(time.Unix(1000, 0))}, args...)...))
}

func (l *lister) fatalf(format string, args ...any) {
	l.t.Fatalf(format+"; history:\n%v", append(args, l.history)...)
}

// register has an instance be a node.
func (l *lister) register(id string) {
	n := testkit.Node(id).Obj()
	n.Spec.ProviderID = id
	l.turn.State.SetNode(l.turn.State.Schema.ParseNode(n, "g"))
}

// TestPropertyNodesAreGivenUpInTheirTimeAndNotBefore has a group grow while its instances come late,
// and others are replaced. As many nodes are given up in all as were first listed a provisioning time
// ago or before, less the instances that have come.
func TestPropertyNodesAreGivenUpInTheirTimeAndNotBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLister(t)
		ordered := map[time.Time]int{} // nodes, by the list that first had them
		came, givenUp := 0, 0
		for range rapid.IntRange(1, 40).Draw(t, "lists") {
			grown := max(0, testkit.Uniform(t, 8, "grown")-4)
			for id := range max(0, testkit.Uniform(t, 5, "replaced")-3) {
				if ids := slices.Sorted(maps.Keys(l.ids)); len(ids) > id {
					delete(l.ids, ids[id]) // its node stays a while, as nodes do
					grown++
					l.group.Target--
				}
			}
			l.group.Target += grown
			for range testkit.Uniform(t, 4, "come") {
				if len(l.ids) < l.group.Target-grown {
					came++
					id := fmt.Sprint("i", came)
					l.ids[id] = true
					l.register(id)
				}
			}
			ordered[l.turn.Now] += grown
			r := l.list()
			due := -came
			for at, nodes := range ordered {
				if l.turn.Now.Sub(at) >= provisionTime {
					due += nodes
				}
			}
			for _, x := range r.TargetDecreases {
				l.group.Target -= x.Nodes
				givenUp += x.Nodes
			}
			if due < givenUp && len(r.TargetDecreases) > 0 || due > givenUp {
				l.fatalf("%d nodes are given up by now, and %d are due", givenUp, due)
			}
			l.wait()
		}
	})
}

// TestPropertyAnInstanceHasItsTimeFromItsFirstList has few IDs for many instances: one that goes comes
// again. None is removed before it was in the lists of a provisioning time.
func TestPropertyAnInstanceHasItsTimeFromItsFirstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLister(t)
		since := map[string]time.Time{} // the first of the last lists in a row that have an instance
		for range rapid.IntRange(1, 60).Draw(t, "lists") {
			for range testkit.Uniform(t, 3, "changes") {
				id := fmt.Sprint("host", testkit.Uniform(t, 3, "host"))
				if l.ids[id] && testkit.Uniform(t, 3, "goes") == 0 {
					delete(l.ids, id)
				} else {
					l.ids[id] = true
				}
			}
			l.group.Target = len(l.ids)
			maps.DeleteFunc(since, func(id string, _ time.Time) bool { return !l.ids[id] })
			for id := range l.ids {
				if _, listed := since[id]; !listed {
					since[id] = l.turn.Now
				}
			}
			for _, d := range l.list().NodeDeletions {
				if listed := l.turn.Now.Sub(since[d.Instance]); listed < provisionTime {
					l.fatalf("instance %s is removed %s after it was first listed", d.Instance, listed)
				}
				delete(l.ids, d.Instance)
				l.note("instance %s is deleted", d.Instance)
				l.m.NodeDeletionDone(l.turn, step.NodeDeletionDone{Node: d.Node, Instance: d.Instance})
			}
			l.wait()
		}
	})
}

// TestPropertyAGroupIsGoneWhenTwoListsDoNotHaveIt lists some of three groups at a time, and says
// nothing of some. The state has those that one of the last two lists had.
func TestPropertyAGroupIsGoneWhenTwoListsDoNotHaveIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLister(t)
		missed := map[string]time.Time{} // the first in a row of lists that don't have a group; zero when it is listed
		gone := map[string]bool{}        // groups that weren't listed yet have no entry
		for range rapid.IntRange(1, 20).Draw(t, "lists") {
			in := step.GroupsSet{}
			for _, id := range []string{"a", "b", "c"} {
				switch testkit.Uniform(t, 5, "group "+id) {
				case 0, 1:
					if missed[id].IsZero() {
						missed[id] = l.turn.Now
					} else if l.turn.Now.Sub(missed[id]) >= nodegroup.GoneAfter {
						gone[id] = true
					}
				case 2:
					in.Busy = append(in.Busy, id)
				default:
					missed[id], gone[id] = time.Time{}, false
					in.Groups = append(in.Groups, nodegroup.Group{ID: id, Max: 3, Target: 1, Template: testkit.Node("t").Obj(), Instances: []nodegroup.Instance{{ID: id}}})
				}
			}
			l.note("%d groups are listed, and nothing is said of %v", len(in.Groups), in.Busy)
			l.m.GroupsSet(l.turn, in)
			for _, id := range []string{"a", "b", "c"} {
				isGone, known := gone[id]
				if there := l.turn.State.Group(id) != nil; there != (known && !isGone) {
					l.fatalf("group %s is in the state: %v; it was listed: %v, and lists don't have it since %s", id, there, known, missed[id])
				}
			}
			l.wait()
		}
	})
}

// TestPropertyWhatIsListedAndNoNodeIsComing replaces instances whose Node objects stay for a while, not
// ready. As many nodes are coming as the list has instances that aren't nodes.
func TestPropertyWhatIsListedAndNoNodeIsComing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLister(t)
		nodes, dead, serial := map[string]bool{}, map[string]bool{}, 0
		for range rapid.IntRange(1, 20).Draw(t, "lists") {
			switch ids := slices.Sorted(maps.Keys(nodes)); testkit.Uniform(t, 4, "what") {
			case 0: // one more
				l.group.Target++
			case 1: // one is replaced
				if len(ids) == 0 {
					continue
				}
				id := ids[testkit.Uniform(t, len(ids), "replaced")]
				delete(l.ids, id)
				delete(nodes, id)
				dead[id] = true
				l.turn.State.SetNode(notReady(l.turn.State.NodeByName(id).NodeInfo))
				l.note("%s is dead", id)
			case 2: // all are nodes
				for id := range l.ids {
					if !nodes[id] {
						nodes[id] = true
						l.register(id)
					}
				}
				l.note("nodes are %v", slices.Sorted(maps.Keys(nodes)))
			default: // dead objects go
				for id := range dead {
					l.turn.State.RemoveNode(id)
				}
				clear(dead)
			}
			for len(l.ids) < l.group.Target {
				serial++
				l.ids[fmt.Sprint("i", serial)] = true
			}
			l.list()
			if got, want := l.m.Coming(l.turn).Of("g"), len(l.ids)-len(nodes); got != want {
				l.fatalf("%d nodes are coming, want %d", got, want)
			}
			l.turn.Now = l.turn.Now.Add(time.Second)
		}
	})
}

// TestPropertyTaintsOfNewNodes shows nodes in any order, on which people put taints, and takes them away. A
// new node is taken to have those of the newest that it had when it was first shown as usable, and
// that the second newest had, too, likewise, and those of the provider's template. Of a newest that
// wasn't shown before it was usable, all such nodes must always have had them.
func TestPropertyTaintsOfNewNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := nodegroups.New(nodegroups.Config{}, nil, nil)
		schema := cluster.NewSchema()
		draw := func(what string) (out []string) {
			for _, key := range []string{"a", "b"} {
				if testkit.Uniform(t, 2, what+" "+key) == 1 {
					out = append(out, key)
				}
			}
			return out
		}
		node := func(number int, taints []string) *cluster.NodeInfo {
			b := testkit.Node(fmt.Sprint("n", number))
			b.CreationTimestamp.Time = time.Unix(int64(number), 0)
			for _, key := range taints {
				b.Taint(key, "", v1.TaintEffectNoSchedule)
			}
			return schema.ParseNode(b.Obj(), "g")
		}
		template := draw("template")
		shown, first := map[int][]string{}, map[int][]string{} // taints by node, as last shown and at first
		starting, lacking := map[int]bool{}, map[string]bool{} // nodes that were shown before; taints that another of them hasn't had
		for range rapid.IntRange(1, 12).Draw(t, "shown") {
			number := testkit.Uniform(t, 4, "node")
			taints := draw("node")
			if _, known := shown[number]; !known {
				first[number] = taints
				if starting[number] = testkit.Uniform(t, 2, "starting") == 1; starting[number] {
					m.NodeShown(node(number, draw("starting")), node(9, template), false)
				}
			}
			shown[number] = taints
			for _, key := range []string{"a", "b"} {
				lacking[key] = lacking[key] || !starting[number] && !slices.Contains(taints, key)
			}
			m.NodeShown(node(number, taints), node(9, template), true)

			order := slices.Sorted(maps.Keys(shown))
			newest := order[len(order)-1]
			var want []string
			for _, key := range shown[newest] {
				general := slices.Contains(first[newest], key) && (len(order) < 2 || slices.Contains(first[order[len(order)-2]], key))
				general = general && (starting[newest] || !lacking[key])
				if general || slices.Contains(template, key) {
					want = append(want, key)
				}
			}
			var got []string
			for _, taint := range m.Conditions(time.Unix(1000, 0))["g"].Newest.Object.Spec.Taints {
				got = append(got, taint.Key)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("new nodes have the taints %v, want %v: nodes have %v, at first %v, starting %v, the template %v", got, want, shown, first, starting, template)
			}
		}
	})
}
