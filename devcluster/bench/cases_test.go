package bench

import "testing"

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
