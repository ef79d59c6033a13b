package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/engine/reference"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// placesWorld is a cluster where pods of one priority or another have places, stand in for others, or are
// nominated. Its devices are of two models, which some pods choose between.
type placesWorld struct {
	t *rapid.T
	*cluster.State
	profile *framework.Profile
	engine  *engine.Engine
	slow    *engine.Engine // which remembers nothing
	pods    int
	history []string
}

func newPlacesWorld(t *rapid.T) *placesWorld {
	w := &placesWorld{t: t, State: cluster.New(cluster.NewSchema())}
	w.SetObject(testkit.DeviceClass("gpus", "example.com/gpu"))
	for _, name := range []string{"shared-0", "shared-1"} {
		w.SetObject(testkit.ResourceClaim(name, testkit.Request("r", "gpus")).Obj())
	}
	for i := range 3 {
		name := fmt.Sprint("n", i)
		w.SetNode(w.Schema.ParseNode(testkit.Node(name).Alloc("cpu", "9", "pods", "9").Obj(), ""))
		w.publish(name)
	}
	if testkit.Uniform(t, 4, "room") > 0 {
		w.setRoom()
	}
	w.profile = plugins.Default(w.Schema, plugins.Options{DevicePreemption: testkit.Uniform(t, 4, "yields") == 0})
	w.engine = testkit.Must(engine.New(w.State, w.profile, engine.Options{Seed: 7}))
	w.slow = testkit.Must(engine.New(w.State, w.profile, engine.Options{Seed: 7, Rebuilt: true}))
	return w
}

// setRoom has stand-ins of the headroom "group" keep room for a pod group.
func (w *placesWorld) setRoom() {
	w.SetHeadroom(&cluster.Headroom{ID: "group", Group: &cluster.GroupRoom{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}}})
}

// publish publishes the devices of a node.
func (w *placesWorld) publish(node string) {
	slice := testkit.NodeSlice("gpu.example", node)
	for k := range 1 + testkit.Uniform(w.t, 4, "devices") {
		slice.Devices(testkit.Device(fmt.Sprint("g", k)).Attr("model", string(rune('a'+testkit.Uniform(w.t, 2, "model")))))
	}
	w.SetObject(slice.Obj())
}

// changeClaim has a nominated pod's own claim ask for something else, or takes it away.
func (w *placesWorld) changeClaim(p *cluster.Pod) {
	name := "of-" + p.Object.Name
	if w.ResourceClaim("default", name) == nil {
		return
	}
	models := []string{"a", "b", ""}
	model := models[testkit.Uniform(w.t, len(models), "other model")]
	w.history = append(w.history, fmt.Sprintf("the claim %s asks for model %q", name, model))
	if model == "" {
		w.RemoveObject(cluster.ResourceClaimKind, "default", name)
		return
	}
	r := testkit.Request("r", "gpus").Count(int64(1 + testkit.Uniform(w.t, 2, "count"))).Where(fmt.Sprintf("device.attributes[%q].model == %q", "gpu.example", model))
	w.SetObject(testkit.ResourceClaim(name, r).MadeFor(p.Object.Name).Obj())
}

// claimant returns a pod that claims nothing, devices of its own, of any model or of one, or those of a claim that
// others may name.
func (w *placesWorld) claimant(name string) *cluster.Pod {
	b := testkit.Pod(name).Priority(int32(testkit.Uniform(w.t, 2, "priority")))
	switch testkit.Uniform(w.t, 8, "claims") {
	case 0:
	case 1:
		b.Claims("shared-0")
	case 2:
		b.Claims("shared-1")
	case 3:
		b.Req("example.com/gpu", "1")
	default:
		r := testkit.Request("r", "gpus")
		if k := testkit.Uniform(w.t, 3, "of model"); k > 0 {
			r.Where(fmt.Sprintf("device.attributes[%q].model == %q", "gpu.example", string(rune('a'+k-1))))
		}
		w.SetObject(testkit.ResourceClaim("of-"+name, r).MadeFor(name).Obj())
		b.TemplateClaim("own", "of-"+name)
	}
	return w.Schema.ParsePod(b.Obj())
}

// step changes something.
func (w *placesWorld) step() {
	w.pods++
	name, to := fmt.Sprint("p", testkit.Uniform(w.t, 100, "name"), "-", w.pods), fmt.Sprint("n", testkit.Uniform(w.t, 3, "to"))
	list := w.Nominations()
	k := testkit.Uniform(w.t, 12, "step")
	if k == 11 {
		w.history = append(w.history, "stand-ins keep room for a group")
		w.setRoom()
		return
	}
	if k == 10 {
		w.history = append(w.history, "another slice of "+to)
		w.publish(to)
		return
	}
	if k >= 7 && len(list) > 0 {
		n := list[testkit.Uniform(w.t, len(list), "nomination")]
		if k == 9 {
			w.changeClaim(n.Pod)
			return
		}
		if k == 7 {
			w.history = append(w.history, "end the nomination of "+n.Pod.Name())
			w.Nominate(n.Pod, "")
			return
		}
		w.history = append(w.history, "nominate "+n.Pod.Name()+" again, after an attempt")
		w.Nominate(n.Pod, "")
		again := *n.Pod
		w.Renominate(&again, n)
		return
	}
	p := w.claimant(name)
	w.history = append(w.history, fmt.Sprintf("step %d: pod %s of priority %d to %s: %v", k, name, p.Priority, to, p.Object.Spec.ResourceClaims))
	switch k {
	case 0, 1:
		if n := w.NodeByName(to); w.engine.FitsOn(w.engine.Class(p), n) {
			w.engine.PlaceOn(p, n.Index)
		}
	case 2:
		w.Nominate(p, to)
	case 3, 4:
		w.KeepPlace(p, to)
	default:
		p.StandIn = []cluster.HeadroomID{"some", "group"}[testkit.Uniform(w.t, 2, "room")]
		w.Nominate(p, to)
	}
}

// TestPropertyPlacesKeepDevices compares which nodes take a pod with the slow reference: stand-ins and pods for which
// a place is kept keep what they claim, in turn, and other nominated pods only where pods preempt for devices. That
// holds after any history, also where it was rolled back, and for classes of which pods are gone.
func TestPropertyPlacesKeepDevices(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newPlacesWorld(t)
		for i := range 6 {
			rolledBack := testkit.Uniform(t, 4, "rolled back") == 0
			mark := w.Mark()
			w.step()
			if rolledBack {
				w.compareKept(fmt.Sprint("before-", i))
				w.Rollback(mark)
				w.history = append(w.history, "roll back")
			} else {
				w.Release(mark)
			}
			kept += w.compareKept(fmt.Sprint("subject-", i))
		}
	})
	if kept == 0 {
		t.Error("no place has kept anything")
	}
}

// compareKept compares which nodes take a pod with the reference. It returns how many don't for what is nominated there.
func (w *placesWorld) compareKept(name string) (kept int) {
	pod := w.claimant(name)
	mark := w.Mark()
	for _, n := range w.Nominations() {
		w.Nominate(n.Pod, "")
	}
	alone := reference.Answers(w.State, w.profile, pod)
	w.Rollback(mark)
	class := w.engine.Class(pod)
	feasible := map[string]bool{}
	for _, name := range w.engine.Feasible(class) {
		feasible[name] = true
	}
	for node, answer := range reference.Answers(w.State, w.profile, pod) {
		if fits := w.engine.FitsOn(class, w.NodeByName(node)); fits != answer.OK || feasible[node] != answer.OK {
			w.t.Fatalf("%s takes %s of priority %d, %v: %t, and it is feasible: %t; want %t\n%s", node, name, pod.Priority, pod.Object.Spec.ResourceClaims, fits, feasible[node], answer.OK, strings.Join(w.history, "\n"))
		}
		if alone[node].OK && !answer.OK {
			kept++
		}
	}
	if len(feasible) == 0 {
		if got, want := w.engine.Diagnose(class).Message(), w.slow.Diagnose(w.slow.Class(pod)).Message(); got != want {
			w.t.Fatalf("%s waits since %s; want %s\n%s", pod.Name(), got, want, strings.Join(w.history, "\n"))
		}
	}
	if testkit.Uniform(w.t, 2, "gone") == 0 {
		w.RemoveObject(cluster.ResourceClaimKind, "default", "of-"+name)
	}
	return kept
}

// TestClassesOutliveTheirPods asks beside a nominated pod about a class of which the pod that was signed last is gone
// with its claim: the others of the class are there still.
func TestClassesOutliveTheirPods(t *testing.T) {
	for _, yields := range []bool{false, true} {
		s := cluster.New(cluster.NewSchema())
		s.SetObject(testkit.DeviceClass("gpus", ""))
		s.SetNode(s.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "9", "pods", "9").Obj(), ""))
		s.SetObject(testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices("g0", "g1")...).Obj())
		pod := func(name string) *cluster.Pod {
			s.SetObject(testkit.ResourceClaim(name, testkit.Request("r", "gpus")).MadeFor(name).Obj())
			return s.Schema.ParsePod(testkit.Pod(name).TemplateClaim("own", name).Obj())
		}
		e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{DevicePreemption: yields}), engine.Options{}))
		s.KeepPlace(pod("kept"), "n")
		stays, goes := pod("stays"), pod("goes")
		class := e.Class(stays)
		if e.Class(goes) != class {
			t.Fatal("pods with claims that ask for the same are of two classes")
		}
		s.RemoveObject(cluster.ResourceClaimKind, "default", "goes")
		if !e.FitsOn(class, s.NodeByName("n")) {
			t.Errorf("yields %t: one of two devices is kept, and the node doesn't take a pod that claims one", yields)
		}
		s.KeepPlace(pod("kept too"), "n")
		if e.FitsOn(class, s.NodeByName("n")) {
			t.Errorf("yields %t: both devices are kept, and the node takes a pod that claims one", yields)
		}
	}
}

// TestPodsWithoutClaimsAskNoWhatIf asks about a pod that claims nothing beside a place that keeps devices: that costs
// what it costs beside any nominated pod, and nothing is placed in a what-if.
func TestPodsWithoutClaimsAskNoWhatIf(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	s.SetObject(testkit.DeviceClass("gpus", ""))
	s.SetNode(s.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "9", "pods", "9").Obj(), ""))
	s.SetObject(testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices("g0")...).Obj())
	s.SetObject(testkit.ResourceClaim("kept", testkit.Request("r", "gpus")).MadeFor("kept").Obj())
	s.KeepPlace(s.Schema.ParsePod(testkit.Pod("kept").TemplateClaim("own", "kept").Obj()), "n")
	var placed rolledBackPods
	s.AddCache(&placed)
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))
	class, n := e.Class(s.Schema.ParsePod(testkit.Pod("plain").Req("cpu", "1").Obj())), s.NodeByName("n")
	if !e.FitsOn(class, n) || placed != 0 {
		t.Errorf("the node takes the pod: %t; %d pods were placed in what-ifs, want none", e.FitsOn(class, n), placed)
	}
	if got := testing.AllocsPerRun(100, func() { e.FitsOn(class, n) }); got != 0 {
		t.Errorf("a question allocates %v times, want never", got)
	}
}
