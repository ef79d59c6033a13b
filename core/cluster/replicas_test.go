package cluster_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestReplicas: how many pods each kind is to have, and has without those that are
// terminating.
func TestReplicas(t *testing.T) {
	n := func(n int32) *int32 { return &n }
	job := func(spec batchv1.JobSpec, status batchv1.JobStatus) *batchv1.Job {
		return &batchv1.Job{Spec: spec, Status: status}
	}
	over := func(c batchv1.JobConditionType, s v1.ConditionStatus) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: c, Status: s}}
	}
	for _, c := range []struct {
		name string
		in   runtime.Object
		want cluster.Replicas
	}{
		{"a ReplicaSet", &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: n(3)}, Status: appsv1.ReplicaSetStatus{Replicas: 2}}, cluster.Replicas{Wanted: 3, Existing: 2}},
		{"a ReplicaSet that says no number", &appsv1.ReplicaSet{}, cluster.Replicas{Wanted: 1}},
		{"a ReplicationController", &v1.ReplicationController{Spec: v1.ReplicationControllerSpec{Replicas: n(3)}, Status: v1.ReplicationControllerStatus{Replicas: 2}}, cluster.Replicas{Wanted: 3, Existing: 2}},
		{"a StatefulSet with a terminating pod", &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: n(3)},
			Status: appsv1.StatefulSetStatus{Replicas: 3, CurrentReplicas: 2, UpdatedReplicas: 2, CurrentRevision: "a", UpdateRevision: "a"}}, cluster.Replicas{Wanted: 3, Existing: 2}},
		{"a StatefulSet in a rolling update", &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: n(3)},
			Status: appsv1.StatefulSetStatus{Replicas: 3, CurrentReplicas: 2, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"}}, cluster.Replicas{Wanted: 3, Existing: 3}},
		{"a Job", job(batchv1.JobSpec{Parallelism: n(4), Completions: n(10)}, batchv1.JobStatus{Active: 3, Succeeded: 2}), cluster.Replicas{Wanted: 4, Existing: 3}},
		{"a Job that is nearly over", job(batchv1.JobSpec{Parallelism: n(4), Completions: n(10)}, batchv1.JobStatus{Active: 1, Succeeded: 9}), cluster.Replicas{Wanted: 1, Existing: 1}},
		{"a Job with more successes than it needs", job(batchv1.JobSpec{Completions: n(1)}, batchv1.JobStatus{Succeeded: 2}), cluster.Replicas{}},
		{"a Job with a work queue", job(batchv1.JobSpec{Parallelism: n(4)}, batchv1.JobStatus{Active: 2}), cluster.Replicas{Wanted: 4, Existing: 2}},
		{"a Job with a work queue that is empty", job(batchv1.JobSpec{Parallelism: n(4)}, batchv1.JobStatus{Active: 2, Succeeded: 1}), cluster.Replicas{Wanted: 2, Existing: 2}},
		{"a suspended Job", job(batchv1.JobSpec{Parallelism: n(4), Suspend: new(true)}, batchv1.JobStatus{}), cluster.Replicas{}},
		{"a failed Job", job(batchv1.JobSpec{Parallelism: n(4)}, batchv1.JobStatus{Conditions: over(batchv1.JobFailed, v1.ConditionTrue)}), cluster.Replicas{}},
		{"a Job that isn't suspended any more", job(batchv1.JobSpec{}, batchv1.JobStatus{Conditions: over(batchv1.JobSuspended, v1.ConditionFalse)}), cluster.Replicas{Wanted: 1}},
		{"a Job that hasn't failed", job(batchv1.JobSpec{}, batchv1.JobStatus{Conditions: over(batchv1.JobFailed, v1.ConditionFalse)}), cluster.Replicas{Wanted: 1}},
		{"a Service", &v1.Service{}, cluster.Replicas{}},
	} {
		if got := cluster.WorkloadOf(c.in).Replicas; got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		if got := cluster.WorkloadOf(cluster.Trim(c.in.(metav1.Object)).(runtime.Object)).Replicas; got != c.want {
			t.Errorf("%s, trimmed: got %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		of   cluster.Replicas
		want int
	}{{cluster.Replicas{Wanted: 3, Existing: 1}, 2}, {cluster.Replicas{Wanted: 1, Existing: 3}, 0}} {
		if got := c.of.Missing(); got != c.want {
			t.Errorf("of %+v %d are missing, want %d", c.of, got, c.want)
		}
	}
}

// TestOwnerOf: a pod's owner is known by kind, API group and name within its namespace.
func TestOwnerOf(t *testing.T) {
	s := newState()
	for _, kind := range []cluster.WorkloadKind{cluster.ReplicaSet, cluster.ReplicationController, cluster.Job} {
		s.SetWorkload(&cluster.Workload{Kind: kind, Namespace: "default", Name: "web"})
	}
	for _, c := range []struct{ version, kind, name, want string }{
		{"apps/v1", "ReplicaSet", "web", "ReplicaSet"},
		{"v1", "ReplicationController", "web", "ReplicationController"},
		{"batch/v1", "Job", "web", "Job"},
		{"batch.volcano.sh/v1alpha1", "Job", "web", ""},
		{"apps/v1", "ReplicaSet", "db", ""},
		{"apps/v1", "StatefulSet", "web", ""},
		{"example.com/v1", "Anything", "web", ""},
	} {
		got := ""
		if w := s.OwnerOf(s.Schema.ParsePod(testkit.Pod("p").Owner(c.version, c.kind, c.name).Obj())); w != nil {
			got = string(w.Kind)
		}
		if got != c.want {
			t.Errorf("the owner %s %s %s is found as %q, want %q", c.version, c.kind, c.name, got, c.want)
		}
	}
	if w := s.OwnerOf(s.Schema.ParsePod(testkit.Pod("p").Obj())); w != nil {
		t.Errorf("a pod without an owner has %+v", w)
	}
}

// TestRenewedWorkloads: what no rule reads is in the journal apart, follows into followers,
// and can be rolled back.
func TestRenewedWorkloads(t *testing.T) {
	s := newState()
	f := cluster.Follow(s)
	rs := func(replicas cluster.Replicas, app string) *cluster.Workload {
		return &cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: "web", Selector: labels.SelectorFromSet(labels.Set{"app": app}), Replicas: replicas}
	}
	job := &cluster.Workload{Kind: cluster.Job, Namespace: "default", Name: "night"}
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"a ReplicaSet comes", func() { s.SetWorkload(rs(cluster.Replicas{Wanted: 2}, "web")) }, "WorkloadSet"},
		{"its status changes", func() { s.SetWorkload(rs(cluster.Replicas{Wanted: 2, Existing: 2}, "web")) }, "WorkloadRenewed"},
		{"nothing changes", func() { s.SetWorkload(rs(cluster.Replicas{Wanted: 2, Existing: 2}, "web")) }, ""},
		{"it selects other pods", func() { s.SetWorkload(rs(cluster.Replicas{Wanted: 2, Existing: 1}, "db")) }, "WorkloadSet"},
		{"a Job comes", func() { s.SetWorkload(job) }, "WorkloadRenewed"},
		{"the Job is shown again", func() { s.SetWorkload(job) }, ""},
		{"the Job goes", func() { s.RemoveWorkload(cluster.Job, "default", "night") }, "WorkloadRenewed"},
		{"the ReplicaSet goes", func() { s.RemoveWorkload(cluster.ReplicaSet, "default", "web") }, "WorkloadSet"},
	} {
		before := dump(s)
		mark := s.Mark()
		c.do()
		s.Rollback(mark)
		if got := dump(s); got != before {
			t.Errorf("%s, rolled back:\n%s\nwant:\n%s", c.name, got, before)
		}
		from := s.Head()
		c.do()
		if got := journal(s, from); got != c.want {
			t.Errorf("%s: the journal has %q, want %q", c.name, got, c.want)
		}
		changes, _ := s.Since(from)
		if got, want := len(cluster.ReadByRules(changes)), map[string]int{"WorkloadSet": 1}[c.want]; got != want {
			t.Errorf("%s: rules are asked about %d changes, want %d", c.name, got, want)
		}
		if err := f.CatchUp(); err != nil {
			t.Fatal(err)
		}
		if got, want := dump(f.State), dump(s); got != want {
			t.Errorf("%s: the follower has\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

// BenchmarkReplicas is what an update of a ReplicaSet's status costs the state, from the
// trimmed object on.
func BenchmarkReplicas(b *testing.B) {
	s := newState()
	o := testkit.ReplicaSet("web", "app", "web", "pod-template-hash", "abc")
	b.ReportAllocs()
	for i := range b.N {
		o.Status.Replicas = int32(i)
		s.SetWorkload(cluster.WorkloadOf(o))
		s.Trim(s.Head())
	}
}
