package autoscaler_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestNewer says which of two nodes new nodes of their group are planned after.
func TestNewer(t *testing.T) {
	schema := cluster.NewSchema()
	node := func(name string, created int64, zone string) *cluster.NodeInfo {
		b := testkit.Node(name).Zone(zone)
		b.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
		return schema.ParseNode(b.Obj(), "g")
	}
	old := node("m", 100, "a")
	for _, x := range []struct {
		name string
		now  *cluster.NodeInfo
		want bool // now, not old
	}{
		{"none", nil, false},
		{"one created later", node("z", 101, "a"), true},
		{"one created before", node("a", 99, "a"), false},
		{"one of the same second, before it by name", node("a", 100, "a"), true},
		{"one of the same second, after it by name", node("z", 100, "a"), false},
		{"the same node as it is now", node("m", 100, "b"), true},
	} {
		if got := autoscaler.Newer(old, x.now); (got == x.now) != x.want {
			t.Errorf("%s: got %v", x.name, got)
		}
		if got := autoscaler.Newer(nil, x.now); got != x.now {
			t.Errorf("%s, before which there was none: got %v", x.name, got)
		}
	}
}

// TestLowered compares a template with a node that was made after it.
func TestLowered(t *testing.T) {
	schema := cluster.NewSchema()
	parse := func(pairs ...string) *cluster.NodeInfo {
		return schema.ParseNode(testkit.Node("n").Alloc(pairs...).Obj(), "g")
	}
	template := parse("cpu", "4", "memory", "8Gi", "pods", "10", "example.com/gpu", "2")
	for _, x := range []struct {
		name              string
		node              *cluster.NodeInfo
		cpu, memory, gpus int64
		pods              int64
	}{
		{"the same", parse("cpu", "4", "memory", "8Gi", "pods", "10", "example.com/gpu", "2"), 4000, 8 << 30, 2, 10},
		{"less CPU, more memory, fewer pods", parse("cpu", "3", "memory", "9Gi", "pods", "5", "example.com/gpu", "2"), 3000, 8 << 30, 2, 5},
		{"GPUs that aren't published yet", parse("cpu", "4", "memory", "8Gi", "pods", "10"), 4000, 8 << 30, 2, 10},
		{"one GPU", parse("cpu", "4", "memory", "8Gi", "pods", "10", "example.com/gpu", "1"), 4000, 8 << 30, 1, 10},
	} {
		out := autoscaler.Lowered(template, x.node)
		at := func(name v1.ResourceName) int64 { return out.Allocatable.At(cluster.ResourceOf(name)) }
		if at("cpu") != x.cpu || at("memory") != x.memory || at("example.com/gpu") != x.gpus || out.AllowedPods != x.pods {
			t.Errorf("%s: got %v and %d pods, want %d, %d, %d and %d", x.name, out.Allocatable, out.AllowedPods, x.cpu, x.memory, x.gpus, x.pods)
		}
	}
	if got := template.Allocatable.At(cluster.ResourceOf("cpu")); got != 4000 {
		t.Errorf("the template itself has %d of CPU now, want 4000", got)
	}
}

// TestStartupTime of a group counts in place of the flag's.
func TestStartupTime(t *testing.T) {
	created := time.Unix(1000, 0)
	b := testkit.Node("n")
	b.Status.Conditions[0].Status = v1.ConditionFalse
	b.CreationTimestamp = metav1.NewTime(created)
	n := cluster.NewSchema().ParseNode(b.Obj(), "g")
	r := &autoscaler.Readiness{StartupTime: 10 * time.Minute}
	own := func(d time.Duration) *cluster.NodeGroup {
		return &cluster.NodeGroup{Options: &cluster.GroupOptions{StartupTime: &metav1.Duration{Duration: d}}}
	}
	for _, x := range []struct {
		name  string
		group *cluster.NodeGroup
		age   time.Duration
		late  bool
		by    string
	}{
		{"no group, in time", nil, 10 * time.Minute, false, "--max-node-startup-time"},
		{"no group, late", nil, 11 * time.Minute, true, "--max-node-startup-time"},
		{"a group without options, late", &cluster.NodeGroup{}, 11 * time.Minute, true, "--max-node-startup-time"},
		{"a group with other options, in time", &cluster.NodeGroup{Options: &cluster.GroupOptions{}}, 10 * time.Minute, false, "--max-node-startup-time"},
		{"a group with a longer time", own(20 * time.Minute), 11 * time.Minute, false, "an option of its node group"},
		{"a group with a shorter time", own(time.Minute), 2 * time.Minute, true, "an option of its node group"},
	} {
		now := created.Add(x.age)
		if late, starting := r.Late(n, x.group, now), r.Starting(n, x.group, now); late != x.late || starting == x.late {
			t.Errorf("%s: late %t, starting %t; want %t, %t", x.name, late, starting, x.late, !x.late)
		}
		if _, by := r.StartupOf(x.group); by != x.by {
			t.Errorf("%s: by %q, want %q", x.name, by, x.by)
		}
	}
}
