package core_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// churning is a small cluster in which everything is replaced by something of another name,
// day for day.
type churning struct {
	taker
	prompt
	now   time.Time
	root  any // what is measured
	nodes []string
	pods  map[string]*v1.Pod // by name, as the API has them
	bound []step.Bind
}

// Bind implements drive.Workers: the API shows the pod on its node when the day goes on.
func (c *churning) Bind(b step.Bind, done func(error)) {
	c.bound = append(c.bound, b)
	done(nil)
}

// Preempt implements drive.Workers. Nobody preempts: all pods have one priority.
func (c *churning) Preempt(step.Preemption, func(error)) { panic("a pod is preempted") }

func newChurning(t *testing.T, standby bool) *churning {
	c := &churning{now: time.Unix(1000, 0), pods: map[string]*v1.Pod{}}
	cfg := autoscaling(func(*core.Autoscale) {})
	d := newDriven(t, cfg, c, defaults)
	c.taker = taker{"leader", d.stepOut, d.Core()}
	if standby {
		c.taker = taker{"standby", func(now time.Time, in ...step.Input) {
			if err := d.StandBy(now, in...); err != nil {
				t.Fatal(err)
			}
		}, d.Core()}
	}
	c.root = d.Driver
	c.step(step.GroupsSet{})
	return c
}

func (c *churning) step(in ...step.Input) {
	c.now = c.now.Add(time.Minute)
	c.take(c.now, in...)
	var shown []step.Input
	for _, b := range c.bound {
		p := c.pods[b.Name].DeepCopy()
		p.Spec.NodeName = b.Node
		c.pods[p.Name] = p
		shown = append(shown, step.PodSet{Pod: p})
	}
	if c.bound = nil; shown != nil {
		c.take(c.now, shown...)
	}
}

func matching(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// apps are rolled out anew each day, each with a pod.
const apps = 70

// pod returns the pod of an app that a rollout makes. Each rollout has selectors, labels and an
// image of its own, and some ask for a resource and a topology that nobody has.
func rolledOut(day, app int) *testkit.PodBuilder {
	name, hash := fmt.Sprint("app", app), fmt.Sprint("hash", day)
	b := testkit.Pod(fmt.Sprintf("app%d-%d", app, day)).Namespaced("default").Label("app", name).Label("hash", hash).
		Req("cpu", "20m", "memory", "32Mi").Image(fmt.Sprintf("registry.example/%s:%d", name, day)).Owner("apps/v1", "ReplicaSet", fmt.Sprintf("%s-%d", name, day))
	switch app % 7 {
	case 0:
		b.SpreadHard(v1.LabelTopologyZone, 5, "hash", hash)
	case 1:
		b.Apart(v1.LabelHostname, "rollout", fmt.Sprint(name, hash)).Label("rollout", fmt.Sprint(name, hash))
	case 2:
		b.PreferTogether(5, fmt.Sprint("example.com/topology-", day), "app", name)
	case 3:
		b.PreferApart(5, v1.LabelHostname, fmt.Sprint("key-", day, "-", app), "x")
	case 4:
		b.AffinityTerm(v1.PodAffinityTerm{TopologyKey: v1.LabelTopologyZone, LabelSelector: matching("app", name),
			NamespaceSelector: matching(fmt.Sprint("team-", day), "x")}).Req(fmt.Sprintf("example.com/r%d", day), "1")
	case 5:
		b.SpreadSoft("instance", 1, "hash", hash)
	}
	return b
}

// day replaces two of 12 nodes, all pods, their ReplicaSets, a Service and a namespace.
func (c *churning) day(day int) {
	var in []step.Input
	for i := range 12 {
		if len(c.nodes) == 12 && i >= 2 {
			break
		}
		name := fmt.Sprintf("node-%d-%d", day, i)
		b := testkit.Node(name).Zone(fmt.Sprint("zone", i%3)).Label(v1.LabelHostname, name).Label("instance", "i-"+name).
			Alloc("cpu", "16", "memory", "64Gi", "pods", "110", fmt.Sprintf("example.com/of-%d", day), "1").
			Images(100<<20, fmt.Sprintf("registry.example/app%d:%d", i, day))
		c.nodes = append(c.nodes, name)
		in = append(in, step.NodeSet{Node: b.Obj()}, step.ObjectSet{Object: testkit.CSINode(name).Obj()})
	}
	in = append(in, step.ObjectSet{Object: testkit.Namespace(fmt.Sprint("ns", day), fmt.Sprint("team-", day), "x")},
		step.WorkloadSet{Workload: cluster.WorkloadOf(testkit.Service(fmt.Sprint("service", day), "hash", fmt.Sprint("hash", day)))})
	for app := range apps {
		p := rolledOut(day, app).Obj()
		c.pods[p.Name] = p
		in = append(in, step.PodSet{Pod: p})
	}
	c.step(in...)
	in = nil
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		p := c.pods[name]
		if p.Labels["hash"] != fmt.Sprint("hash", day) {
			delete(c.pods, name)
			in = append(in, step.PodGone{UID: p.UID})
		}
	}
	for len(c.nodes) > 12 {
		in = append(in, step.NodeGone{Name: c.nodes[0]}, step.ObjectGone{Kind: cluster.CSINodeKind, Name: c.nodes[0]})
		c.nodes = c.nodes[1:]
	}
	in = append(in, step.ObjectGone{Kind: cluster.NamespaceKind, Name: fmt.Sprint("ns", day-1)},
		step.WorkloadGone{Kind: cluster.Service, Namespace: "default", Name: fmt.Sprint("service", day-1)})
	c.step(in...)
	c.now = c.now.Add(24 * time.Hour)
}

// grown returns which lengths are larger than limit says, the most grown first.
func grown(lengths map[string]int, limit func(path string) int) (out []string) {
	paths := slices.SortedFunc(maps.Keys(lengths), func(a, b string) int {
		return cmp.Or(cmp.Compare(lengths[b]-limit(b), lengths[a]-limit(a)), cmp.Compare(a, b))
	})
	for _, path := range paths {
		if max := limit(path); lengths[path] > max {
			out = append(out, fmt.Sprintf("%s has %d entries, want %d at most", path, lengths[path], max))
		}
	}
	return out
}

// TestAYearOfChurnCostsNoMemory has 70 apps rolled out anew each day, and two of 12 nodes
// replaced: whatever holds something by name is as large after a year as in its first quarter,
// in which more classes are met than are kept.
func TestAYearOfChurnCostsNoMemory(t *testing.T) {
	for _, standby := range []bool{false, true} {
		c := newChurning(t, standby)
		t.Run(c.name, func(t *testing.T) {
			largest, memory := map[string]int{}, int64(0)
			for day := 1; day <= 360; day++ {
				c.day(day)
				if day%30 != 0 {
					continue
				}
				lengths, used := testkit.Lengths(c.root), heap()
				t.Logf("month %d: %d MiB", day/30, used>>20)
				if day <= 90 {
					memory = max(memory, used)
					for path, n := range lengths {
						largest[path] = max(largest[path], n)
					}
				}
				if day < 360 {
					continue
				}
				for _, what := range grown(lengths, func(path string) int { return largest[path]*3/2 + 64 }) {
					t.Error(what)
				}
				if used > memory*3/2+4<<20 {
					t.Errorf("%d MiB are used after a year, and at most %d were in the first quarter", used>>20, memory>>20)
				}
			}
		})
	}
}
