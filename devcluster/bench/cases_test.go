package bench

import (
	"cmp"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TestFullMeasuresAllPods has each case at full size measure as many pods as others.
func TestFullMeasuresAllPods(t *testing.T) {
	nodes := map[string]int{"anti-affinity": 25000, "anti-affinity-namespaces": 25000, "extended-resource": 10000, "preemption": 10000,
		"preemption-volumes": 10000, "preemption-beside": 10000, "pod-deletes": 10000, "node-adds": 10000, "node-updates": 10000,
		"gang-preemption": 10000, "gang-preemption-100": 10000, "gang-preemption-gangs": 10000, "gang-preemption-gangs-100": 10000, "gang-preemption-affinity": 10000, "gang-preemption-affinity-100": 10000}
	few := map[string]int{"gang-starvation": 500, "groups-starvation": 500}
	for _, c := range Cases {
		want := nodes[c.Name]
		if want == 0 {
			want = Full.Nodes
		}
		pods := cmp.Or(few[c.Name], Full.Pods)
		s := c.enough(Full)
		if s.Nodes != want || s.Pods != Full.Pods || c.size(s) != pods {
			t.Errorf("%s: %d nodes and %d pods, of which %d are measured; want %d nodes and %d pods", c.Name, s.Nodes, s.Pods, c.size(s), want, pods)
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
	if a := torn(0).Spec.Affinity; a.PodAffinity == nil || a.PodAntiAffinity == nil {
		t.Errorf("a pod that is torn has %+v; want both affinity and anti-affinity", a)
	}
}

// TestVictimsAreAsManyAsNeeded: where others leave, a measured pod fits on a node when as many have left as the case
// says, which the bare loop has leave, and not before; and no two pods of a node have one host port.
func TestVictimsAreAsManyAsNeeded(t *testing.T) {
	s := Size{Nodes: 100, Pods: 100}
	for _, c := range Cases {
		if c.victims == 0 {
			continue
		}
		first, room := 0, int64(4000)
		var low []int64
		ports := map[int32]bool{}
		for _, x := range c.before {
			for i := range x.count(s) {
				if (first+i)%s.Nodes != 7 {
					continue
				}
				p := x.shape(first + i)
				cpu := p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
				room -= cpu
				if p.Spec.PriorityClassName == "" {
					low = append(low, cpu)
				}
				if port := x.port + int32(i/s.Nodes); x.port > 0 && ports[port] {
					t.Errorf("%s: two pods of a node have port %d", c.Name, port)
				} else {
					ports[port] = true
				}
			}
			first += x.count(s)
		}
		need := c.shape(0).Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		left := 0
		for ; room < need && left < len(low); left++ {
			room += low[left]
		}
		if room < need || left != c.victims {
			t.Errorf("%s: a pod that needs %dm has %dm when %d pods have left; want %d to leave", c.Name, need, room, left, c.victims)
		}
	}
}

// TestGroupsOfPods: pods are members of the group of their number, and all of one where it has no size.
func TestGroupsOfPods(t *testing.T) {
	for _, c := range []struct {
		size, pod int
		want      string
	}{{3, 2, "group-00000"}, {3, 3, "group-00001"}, {100, 250, "group-00002"}, {0, 999, "group-00000"}} {
		p := light(c.pod)
		(&grouping{size: c.size}).join(c.pod, p)
		if got := *p.Spec.SchedulingGroup.PodGroupName; got != c.want {
			t.Errorf("pod %d of groups of %d is in %s, want %s", c.pod, c.size, got, c.want)
		}
	}
	p := light(0)
	if (*grouping)(nil).join(0, p); p.Spec.SchedulingGroup != nil {
		t.Error("a pod without groups has one")
	}
}
