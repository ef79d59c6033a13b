package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// keepingNodes returns nodes with two devices each, on each of which a place keeps one.
func keepingNodes(n int) *cluster.State {
	s := cluster.New(cluster.NewSchema())
	s.SetObject(testkit.DeviceClass("gpus", ""))
	for i := range n {
		name := fmt.Sprint("n", i)
		s.SetNode(s.Schema.ParseNode(testkit.Node(name).Label(v1.LabelTopologyZone, fmt.Sprint("z", i%2)).Alloc("cpu", "9", "pods", "9").Obj(), ""))
		s.SetObject(testkit.NodeSlice("gpu.example", name).Devices(testkit.NamedDevices("g0", "g1")...).Obj())
		s.KeepPlace(s.Schema.ParsePod(claims(s, "kept-"+name).Obj()), name)
	}
	return s
}

// claims returns a pod with a claim for a device that was made for it.
func claims(s *cluster.State, name string) *testkit.PodBuilder {
	s.SetObject(testkit.ResourceClaim(name, testkit.Request("r", "gpus")).MadeFor(name).Obj())
	return testkit.Pod(name).TemplateClaim("own", name)
}

// TestPlacesAreAskedAboutOnce counts the pods that are placed in what-ifs to choose nodes for pods of one class: once
// for each place, and then only on nodes where something has changed.
func TestPlacesAreAskedAboutOnce(t *testing.T) {
	const nodes = 6
	for _, c := range []struct {
		name string
		pod  func(*testkit.PodBuilder) *testkit.PodBuilder
		want int // pods placed when all is known
	}{
		{"no group rule", func(b *testkit.PodBuilder) *testkit.PodBuilder { return b }, 0},
		{"a group rule that reads none of them", func(b *testkit.PodBuilder) *testkit.PodBuilder {
			return b.Label("app", "a").SpreadHard(v1.LabelTopologyZone, 1, "app", "a")
		}, 0},
		{"a group rule that reads them", func(b *testkit.PodBuilder) *testkit.PodBuilder {
			return b.Label("app", "kept").SpreadHard(v1.LabelTopologyZone, 9, "app", "kept")
		}, nodes},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := keepingNodes(nodes)
			for i := range nodes {
				name := fmt.Sprint("n", i)
				s.KeepPlace(s.Schema.ParsePod(claims(s, "kept-"+name).Label("app", "kept").Obj()), name)
			}
			var placed rolledBackPods
			s.AddCache(&placed)
			e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
			pods := 0
			choose := func(after string, want int) {
				pods++
				class := e.Class(s.Schema.ParsePod(c.pod(claims(s, fmt.Sprint("p", pods))).Obj()))
				placed = 0
				if _, ok := e.Best(class); !ok || int(placed) != max(want, c.want) {
					t.Errorf("%s: there is a node: %t; %d pods were placed in what-ifs, want %d", after, ok, placed, max(want, c.want))
				}
			}
			choose("at first", nodes)
			choose("again", 0)
			other := s.Schema.ParsePod(claims(s, "other").Obj())
			e.PlaceOn(other, s.NodeByName("n3").Index)
			choose("a device was taken", 1)
			mark := s.Mark()
			e.TakeOff(other)
			choose("in a what-if", 1)
			s.Rollback(mark)
			choose("the what-if was taken back", 1)
			choose("at last", 0)
		})
	}
}

// TestReasonsBesidePlacesAreKept counts the pods that are placed in what-ifs to say why a class fits nowhere: once for
// each place, and then only on nodes where something has changed.
func TestReasonsBesidePlacesAreKept(t *testing.T) {
	const nodes = 6
	s := keepingNodes(nodes)
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
	for i := range nodes {
		e.PlaceOn(s.Schema.ParsePod(claims(s, fmt.Sprint("other", i)).Obj()), cluster.NodeIndex(i))
	}
	var placed rolledBackPods
	s.AddCache(&placed)
	diagnose := func(after string, want int, message string) {
		class := e.Class(s.Schema.ParsePod(claims(s, "waits").Obj()))
		placed = 0
		if got := e.Diagnose(class).Message(); int(placed) != want || got != message {
			t.Errorf("%s: %d pods were placed in what-ifs, want %d; the message is %q, want %q", after, placed, want, got, message)
		}
	}
	diagnose("at first", nodes, "0/6 nodes are available: 6 cannot allocate all claims.")
	diagnose("again", 0, "0/6 nodes are available: 6 cannot allocate all claims.")
	s.SetNode(s.Schema.ParseNode(testkit.Node("n3").Cordon().Alloc("cpu", "9", "pods", "9").Obj(), ""))
	diagnose("a node was cordoned", 0, "0/6 nodes are available: 1 node(s) were unschedulable, 5 cannot allocate all claims.")
	s.KeepPlace(s.Schema.ParsePod(claims(s, "kept too").Obj()), "n2")
	diagnose("another place", 2, "0/6 nodes are available: 1 node(s) were unschedulable, 5 cannot allocate all claims.")
}

// TestPlacesFollowTheirClaims has a class wait for a device that a place keeps: it fits once the place's claim keeps
// none there, though nothing else touches the node, and a choice knows that as well as the queue.
func TestPlacesFollowTheirClaims(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*cluster.State)
	}{
		{"the claim goes", func(s *cluster.State) { s.RemoveObject(cluster.ResourceClaimKind, "default", "kept-n0") }},
		{"the claim asks for none that is there", func(s *cluster.State) {
			s.SetObject(testkit.ResourceClaim("kept-n0", testkit.Request("r", "gpus").Count(3)).MadeFor("kept-n0").Obj())
		}},
		{"the place is for extended resources, and an earlier attempt has left a claim", func(s *cluster.State) {
			left := testkit.ResourceClaim("left", testkit.Request("r", "gpus")).MadeFor("kept-n0").Obj()
			left.Annotations = map[string]string{"resource.kubernetes.io/extended-resource-claim": "true"}
			s.SetObject(left)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := keepingNodes(1)
			s.SetObject(testkit.DeviceClass("gpus", "example.com/gpu"))
			if kept := s.NodeByName("n0").Nominated[0]; c.name[4] == 'p' {
				s.Nominate(kept, "")
				s.KeepPlace(s.Schema.ParsePod(testkit.Pod("kept-n0").Req("example.com/gpu", "1").Obj()), "n0")
			}
			e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
			e.PlaceOn(s.Schema.ParsePod(claims(s, "other").Obj()), 0)
			class := e.Class(s.Schema.ParsePod(claims(s, "waits").Obj()))
			if _, ok := e.Best(class); ok {
				t.Fatal("the pod gets the device that is kept")
			}
			d, from := e.Diagnose(class), s.Head()
			c.change(s)
			changes, _ := s.Since(from)
			if help, _ := e.MayHelp(class, d, changes); help != engine.Fits {
				t.Errorf("the queue is told %d, want that the pod fits", help)
			}
			if _, ok := e.Best(class); !ok {
				t.Error("a choice finds no node")
			}
		})
	}
}

// TestAnswersBesidePlacesAreOfAClass asks about two pods of one class, each with a claim that others may name, beside a
// nominated pod that takes the only device with one of the claims: the pod that has the same claim fits, and the other
// doesn't, whoever is asked about first.
func TestAnswersBesidePlacesAreOfAClass(t *testing.T) {
	for _, order := range [][]string{{"c0", "c1", "c0"}, {"c1", "c0", "c1"}} {
		s := cluster.New(cluster.NewSchema())
		s.SetObject(testkit.DeviceClass("gpus", ""))
		s.SetNode(s.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "9", "pods", "9").Obj(), ""))
		s.SetObject(testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices("g0")...).Obj())
		for _, name := range []string{"c0", "c1"} {
			s.SetObject(testkit.ResourceClaim(name, testkit.Request("r", "gpus")).Obj())
		}
		s.Nominate(s.Schema.ParsePod(testkit.Pod("nominated").Claims("c0").Obj()), "n")
		e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{DevicePreemption: true}), engine.Options{}))
		for _, claim := range order {
			if _, ok := e.Best(e.Class(s.Schema.ParsePod(testkit.Pod("p-" + claim).Claims(claim).Obj()))); ok != (claim == "c0") {
				t.Errorf("in the order %v a pod with claim %s fits: %t", order, claim, ok)
			}
		}
	}
}

// TestPlacesFollowHeadrooms has a stand-in want two devices of which one is taken: nobody gets the other once it is
// known that the stand-in keeps room for a pod group.
func TestPlacesFollowHeadrooms(t *testing.T) {
	s := keepingNodes(1)
	s.Nominate(s.NodeByName("n0").Nominated[0], "")
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
	e.PlaceOn(s.Schema.ParsePod(claims(s, "other").Obj()), 0)
	s.SetObject(testkit.ResourceClaim("stands-in", testkit.Request("r", "gpus").Count(2)).MadeFor("stands-in").Obj())
	p := s.Schema.ParsePod(testkit.Pod("stands-in").TemplateClaim("own", "stands-in").Obj())
	p.StandIn = "group"
	s.Nominate(p, "n0")
	class := e.Class(s.Schema.ParsePod(claims(s, "comes").Obj()))
	if _, ok := e.Best(class); !ok {
		t.Fatal("the pod doesn't get the device that nobody can have")
	}
	s.SetHeadroom(&cluster.Headroom{ID: "group", Group: &cluster.GroupRoom{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}}})
	if _, ok := e.Best(class); ok {
		t.Error("the pod gets a device for which a group waits")
	}
}

// countedChanges is the plugin for devices, which counts the changes that it is asked about.
type countedChanges struct {
	dynamicresources.Plugin
	n *int
}

// Reclassifies implements framework.Reclassifier.
func (c countedChanges) Reclassifies(change *cluster.Change, s *cluster.State) func(*cluster.Pod) bool {
	*c.n++
	return c.Plugin.Reclassifies(change, s)
}

// TestDryRunsLookAtAChangeOnce counts the changes of objects that a dry run of preemption looks at: for four times
// the victims four times as many.
func TestDryRunsLookAtAChangeOnce(t *testing.T) {
	looks := func(victims int) int {
		s := cluster.New(cluster.NewSchema())
		s.SetObject(testkit.DeviceClass("gpus", ""))
		s.SetNode(s.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "99", "pods", "99").Obj(), ""))
		s.SetObject(testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices(testkit.Names("g", victims)...)...).Obj())
		profile, n := plugins.Default(s.Schema, plugins.Options{DevicePreemption: true}), 0
		for i := range profile.Plugins {
			if p, ok := profile.Plugins[i].Plugin.(dynamicresources.Plugin); ok {
				profile.Plugins[i].Plugin = framework.Plugin(countedChanges{p, &n})
			}
		}
		e := testkit.Must(engine.New(s, profile, engine.Options{}))
		for _, name := range testkit.Names("v", victims) {
			e.PlaceOn(s.Schema.ParsePod(claims(s, name).Obj()), 0)
		}
		s.SetObject(testkit.ResourceClaim("all", testkit.Request("r", "gpus").All()).Obj())
		class := e.Class(s.Schema.ParsePod(testkit.Pod("all").Priority(1).Claims("all").Obj()))
		if best, ok := e.Preempt(class); !ok || len(best.Pods) != victims {
			t.Fatalf("preemption helps: %t; %d pods leave, want %d", ok, len(best.Pods), victims)
		}
		return n
	}
	if few, many := looks(8), looks(32); few == 0 || many > 5*few {
		t.Errorf("a dry run looks at %d changes of 8 victims, and at %d of 32", few, many)
	}
}
