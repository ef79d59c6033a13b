package engine_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyDevicesOfManyEngines: about pods that claim devices, an engine that remembers answers says the
// same as one with eight workers and as one that was made just now over a copy of the state, which
// remembers nothing, and the devices that a pod would get on a node are the same. That holds after any
// history of devices, also where it was rolled back.
func TestPropertyDevicesOfManyEngines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schema := cluster.NewSchema()
		s := cluster.New(schema)
		w := testkit.NewDeviceWorld(t, s, rapid.IntRange(1, 8).Draw(t, "nodes"))
		profile := plugins.Default(schema, plugins.Options{})
		one, many := testkit.Must(engine.New(s, profile, engine.Options{Seed: 7})), testkit.Must(engine.New(s, profile, engine.Options{Seed: 7, Workers: 8}))
		var subjects []*cluster.Pod
		for i := range 3 {
			subjects = append(subjects, schema.ParsePod(w.Pod(t, fmt.Sprint("new", i))))
		}
		var marks []cluster.Mark
		var history []string
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			switch k := testkit.Uniform(t, 12, "step"); {
			case k <= 1:
				marks = append(marks, s.Mark())
				history = append(history, "mark")
			case k <= 3 && len(marks) > 0:
				s.Rollback(marks[len(marks)-1])
				marks = marks[:len(marks)-1]
				history = append(history, "rollback")
			case k == 4:
				p := subjects[testkit.Uniform(t, len(subjects), "placed")]
				choice, ok := one.Place(one.Class(p), p)
				history = append(history, fmt.Sprintf("place %s: %v %v", p.Name(), choice.Node, ok))
			default:
				history = append(history, w.Change(t))
			}
			p := subjects[testkit.Uniform(t, len(subjects), "asked")]
			sameDeviceAnswers(t, s, profile, p, history, one, many)
		}
	})
}

// sameDeviceAnswers compares what engines over a state say about a pod with what a new one says over a copy.
func sameDeviceAnswers(t *rapid.T, s *cluster.State, profile *framework.Profile, p *cluster.Pod, history []string, engines ...*engine.Engine) {
	mark := s.Mark()
	defer s.Rollback(mark)
	engines[0].TakeOff(p)
	fresh := cluster.New(s.Schema)
	s.Nodes(func(n *cluster.Node) { fresh.SetNode(n.NodeInfo) })
	for _, o := range s.Objects() {
		fresh.SetObject(o)
	}
	s.Nodes(func(n *cluster.Node) {
		for _, x := range n.Pods {
			fresh.Place(x, n.Name)
		}
	})
	for _, x := range s.Workloads() {
		fresh.SetWorkload(x)
	}
	for _, h := range s.Headrooms() {
		fresh.SetHeadroom(h)
	}
	for _, n := range s.Nominations() {
		fresh.Renominate(n.Pod, n)
	}
	want := saidOfDevices(testkit.Must(engine.New(fresh, profile, engine.Options{Seed: 7})), p)
	for i, e := range engines {
		if got := saidOfDevices(e, p); !reflect.DeepEqual(got, want) {
			t.Fatalf("engine %d about %s:\n%v\na new one:\n%v\nhistory:\n%s", i, p.Name(), got, want, strings.Join(history, "\n"))
		}
	}
}

// saidOfDevices returns the best node for a pod, or the error; and for each node its score or why it
// rejects the pod, and which devices the pod would get.
func saidOfDevices(e *engine.Engine, p *cluster.Pod) map[string]string {
	s, c := e.State(), e.Class(p)
	out := map[string]string{"failure": e.Failure(c)}
	if best, ok := e.Best(c); ok {
		out["best"] = s.Node(best.Node).Name
	}
	for _, a := range e.Answers(c) {
		n := s.Node(a.Node)
		text := fmt.Sprint(a.OK, a.Score)
		if why := e.Explain(c, a.Node); why != nil {
			text += fmt.Sprint(why.Plugin, why.Messages)
		}
		out[n.Name] = text + devicesOn(s, p, n)
	}
	return out
}

// devicesOn returns which devices the claims of a pod would have on a node.
func devicesOn(s *cluster.State, p *cluster.Pod, n *cluster.Node) (text string) {
	mark, from := s.Mark(), s.Head()
	defer s.Rollback(mark)
	dynamicresources.New(dynamicresources.DefaultSteps).Assume(p, n, s)
	changes, _ := s.Since(from)
	for i := range changes {
		if x := changes[i].Object; x != nil && x.New != nil {
			if claim, ok := x.New.(*resourcev1.ResourceClaim); ok {
				text += fmt.Sprintf(" %s: %+v", claim.Name, claim.Status.Allocation)
			}
		}
	}
	return text
}
