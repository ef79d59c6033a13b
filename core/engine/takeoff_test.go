package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/engine/reference"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// claimants draws a cluster with devices and pods that claim some: each is on a node, whether or not it
// has devices there.
func claimants(t *rapid.T) (*cluster.State, []*cluster.Pod) {
	s := cluster.New(cluster.NewSchema())
	var nodes []*v1.Node
	for _, name := range testkit.Names("n", 3) {
		n := testkit.Node(name).Alloc("cpu", "64", "memory", "64Gi", "pods", "110").Obj()
		nodes = append(nodes, n)
		s.SetNode(s.Schema.ParseNode(n, ""))
	}
	published := testkit.RandomDevices(t, nodes)
	for _, o := range append(published, testkit.RandomDeviceClaims(t, published)...) {
		s.SetObject(o)
	}
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{Seed: 7}))
	var pods []*cluster.Pod
	for _, name := range []string{"p0", "p1", "new0", "new1", "new2"} {
		b := testkit.Pod(name)
		testkit.AddDeviceClaims(t, &b.Pod)
		if testkit.Uniform(t, 3, "extended") == 0 {
			testkit.AddExtendedResources(t, &b.Pod)
		}
		p := s.Schema.ParsePod(b.Obj())
		if n := s.Node(cluster.NodeIndex(testkit.Uniform(t, 3, "on"))); e.FitsOn(e.Class(p), n) || testkit.Uniform(t, 4, "place") == 0 {
			e.PlaceOn(p, n.Index)
			pods = append(pods, p)
		}
	}
	return s, pods
}

// TestPropertyTakenOffPodsGiveTheirDevicesBack takes pods off their nodes, in any order: claims and free
// devices are those of a cluster in which the pods have ended (withoutPods). Rolled back, the
// state has the very same objects as before.
func TestPropertyTakenOffPodsGiveTheirDevicesBack(t *testing.T) {
	freed := 0
	rapid.Check(t, func(t *rapid.T) {
		s, pods := claimants(t)
		before := dump(s)
		e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{Seed: 7}))
		mark := s.Mark()
		var gone []*cluster.Pod
		for _, p := range pods {
			if rapid.Bool().Draw(t, "goes") {
				gone = slices.Insert(gone, testkit.Uniform(t, len(gone)+1, "when"), p)
			}
		}
		want := withoutPods(s, gone)
		for _, p := range gone {
			freed += len(e.TakeOff(p))
			if again := e.TakeOff(p); again != nil {
				t.Fatalf("a pod on no node has given back %v", again)
			}
		}
		if got, want := devicesText(s), devicesText(want); got != want {
			t.Fatalf("without %d pods:\n%s\nwant:\n%s", len(gone), got, want)
		}
		s.Rollback(mark)
		if got := dump(s); got != before {
			t.Fatalf("rolled back:\n%s\nbefore:\n%s", got, before)
		}
	})
	if freed == 0 {
		t.Error("no pod had anything to give back")
	}
}

// withoutPods returns a new state with the objects of another as they are when pods have ended.
func withoutPods(s *cluster.State, gone []*cluster.Pod) *cluster.State {
	out := cluster.New(s.Schema)
	s.Nodes(func(n *cluster.Node) { out.SetNode(n.NodeInfo) })
	for _, o := range s.Objects() {
		out.SetObject(o)
	}
	reference.EndPods(out, gone)
	return out
}

// devicesText writes claims, and what is free of the devices of each node.
func devicesText(s *cluster.State) string {
	var b strings.Builder
	for _, o := range s.Objects() {
		if c, ok := o.(*resourcev1.ResourceClaim); ok {
			raw, _ := json.Marshal(c)
			fmt.Fprintf(&b, "%s\n", raw)
		}
	}
	s.Nodes(func(n *cluster.Node) { fmt.Fprintf(&b, "%s %x\n", n.Name, s.Devices().Digest(int32(n.Index))) })
	return b.String()
}

// claimantsOfPriorities is claimants with pods of several priorities, and the pods that wait; some may be
// nominated to nodes.
func claimantsOfPriorities(t *rapid.T, e func(*cluster.State) *engine.Engine) (*cluster.State, *engine.Engine, []*cluster.Pod) {
	s, placed := claimants(t)
	for _, p := range placed {
		n := s.NodeOf(p.UID)
		again := *p
		again.Priority = int32(testkit.Uniform(t, 3, "priority"))
		s.Place(&again, n.Name)
	}
	b, _ := testkit.RandomBudget(t)
	s.SetObject(b)
	var waiting []*cluster.Pod
	for _, name := range []string{"subject", "w1", "w2"} {
		w := testkit.Pod(name).Priority(int32(1 + testkit.Uniform(t, 3, "priority of waiting")))
		testkit.AddDeviceClaims(t, &w.Pod)
		if testkit.Uniform(t, 4, "extended") == 0 {
			testkit.AddExtendedResources(t, &w.Pod)
		}
		p := s.Schema.ParsePod(w.Obj())
		waiting = append(waiting, p)
		if name != "subject" && testkit.Uniform(t, 2, "nominated") == 0 {
			s.Nominate(p, fmt.Sprint("n", testkit.Uniform(t, 3, "to")))
		}
	}
	return s, e(s), waiting
}

// TestPropertyPreemptionForDevices compares where preemption for devices helps with the slow
// reference, which ends pods in a copy of the cluster; and which nodes take a pod beside those nominated
// there. Between two questions claims change, also such as touch no device. Of the victims none could
// stay: without any smaller set of the same pods the pod doesn't fit.
func TestPropertyPreemptionForDevices(t *testing.T) {
	helped := 0
	rapid.Check(t, func(t *rapid.T) {
		var profile *framework.Profile
		s, e, waiting := claimantsOfPriorities(t, func(s *cluster.State) *engine.Engine {
			profile = plugins.Default(s.Schema, plugins.Options{DevicePreemption: true})
			return testkit.Must(engine.New(s, profile, engine.Options{Seed: 7}))
		})
		for range 3 {
			pod := waiting[testkit.Uniform(t, len(waiting), "who")]
			nominated := s.NominatedTo(pod.UID)
			s.Nominate(pod, "")
			before := dump(s)
			if e.Failure(e.Class(pod)) == "" { // or the attempt has ended
				helped += comparePreemption(t, s, e, profile, pod)
			}
			if after := dump(s); after != before {
				t.Fatalf("after dry runs:\n%s\nbefore:\n%s", after, before)
			}
			s.Nominate(pod, nominated)
			changeReservation(t, s)
		}
	})
	if helped == 0 && testkit.Checks() > testkit.UsualChecks {
		t.Error("preemption has helped nobody")
	}
}

// comparePreemption compares where preemption helps a pod and which nodes take it with the reference. It
// returns on how many nodes preemption helps.
func comparePreemption(t *rapid.T, s *cluster.State, e *engine.Engine, profile *framework.Profile, pod *cluster.Pod) (helped int) {
	got := map[string][]string{}
	for _, c := range e.Candidates(e.Class(pod)) {
		name := s.Node(c.Node).Name
		for _, p := range c.Pods {
			got[name] = append(got[name], p.Name())
		}
		helped++
		noneCouldStay(t, s, profile, pod, s.Node(c.Node), c.Pods)
	}
	if want := reference.Preempt(s, profile, pod); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("preemption of %s: %v, want %v", pod.Name(), got, want)
	}
	for name, answer := range reference.Answers(s, profile, pod) {
		if fits := e.FitsOn(e.Class(pod), s.NodeByName(name)); fits != answer.OK {
			t.Fatalf("%s on %s: %t, want %+v", pod.Name(), name, fits, answer)
		}
	}
	return helped
}

// noneCouldStay checks all subsets of victims of which some stay.
func noneCouldStay(t *rapid.T, s *cluster.State, profile *framework.Profile, pod *cluster.Pod, n *cluster.Node, victims []*cluster.Pod) {
	for subset := range 1 << len(victims) {
		gone := map[*cluster.Pod]bool{}
		for i, p := range victims {
			if subset>>i&1 != 0 {
				gone[p] = true
			}
		}
		if all := len(gone) == len(victims); reference.FitsWithout(s, profile, pod, n.Name, gone) != all {
			t.Fatalf("%s on %s without %d of its %d victims %v: fits %t", pod.Name(), n.Name, len(gone), len(victims), victims, !all)
		}
	}
}

// changeReservation adds or takes away a pod for which a claim is reserved: a controller does that.
func changeReservation(t *rapid.T, s *cluster.State) {
	var claims []*resourcev1.ResourceClaim
	for _, o := range s.Objects() {
		if c, ok := o.(*resourcev1.ResourceClaim); ok && c.Status.Allocation != nil {
			claims = append(claims, c)
		}
	}
	if len(claims) == 0 {
		return
	}
	c := claims[testkit.Uniform(t, len(claims), "which claim")].DeepCopy()
	if len(c.Status.ReservedFor) > 0 && rapid.Bool().Draw(t, "less") {
		c.Status.ReservedFor = c.Status.ReservedFor[1:]
	} else {
		uid := []types.UID{"pod-p0", "pod-new0", "pod-else"}[testkit.Uniform(t, 3, "for whom")]
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
	}
	s.SetObject(c)
}

// TestVictimsThatShareAClaimFreeIt has two pods, which share a claim, leave for their CPU, one of them tried first: the
// third, which has the other device and no CPU, may stay, since what the two had is free.
func TestVictimsThatShareAClaimFreeIt(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	s.SetObject(testkit.DeviceClass("gpus", ""))
	s.SetNode(s.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "8", "pods", "9").Obj(), ""))
	s.SetObject(testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices("g0", "g1")...).Obj())
	for _, name := range []string{"shared", "own", "new"} {
		s.SetObject(testkit.ResourceClaim(name, testkit.Request("r", "gpus")).Obj())
	}
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{DevicePreemption: true}), engine.Options{}))
	for _, p := range []*testkit.PodBuilder{
		testkit.Pod("v0").Req("cpu", "4").Priority(2).Claims("shared"),
		testkit.Pod("v1").Req("cpu", "4").Priority(2).Claims("shared"),
		testkit.Pod("v2").Priority(1).Claims("own"),
	} {
		e.PlaceOn(s.Schema.ParsePod(p.Obj()), 0)
	}
	best, ok := e.Preempt(e.Class(s.Schema.ParsePod(testkit.Pod("new").Req("cpu", "8").Priority(9).Claims("new").Obj())))
	var names []string
	for _, p := range best.Pods {
		names = append(names, p.Object.Name)
	}
	if slices.Sort(names); !ok || !slices.Equal(names, []string{"v0", "v1"}) {
		t.Errorf("%v leave, want v0 and v1", names)
	}
}
