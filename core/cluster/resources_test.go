package cluster_test

import (
	"cmp"
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

func TestQuantities(t *testing.T) {
	const mostOfPod, mostOfNode = 1 << 53, 1 << 52
	for _, c := range []struct {
		name          v1.ResourceName
		quantity      string
		ofPod, ofNode int64
		problem       string // of the pod
	}{
		{"cpu", "250m", 250, 250, ""},
		{"cpu", "2", 2000, 2000, ""},
		{"cpu", "1u", 1, 1, ""}, // rounded up to a milli-CPU
		{"memory", "1Gi", 1 << 30, 1 << 30, ""},
		{"memory", "1500m", 2, 2, ""}, // bytes are rounded up
		{"example.com/gpu", "3", 3, 3, ""},
		{"memory", "0", 0, 0, ""},
		{"memory", "-1", 0, 0, "requests[memory] is -1, treated as 0"},
		{"memory", "8Pi", mostOfPod, mostOfNode, ""},
		{"memory", "8193Ti", mostOfPod, mostOfNode, "requests[memory] is 8193Ti, treated as 9007199254740992"},
		{"cpu", "9007199254740", mostOfPod - 992, mostOfNode, ""},
		{"cpu", "9007199254741", mostOfPod, mostOfNode, "requests[cpu] is 9007199254741, treated as 9007199254740"},
		{"cpu", "1E", mostOfPod, mostOfNode, "requests[cpu] is 1E, treated as 9007199254740"},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.quantity), func(t *testing.T) {
			s := cluster.NewSchema()
			id := cluster.ResourceOf(c.name)
			p := s.ParsePod(testkit.Pod("p").Req(string(c.name), c.quantity).Obj())
			if got := p.Request.At(id); got != c.ofPod {
				t.Errorf("the pod requests %d, want %d", got, c.ofPod)
			}
			problem := ""
			if len(p.Problems) > 0 {
				problem = p.Problems[0].String()
			}
			if problem != c.problem || len(p.Problems) > 1 {
				t.Errorf("the pod's problems are %v, want %q", p.Problems, c.problem)
			}
			n := s.ParseNode(testkit.Node("n").Alloc(string(c.name), c.quantity).Obj(), "")
			if got := n.Allocatable.At(id); got != c.ofNode {
				t.Errorf("the node has %d, want %d", got, c.ofNode)
			}
		})
	}
}

// A pod as large as pods can be fits on no node, and a thousand of them are
// counted without overflow.
func TestTheLargestPods(t *testing.T) {
	s := newState()
	i := setNode(s, testkit.Node("n").Alloc("memory", "1E"))
	for _, name := range testkit.Names("p", 1023) {
		place(s, testkit.Pod(name).Req("memory", "1E"), "n")
	}
	n := s.Node(i)
	if one, all := n.Pods[0].Request.At(cluster.Memory), n.Requested.At(cluster.Memory); one <= n.Allocatable.At(cluster.Memory) || all != 1023*one {
		t.Errorf("of %d bytes one pod requests %d, and 1023 of them %d", n.Allocatable.At(cluster.Memory), one, all)
	}
}

// TestResourceIDs has the resources that every node has before all others, and any two of
// one name equal.
func TestResourceIDs(t *testing.T) {
	ids := []cluster.ResourceID{{}, cluster.Memory, cluster.EphemeralStorage, cluster.ResourceOf("example.com/fpga"), cluster.ResourceOf("example.com/gpu")}
	for i, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "example.com/fpga", "example.com/gpu"} {
		got := cluster.ResourceOf(name)
		if got != ids[i] || got.Name() != name || got.Scalar() != (i > 2) {
			t.Errorf("%s has the ID %v of the name %s, scalar %v; want %v", name, got, got.Name(), got.Scalar(), ids[i])
		}
		for k, other := range ids {
			if order := got.Compare(other); order != cmp.Compare(i, k) {
				t.Errorf("comparing %s with %s gives %d, want %d", name, other.Name(), order, cmp.Compare(i, k))
			}
		}
	}
}

// TestPropertyResourcesAreMaps has random vectors, with many scalar resources and few, behave
// as maps from names to quantities; no vector keeps a name of which it has none.
func TestPropertyResourcesAreMaps(t *testing.T) {
	names := append(testkit.Names("example.com/r", 12), "cpu", "memory", "ephemeral-storage")
	type vector struct {
		r     cluster.Resources
		model map[string]int64
	}
	rapid.Check(t, func(t *rapid.T) {
		all := make([]vector, 3)
		for i := range all {
			all[i].model = map[string]int64{}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x, y := &all[testkit.Uniform(t, 3, "of")], &all[testkit.Uniform(t, 3, "with")]
			switch testkit.Uniform(t, 4, "step") {
			case 0:
				times := int64(testkit.Uniform(t, 3, "times")) - 1
				y := vector{y.r.Clone(), maps.Clone(y.model)} // it may be the same
				x.r.Add(&y.r, times)
				for name, v := range y.model {
					x.model[name] += times * v
				}
			case 1:
				before := y.r.String()
				x.r, x.model = y.r.Clone(), maps.Clone(y.model)
				x.r.Set(cluster.ResourceOf(v1.ResourceName(names[0])), 9)
				x.model[names[0]] = 9
				if x != y && y.r.String() != before {
					t.Fatalf("a change of a clone has changed %s to %s", before, &y.r)
				}
			default:
				name, v := names[testkit.Uniform(t, len(names), "name")], int64(testkit.Uniform(t, 3, "value"))
				x.r.Set(cluster.ResourceOf(v1.ResourceName(name)), v)
				x.model[name] = v
			}
			for i := range all {
				maps.DeleteFunc(all[i].model, func(_ string, v int64) bool { return v == 0 })
			}
			for i := range all {
				x := &all[i]
				got, last := map[string]int64{}, cluster.ResourceID{}
				for id, v := range x.r.All() {
					if len(got) > 0 && last.Compare(id) >= 0 {
						t.Fatalf("%s comes after %s", id.Name(), last.Name())
					}
					got[string(id.Name())], last = v, id
				}
				if !maps.Equal(got, x.model) {
					t.Fatalf("the vector has %v, want %v", got, x.model)
				}
				for _, name := range names {
					if v := x.r.At(cluster.ResourceOf(v1.ResourceName(name))); v != x.model[name] {
						t.Fatalf("of %s the vector has %d, want %d", name, v, x.model[name])
					}
				}
				for k := range all {
					if got, want := x.r.Equal(&all[k].r), maps.Equal(x.model, all[k].model); got != want {
						t.Fatalf("whether %s equals %s: %v, want %v", &x.r, &all[k].r, got, want)
					}
				}
			}
		}
	})
}
