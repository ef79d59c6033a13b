package dynamicresources_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const driver = "gpu.example"

// sharing returns a slice of GPUs of which claims may have parts.
func sharing(node string, count int) *resourcev1.ResourceSlice {
	b := testkit.NodeSlice(driver, node)
	for i := range count {
		b.Devices(testkit.Device(fmt.Sprint("g", i)).Shared().Capacity("milli", "1000"))
	}
	return b.Obj()
}

// halving returns the slices of GPUs that are whole or halves.
func halving(node string, count int) (out []cluster.Object) {
	sets, b := testkit.NodeSlice(driver, node), testkit.NodeSlice(driver, node).Of(2)
	sets.Name, b.Name = node+"-a", node+"-b"
	for i := range count {
		name := fmt.Sprint("g", i)
		sets.Counters(name, "memory", "80Gi")
		b.Devices(testkit.Device(name).Attr("kind", "whole").Consumes(name, "memory", "80Gi"))
		for k := range 2 {
			b.Devices(testkit.Device(fmt.Sprint(name, "-", k)).Attr("kind", "half").Consumes(name, "memory", "40Gi"))
		}
	}
	return []cluster.Object{sets.Of(2).Obj(), b.Obj()}
}

// room is a cluster whose devices are kept together.
type room struct {
	*cluster.State
	engine *engine.Engine
}

func newRoom(objects ...cluster.Object) room {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	for _, o := range append(objects, testkit.DeviceClass("gpus", "", `device.driver == "gpu.example"`),
		testkit.DeviceClass("halves", "", `device.attributes["gpu.example"].kind == "half"`),
		testkit.DeviceClass("wholes", "", `device.attributes["gpu.example"].kind == "whole"`)) {
		s.SetObject(o)
	}
	return room{s, testkit.Must(engine.New(s, profile(schema), engine.Options{Seed: 1}))}
}

// profile has no score but that of devices.
func profile(schema *cluster.Schema) *framework.Profile {
	rules := plugins.DefaultRules(schema.Version())
	for i := range rules {
		if rules[i].Weight = 0; rules[i].Name == dynamicresources.Name {
			rules[i].Weight = 1
		}
	}
	return plugins.Default(schema, plugins.Options{Rules: rules, DeviceStrategy: dynamicresources.LeastFragmentation})
}

func (r room) node(name, cpu string) {
	r.SetNode(r.Schema.ParseNode(testkit.Node(name).Alloc("cpu", cpu, "memory", "64Gi", "pods", "110").Obj(), ""))
}

// milli returns a request for parts of GPUs.
func milli(count int64, amount int) *testkit.RequestBuilder {
	return testkit.Request("gpu", "gpus").Count(count).Capacity("milli", fmt.Sprint(amount))
}

// put places a pod with a claim, on the best node or on one by name, and returns where its devices are.
func (r room) put(t testing.TB, name, node, cpu string, request *testkit.RequestBuilder) string {
	t.Helper()
	r.SetObject(testkit.ResourceClaim(name, request).Obj())
	pod := r.Schema.ParsePod(testkit.Pod(name).Req("cpu", cpu).Claims(name).Obj())
	if node != "" {
		r.engine.PlaceOn(pod, r.NodeByName(node).Index)
	} else if _, ok := r.engine.Place(r.engine.Class(pod), pod); !ok {
		t.Fatalf("%s found no node", name)
	}
	out := ""
	if a := r.ResourceClaim("default", name).Status.Allocation; a != nil {
		for _, x := range a.Devices.Results {
			out += x.Pool + "/" + x.Device + " "
		}
	}
	return out
}

// TestPartsFillDevicesThatAreInUse: what is broken into is filled up before what is whole, by shares and
// by partitions.
func TestPartsFillDevicesThatAreInUse(t *testing.T) {
	for _, c := range []struct {
		name  string
		slice []cluster.Object
		puts  []*testkit.RequestBuilder
		want  []string
	}{
		{"shares", []cluster.Object{sharing("n", 3)},
			[]*testkit.RequestBuilder{milli(1, 600), milli(1, 700), milli(1, 400), milli(1, 300), milli(1, 1000)},
			[]string{"n/g0 ", "n/g1 ", "n/g0 ", "n/g1 ", "n/g2 "}},
		{"the fullest that does", []cluster.Object{sharing("n", 3)},
			[]*testkit.RequestBuilder{milli(1, 200), milli(1, 900), milli(1, 50), milli(2, 500)},
			[]string{"n/g0 ", "n/g1 ", "n/g1 ", "n/g0 n/g2 "}},
		{"halves", halving("n", 2), []*testkit.RequestBuilder{
			testkit.Request("gpu", "wholes"), testkit.Request("gpu", "halves"), testkit.Request("gpu", "halves")},
			[]string{"n/g0 ", "n/g1-0 ", "n/g1-1 "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoom(c.slice...)
			r.node("n", "64")
			for i, request := range c.puts {
				if got := r.put(t, fmt.Sprint("p", i), "", "1", request); got != c.want[i] {
					t.Errorf("pod %d has %s, want %s", i, got, c.want[i])
				}
			}
		})
	}
	// Of two broken GPUs the first half goes to the one that is in use, though the other comes first.
	r := newRoom(halving("n", 2)...)
	r.node("n", "64")
	r.SetObject(testkit.ResourceClaim("x", testkit.Request("gpu", "halves")).Allocated(testkit.Allocation("gpu", driver, "n", "g1-0")).OnNode("n").Obj())
	if got := r.put(t, "p", "", "1", testkit.Request("gpu", "halves")); got != "n/g1-1 " {
		t.Errorf("a half is %s, want the other one of g1", got)
	}
}

// TestPodsGoWhereOthersLoseLeast: wherever the usual claims can't use what a pod takes, it goes first.
func TestPodsGoWhereOthersLoseLeast(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(t *testing.T, r room) string
		want string
	}{
		{"a share goes where one is", func(t *testing.T, r room) string {
			r.put(t, "a", "n1", "1", milli(1, 1000))
			r.put(t, "b", "n2", "1", milli(1, 500))
			return r.put(t, "p", "", "1", milli(1, 500))
		}, "n2/g0 "},
		{"one GPU leaves pairs alone", func(t *testing.T, r room) string {
			r.put(t, "a", "n0", "1", milli(2, 1000))
			r.put(t, "b", "n1", "1", milli(1, 1000))
			return r.put(t, "p", "", "1", milli(1, 1000))
		}, "n1/g1 "},
		{"devices without CPU are of no use to others", func(t *testing.T, r room) string {
			r.put(t, "a", "n0", "1", milli(1, 1000))
			r.put(t, "b", "n1", "7500m", milli(1, 1000))
			return r.put(t, "p", "", "100m", milli(1, 1000))
		}, "n1/g1 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoom(sharing("n0", 2), sharing("n1", 2), sharing("n2", 2))
			for i := range 3 {
				r.node(fmt.Sprint("n", i), "8")
			}
			if got := c.put(t, r); got != c.want {
				t.Errorf("the pod has %s, want %s", got, c.want)
			}
		})
	}
}

// TestPodsWithoutClaimsLeaveDevicesTheirCPU: they go to nodes without devices, or whose devices are
// taken, once some claim says what is usual.
func TestPodsWithoutClaimsLeaveDevicesTheirCPU(t *testing.T) {
	r := newRoom(sharing("a", 1), sharing("b", 1))
	for _, name := range []string{"a", "b", "plain"} {
		r.node(name, "8")
	}
	r.put(t, "x", "b", "1", milli(1, 1000))
	pod := r.Schema.ParsePod(testkit.Pod("p").Req("cpu", "4").Obj())
	got := map[string]int64{}
	for _, a := range r.engine.Answers(r.engine.Class(pod)) {
		got[r.Node(a.Node).Name] = a.Score
	}
	if want := map[string]int64{"a": 9, "b": 100, "plain": 100}; !maps.Equal(got, want) {
		t.Errorf("scores %v, want %v", got, want)
	}
}

// TestSignatureOfWhatIsScored: with the strategy the CPU and memory of all pods are signed, for they are
// what devices are scored by.
func TestSignatureOfWhatIsScored(t *testing.T) {
	rt.Signatures{Plugin: rt.Is(dynamicresources.New(1000).With(dynamicresources.LeastFragmentation)), Objects: objects,
		Pod: func() *testkit.PodBuilder { return testkit.Pod("p").Req("cpu", "1", "memory", "1Gi") }, Cases: []rt.Change{
			rt.Differs("name", func(p *testkit.PodBuilder) { p.Name = "q" }, rt.Same),
			rt.Differs("CPU", func(p *testkit.PodBuilder) { p.Req("cpu", "2") }, rt.Local),
			rt.Differs("memory", func(p *testkit.PodBuilder) { p.Req("memory", "2Gi") }, rt.Local),
		}}.Run(t)
}

// TestPropertyScoresFollowTheState has pods come and go, claims and slices change, and what-ifs be
// rolled back: the engine then says what a new one says of a state that was made anew.
func TestPropertyScoresFollowTheState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRoom()
		for i := range 4 {
			r.node(fmt.Sprint("n", i), "8")
		}
		counts := []int{2, 2, 3, 1}
		for i, n := range counts {
			r.SetObject(sharing(fmt.Sprint("n", i), n))
		}
		requests := []*testkit.RequestBuilder{milli(1, 1000), milli(1, 500), milli(1, 300), milli(2, 1000)}
		one := func(pods int) []string { return testkit.Names("p", pods) }
		marks := []cluster.Mark{}
		for step := range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0, 1, 2:
				name := rapid.SampledFrom(one(12)).Draw(t, "pod")
				r.SetObject(testkit.ResourceClaim(name, rapid.SampledFrom(requests).Draw(t, "request")).Obj())
				pod := r.Schema.ParsePod(testkit.Pod(name).Req("cpu", rapid.SampledFrom([]string{"1", "3"}).Draw(t, "cpu")).Claims(name).Obj())
				r.engine.Place(r.engine.Class(pod), pod)
			case 3:
				name := rapid.SampledFrom(one(12)).Draw(t, "gone")
				r.Remove(testkit.Pod(name).Obj().UID)
				r.RemoveObject(cluster.ResourceClaimKind, "default", name)
			case 4:
				i := rapid.IntRange(0, 3).Draw(t, "node")
				r.SetObject(sharing(fmt.Sprint("n", i), 1+(counts[i]+step)%3))
			case 5:
				if len(marks) > 0 {
					r.Rollback(marks[len(marks)-1])
					marks = marks[:len(marks)-1]
				} else {
					marks = append(marks, r.Mark())
				}
			}
			fresh := anew(r.State)
			for k, request := range append(requests, nil) {
				b := testkit.Pod("asks").Req("cpu", "2")
				for _, s := range []*cluster.State{r.State, fresh.State} {
					if s.RemoveObject(cluster.ResourceClaimKind, "default", "asks"); request != nil {
						s.SetObject(testkit.ResourceClaim("asks", request).Obj())
					}
				}
				if request != nil {
					b.Claims("asks")
				}
				if got, want := r.scores(b), fresh.scores(b); !maps.Equal(got, want) {
					t.Fatalf("step %d, request %d: scores %v, made anew %v\nusual %v, anew %v", step, k, got, want, r.Devices().Usual(), fresh.Devices().Usual())
				}
			}
		}
	})
}

// scores returns the scores of the nodes that take a pod.
func (r room) scores(b *testkit.PodBuilder) map[string]int64 {
	out := map[string]int64{}
	for _, a := range r.engine.Answers(r.engine.Class(r.Schema.ParsePod(b.Obj()))) {
		if a.OK {
			out[r.Node(a.Node).Name] = a.Score
		}
	}
	return out
}

// anew returns a cluster with the same nodes, pods and objects.
func anew(s *cluster.State) room {
	r := newRoom()
	objects := s.Objects()
	slices.Reverse(objects)
	for _, o := range objects {
		r.SetObject(o)
	}
	s.Nodes(func(n *cluster.Node) { r.SetNode(n.NodeInfo) })
	s.Nodes(func(n *cluster.Node) {
		for _, p := range n.Pods {
			r.PlaceAt(p, r.NodeByName(n.Name).Index)
		}
	})
	return r
}
