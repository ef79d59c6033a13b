package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/testkit"
)

// vector prints the quantities that aren't zero, by name.
func vector(s *cluster.Schema, r cluster.Resources) string {
	var parts []string
	for id, q := range r {
		if q != 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", s.Name(cluster.ResourceID(id)), q))
		}
	}
	return strings.Join(parts, " ")
}

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
		{"memory", "-1", 0, 0, "requests[memory] is -1, taken as 0"},
		{"memory", "8Pi", mostOfPod, mostOfNode, ""},
		{"memory", "8193Ti", mostOfPod, mostOfNode, "requests[memory] is 8193Ti, taken as 9007199254740992"},
		{"cpu", "9007199254740", mostOfPod - 992, mostOfNode, ""},
		{"cpu", "9007199254741", mostOfPod, mostOfNode, "requests[cpu] is 9007199254741, taken as 9007199254740"},
		{"cpu", "1E", mostOfPod, mostOfNode, "requests[cpu] is 1E, taken as 9007199254740"},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.quantity), func(t *testing.T) {
			s := cluster.NewSchema()
			id := s.ID(c.name)
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

func TestSchema(t *testing.T) {
	s := cluster.NewSchema()
	for id, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		if got := s.ID(name); int(got) != id || got.Scalar() {
			t.Errorf("%s has index %d, scalar %v; want %d, false", name, got, got.Scalar(), id)
		}
	}
	gpu := s.ID("example.com/gpu")
	if again := s.ID("example.com/gpu"); again != gpu || !gpu.Scalar() || s.Name(gpu) != "example.com/gpu" {
		t.Errorf("example.com/gpu has index %d, then %d, which is %s", gpu, again, s.Name(gpu))
	}
	if other := s.ID("example.com/fpga"); other == gpu {
		t.Error("two resources have one index")
	}
	if got := (cluster.Resources{5}).At(gpu); got != 0 {
		t.Errorf("past its length a vector has %d, want 0", got)
	}
}

// Names are interned in one order, whatever the order of a map.
func TestResourcesAreInternedByName(t *testing.T) {
	n := testkit.Node("n")
	for _, name := range testkit.Names("example.com/r", 8) {
		n.Status.Allocatable[v1.ResourceName(name)] = resource.MustParse("1")
	}
	for range 10 {
		s := cluster.NewSchema()
		s.ParseNode(n.Obj(), "")
		for i, name := range testkit.Names("example.com/r", 8) {
			if got := s.ID(v1.ResourceName(name)); int(got) != i+3 {
				t.Fatalf("%s has index %d, want %d", name, got, i+3)
			}
		}
	}
}
