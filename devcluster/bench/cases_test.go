package bench

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TestFullMeasuresAllPods has each case at full size measure as many pods as others.
func TestFullMeasuresAllPods(t *testing.T) {
	nodes := map[string]int{"anti-affinity": 25000, "anti-affinity-namespaces": 25000, "extended-resource": 10000, "preemption": 10000,
		"preemption-volumes": 10000, "preemption-beside": 10000, "pod-deletes": 10000, "node-adds": 10000, "node-updates": 10000, "gang-preemption": 10000}
	for _, c := range Cases {
		want := nodes[c.Name]
		if want == 0 {
			want = Full.Nodes
		}
		s := c.enough(Full)
		if s.Nodes != want || s.Pods != Full.Pods || c.size(s) != Full.Pods {
			t.Errorf("%s: %d nodes and %d pods, of which %d are measured; want %d nodes and %d pods", c.Name, s.Nodes, s.Pods, c.size(s), want, Full.Pods)
		}
	}
}

// TestShapesAreMade: every case's pods can be made, and are equal for equal numbers, since each run creates them anew.
func TestShapesAreMade(t *testing.T) {
	for _, c := range Cases {
		shapes := []func(int) *v1.Pod{c.shape}
		for _, x := range c.before {
			shapes = append(shapes, x.shape)
		}
		for _, shape := range shapes {
			for i := range 3 {
				if a, b := shape(i), shape(i); a.Name == "" || !equality.Semantic.DeepEqual(a, b) {
					t.Errorf("%s: pod %d is %q, and not the same twice", c.Name, i, a.Name)
				}
			}
		}
	}
	if a := torn(plain(0)).Spec.Affinity; a.PodAffinity == nil || a.PodAntiAffinity == nil {
		t.Errorf("a pod that is torn has %+v; want both affinity and anti-affinity", a)
	}
}
