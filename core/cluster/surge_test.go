package cluster_test

import (
	"fmt"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestWhyNoSuccessors has two members that can get successors together, and changes one thing.
func TestWhyNoSuccessors(t *testing.T) {
	member := func(name string) *testkit.PodBuilder {
		return testkit.Pod(name).PodGroup("g").Owner("apps/v1", "ReplicaSet", name+"-1").Label("pod-template-hash", "1").Annotate(cluster.SurgeAnnotation, "true")
	}
	for _, c := range []struct {
		name   string
		change func(s *cluster.State, add func(*testkit.PodBuilder))
		whole  bool
		want   string
	}{
		{"nothing", func(*cluster.State, func(*testkit.PodBuilder)) {}, true, ""},
		{"members go singly", func(s *cluster.State, _ func(*testkit.PodBuilder)) { s.SetObject(testkit.PodGroup("g", 2, "")) }, false, ""},
		{"one more replica", func(s *cluster.State, _ func(*testkit.PodBuilder)) { s.SetWorkload(replicaSet("b", 2)) }, true, "default/b can't: its ReplicaSet has 2 replicas"},
		{"its ReplicaSet isn't known", func(s *cluster.State, _ func(*testkit.PodBuilder)) {
			s.RemoveWorkload(cluster.ReplicaSet, "default", "b-1")
		}, true, "default/b can't: its Deployment is not known"},
		{"members that don't ask", func(_ *cluster.State, add func(*testkit.PodBuilder)) {
			add(testkit.Pod("d").PodGroup("g"))
			add(testkit.Pod("c").PodGroup("g"))
		}, true, `default/c can't: it does not have the annotation berth.dev/surge: "true"`},
		{"one that is safe to evict", func(_ *cluster.State, add func(*testkit.PodBuilder)) {
			add(testkit.Pod("c").PodGroup("g").Annotate(cluster.SafeToEvictAnnotation, "true"))
		}, true, ""},
		{"one that is leaving", func(_ *cluster.State, add func(*testkit.PodBuilder)) {
			add(testkit.Pod("c").PodGroup("g").Terminating())
		}, true, ""},
		{"too many", func(s *cluster.State, add func(*testkit.PodBuilder)) {
			for i := range cluster.MaxSurgedMembers - 1 {
				name := fmt.Sprint("m", i)
				s.SetWorkload(replicaSet(name, 1))
				add(member(name))
			}
		}, true, "it has 17 members, more than the 16 that can get successors together"},
	} {
		s := newState()
		setNode(s, testkit.Node("n"))
		g := testkit.PodGroup("g", 2, "")
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		s.SetObject(g)
		add := func(b *testkit.PodBuilder) { s.Place(s.Schema.ParsePod(b.Obj()), "n") }
		for _, name := range []string{"a", "b"} {
			s.SetWorkload(replicaSet(name, 1))
			add(member(name))
		}
		c.change(s, add)
		key, whole := s.SurgesWhole(s.PodOn("pod-a"))
		if whole != c.whole {
			t.Errorf("%s: a gets its successor with others: %t", c.name, whole)
		}
		if _, got := s.WhyNoSuccessors(key); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	s := newState()
	safe := s.Schema.ParsePod(member("a").Annotate(cluster.SafeToEvictAnnotation, "true").Obj())
	if _, whole := s.SurgesWhole(safe); whole {
		t.Error("a pod that is safe to evict waits for others")
	}
}

// replicaSet returns that of a Deployment's pods.
func replicaSet(deployment string, wanted int32) *cluster.Workload {
	rs := testkit.ReplicaSet(deployment+"-1", "pod-template-hash", "1")
	rs.Spec.Replicas = new(wanted)
	return cluster.WorkloadOf(rs)
}
