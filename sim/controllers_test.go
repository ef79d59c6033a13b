package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// soon is longer than it takes until a controller looks at its object.
const soon = time.Second

func meta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: "w"} }

func template() v1.PodTemplateSpec {
	return v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
}

func replicaSet(replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: meta(), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: template()}}
}

func job(completions, parallelism int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta(), Spec: batchv1.JobSpec{Completions: &completions, Parallelism: &parallelism, Template: template()}}
}

func statefulSet(replicas int32, policy appsv1.PodManagementPolicyType) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{Replicas: &replicas, PodManagementPolicy: policy, Template: template()}}
}

// podNamed returns the pod of a name.
func (w *World) podNamed(t *testing.T, name string) *pod {
	t.Helper()
	p := w.byName["default/"+name]
	if p == nil {
		t.Fatalf("there is no pod %s but %s", name, w.podNames())
	}
	return p
}

// TestReplicasAreKept: a ReplicaSet and a ReplicationController replace each pod that
// doesn't count any more, a terminating one at once.
func TestReplicasAreKept(t *testing.T) {
	controllerOf := func(kind string) func(w *World) {
		return func(w *World) {
			if kind == "ReplicaSet" {
				w.create(replicaSet(3))
				return
			}
			template := template()
			w.create(&v1.ReplicationController{ObjectMeta: meta(), Spec: v1.ReplicationControllerSpec{Replicas: new(int32(3)), Template: &template}})
		}
	}
	for _, kind := range []string{"ReplicaSet", "ReplicationController"} {
		t.Run(kind, func(t *testing.T) {
			w := newTestWorld(t, "  kubelet: {stop: {min: 20s, max: 20s}}\n")
			w.addNodes("n")
			controllerOf(kind)(w)
			if n := w.activePods(); n != 0 {
				t.Errorf("at once: got %d pods, want 0 until the controller looks", n)
			}
			w.pass(soon)
			if n := w.activePods(); n != 3 {
				t.Fatalf("got %d pods, want 3", n)
			}
			w.bindAll(t, "n")
			pods := w.sortedPods()
			for _, s := range []struct {
				name        string
				change      func()
				active, all int
			}{
				{"one is deleted and terminates", func() { w.deletePod(pods[0]) }, 3, 4},
				{"one fails", func() { w.endPod(pods[1], v1.PodFailed) }, 3, 5},
				{"one has succeeded", func() { w.endPod(pods[2], v1.PodSucceeded) }, 3, 6},
			} {
				s.change()
				w.pass(soon)
				if active, all := w.activePods(), len(w.pods); active != s.active || all != s.all {
					t.Errorf("%s: got %d pods that count of %d, want %d of %d", s.name, active, all, s.active, s.all)
				}
			}
		})
	}
}

// TestJobRunsSoManyAtATime: as many pods at a time as it may, as long as completions are
// missing; a pod that failed has completed nothing.
func TestJobRunsSoManyAtATime(t *testing.T) {
	w := newTestWorld(t, "  end: {at: 1h}\n")
	w.addNodes("n")
	w.create(job(4, 2))
	w.pass(soon)
	for i, s := range []struct {
		ends   v1.PodPhase
		active int // afterwards
	}{{"", 2}, {v1.PodSucceeded, 2}, {v1.PodFailed, 2}, {v1.PodSucceeded, 2}, {v1.PodSucceeded, 1}, {v1.PodFailed, 1}, {v1.PodSucceeded, 0}} {
		if s.ends != "" {
			w.bindAll(t, "n")
			for _, p := range w.sortedPods() {
				if p.active() {
					w.endPod(p, s.ends)
					break
				}
			}
			w.pass(soon)
		}
		if got := w.activePods(); got != s.active {
			t.Errorf("after end %d (%s): got %d pods at a time, want %d", i, s.ends, got, s.active)
		}
	}
}

// TestJobOfADumpHasSucceededBefore: completions in its status count.
func TestJobOfADumpHasSucceededBefore(t *testing.T) {
	w := newTestWorld(t, "  end: {at: 1h}\n")
	j := job(5, 3)
	j.Status.Succeeded = 4
	w.create(j)
	w.pass(soon)
	if got := w.activePods(); got != 1 {
		t.Errorf("got %d pods for one missing completion, want 1", got)
	}
}

// TestStatefulSetCreatesInOrder: by default each pod waits until all before it are ready;
// a pod's successor waits until the pod is gone.
func TestStatefulSetCreatesInOrder(t *testing.T) {
	w := newTestWorld(t, "  kubelet: {stop: {min: 20s, max: 20s}}\n")
	w.addNodes("n")
	w.create(statefulSet(3, appsv1.OrderedReadyPodManagement))
	for _, s := range []struct {
		name   string
		change func()
		want   string
	}{
		{"it is created", func() {}, "w-0"},
		{"it looks again, and w-0 isn't ready", func() { w.reconcile(w.controllers[controllerKey{"StatefulSet", "default", "w"}]) }, "w-0"},
		{"w-0 is ready", func() { w.bindAll(t, "n") }, "w-0 w-1"},
		{"w-1 is ready", func() { w.bindAll(t, "n") }, "w-0 w-1 w-2"},
		{"w-2 is ready", func() { w.bindAll(t, "n") }, "w-0 w-1 w-2"},
		{"w-0 is deleted", func() { w.deletePod(w.podNamed(t, "w-0")) }, "w-0(terminating) w-1 w-2"},
		{"w-0 is gone", func() { w.pass(20 * time.Second) }, "w-0 w-1 w-2"},
	} {
		s.change()
		w.pass(soon)
		if got := w.podNames(); got != s.want {
			t.Errorf("%s: got %s, want %s", s.name, got, s.want)
		}
	}
}

// TestParallelStatefulSetCreatesAtOnce: with the policy Parallel none waits for another.
func TestParallelStatefulSetCreatesAtOnce(t *testing.T) {
	w := newTestWorld(t, "  end: {at: 1h}\n")
	w.create(statefulSet(3, appsv1.ParallelPodManagement))
	w.pass(soon)
	if got, want := w.podNames(), "w-0 w-1 w-2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestStatefulSetAdoptsPodsByTheirOrdinals: a pod of a dump, which existed before its
// controller, is the one of the ordinal that its name ends with. Pods beyond the replicas
// stay, and those whose names end otherwise.
func TestStatefulSetAdoptsPodsByTheirOrdinals(t *testing.T) {
	w := newTestWorld(t, "  end: {at: 1h}\n")
	set := statefulSet(3, appsv1.ParallelPodManagement)
	w.create(set)
	for _, name := range []string{"w-1", "w-7", "other", "w-x"} {
		w.addPod(testkit.Pod(name).Owner("apps/v1", "StatefulSet", "w").Obj(), nil)
	}
	w.pass(soon)
	if got, want := w.podNames(), "other w-0 w-1 w-2 w-7 w-x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDaemonSetHasAPodOnEachNodeThatItWants, and one only, which can go to that node
// alone. Nodes are wanted as the DaemonSet controller does: by required node affinity,
// and by taints but for those that its pods tolerate.
func TestDaemonSetHasAPodOnEachNodeThatItWants(t *testing.T) {
	w := newTestWorld(t, "  kubelet: {stop: {min: 1s, max: 1s}}\n")
	set := &appsv1.DaemonSet{ObjectMeta: meta(), Spec: appsv1.DaemonSetSpec{Template: template()}}
	set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	set.Spec.Template.Spec.Tolerations = []v1.Toleration{{Key: "mine", Operator: v1.TolerationOpExists}}
	node := func(name string) *testkit.NodeBuilder { return testkit.Node(name).Label("disk", "ssd") }
	w.addNode(node("plain").Obj(), nil)
	w.addNode(testkit.Node("not-selected").Obj(), nil)
	w.create(set)
	w.addNode(node("foreign-taint").Taint("theirs", "", v1.TaintEffectNoSchedule).Obj(), nil)
	w.addNode(node("tolerated-taint").Taint("mine", "", v1.TaintEffectNoExecute).Obj(), nil)
	w.addNode(node("soft-taint").Taint("theirs", "", v1.TaintEffectPreferNoSchedule).Obj(), nil)
	w.addNode(node("not-ready").Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule).Obj(), nil)
	w.addNode(node("cordoned").Taint(v1.TaintNodeUnschedulable, "", v1.TaintEffectNoSchedule).Cordon().Obj(), nil)
	wanted := func() string {
		var out []string
		for _, n := range w.sortedNodes() {
			for _, p := range w.sortedPods() {
				if p.active() && p.daemonNode == n {
					if !slices.ContainsFunc(p.obj.Spec.Tolerations, func(t v1.Toleration) bool { return t.Key == v1.TaintNodeNotReady }) {
						t.Errorf("pod %s has the tolerations %v, without those that the DaemonSet controller adds", p.name, p.obj.Spec.Tolerations)
					}
					if a := p.obj.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(a) == 1 && a[0].MatchFields[0].Values[0] == n.obj.Name {
						out = append(out, n.obj.Name)
					}
				}
			}
		}
		return fmt.Sprintf("%s, of %d pods", strings.Join(out, " "), w.activePods())
	}
	for _, s := range []struct {
		name   string
		change func()
		want   string
	}{
		{"the nodes are there", func() {}, "cordoned not-ready plain soft-taint tolerated-taint, of 5 pods"},
		{"nothing has changed", func() { w.reconcile(w.daemons[0]) }, "cordoned not-ready plain soft-taint tolerated-taint, of 5 pods"},
		{"a node is removed before the controller looks", func() { w.removeNode(w.addNode(node("short-lived").Obj(), nil), false) }, "cordoned not-ready plain soft-taint tolerated-taint, of 5 pods"},
		{"a pod is deleted", func() { w.deletePod(w.sortedPods()[0]); w.pass(2 * time.Second) }, "cordoned not-ready plain soft-taint tolerated-taint, of 5 pods"},
		{"a pod fails", func() { w.endPod(w.sortedPods()[0], v1.PodFailed) }, "cordoned not-ready plain soft-taint tolerated-taint, of 5 pods"},
		{"it is deleted", func() { w.remove(set) }, ", of 0 pods"},
		{"a node comes after it", func() { w.addNode(node("late").Obj(), nil) }, ", of 0 pods"},
	} {
		s.change()
		w.pass(soon)
		if got := wanted(); got != s.want {
			t.Errorf("%s: got %s, want %s", s.name, got, s.want)
		}
	}
}

// TestPodsOfControllers: what a controller's pod has of its template, and what names its
// owner.
func TestPodsOfControllers(t *testing.T) {
	set := replicaSet(1)
	set.UID = "uid-w"
	set.Spec.Template.Labels = map[string]string{"app": "w"}
	set.Spec.Template.Annotations = map[string]string{"berth.dev/run-for": "1m"}
	set.Spec.Template.Spec.PriorityClassName = "high"
	w := newTestWorld(t, "  end: {at: 1h}\n")
	w.create(set)
	w.pass(soon)
	p := w.sortedPods()[0]
	owner := metav1.GetControllerOf(p.obj)
	if owner == nil || owner.APIVersion != "apps/v1" || owner.Kind != "ReplicaSet" || owner.Name != "w" || owner.UID != "uid-w" {
		t.Errorf("got the owner %+v, want ReplicaSet w of apps/v1", owner)
	}
	if p.obj.Namespace != "default" || p.obj.Labels["app"] != "w" || p.obj.Annotations["berth.dev/run-for"] != "1m" || p.obj.Spec.PriorityClassName != "high" {
		t.Errorf("got the pod %+v, want what the template says", p.obj)
	}
	if p.controller != w.controllerOf(p.obj) || p.controller == nil {
		t.Errorf("got the controller %p, want %p", p.controller, w.controllerOf(p.obj))
	}
}

// TestControllersThatCreateNothing: without a template, which dumps may have trimmed away,
// and of kinds that have no pods.
func TestControllersThatCreateNothing(t *testing.T) {
	w := newTestWorld(t, "  end: {at: 1h}\n")
	trimmed := replicaSet(3)
	trimmed.Spec.Template = v1.PodTemplateSpec{}
	w.createAll(trimmed, testkit.Service("s", "app", "w"))
	w.pass(time.Minute)
	if got := w.podNames(); got != "" || len(w.controllers) > 0 {
		t.Errorf("got the pods %q of %d controllers, want none", got, len(w.controllers))
	}
}

// TestDeletedControllersTakeTheirPodsAlong, and create no others.
func TestDeletedControllersTakeTheirPodsAlong(t *testing.T) {
	set := replicaSet(2)
	w := newTestWorld(t, "  end: {at: 1h}\n")
	w.create(set)
	w.pass(soon)
	w.create(testkit.Pod("other").Obj())
	w.remove(set)
	w.pass(time.Minute)
	if got, want := w.podNames(), "other"; got != want || len(w.controllers) > 0 {
		t.Errorf("got %s of %d controllers, want %s of none", got, len(w.controllers), want)
	}
}

// replicasShown returns what Berth's watch has delivered of the workloads' replicas, as
// wanted/existing, and forgets it.
func (w *World) replicasShown() string {
	var out []string
	for _, in := range w.berth.inbox {
		if x, ok := in.(step.WorkloadSet); ok {
			out = append(out, fmt.Sprintf("%d/%d", x.Workload.Replicas.Wanted, x.Workload.Replicas.Existing))
		}
	}
	w.berth.inbox = nil
	return strings.Join(out, " ")
}

// TestControllersWriteTheirReplicas: Berth sees how many pods a controller wants and has, as
// it was when the controller last looked; terminating pods don't count, and a process that
// starts sees the last of it.
func TestControllersWriteTheirReplicas(t *testing.T) {
	for _, c := range []struct {
		kind                             string
		object                           runtime.Object
		created, deleted, gone, restarts string
	}{
		{"ReplicaSet", replicaSet(2), "2/0 2/2", "2/1 2/2", "", "2/2"},
		{"StatefulSet", statefulSet(2, appsv1.ParallelPodManagement), "2/0 2/2", "2/1", "2/2", "2/2"},
		{"Job", job(5, 2), "2/0 2/2", "2/1 2/2", "", "2/2"},
		{"DaemonSet", &appsv1.DaemonSet{ObjectMeta: meta(), Spec: appsv1.DaemonSetSpec{Template: template()}}, "", "", "", ""},
	} {
		t.Run(c.kind, func(t *testing.T) {
			w := newTestWorld(t, "  kubelet: {stop: {min: 20s, max: 20s}}\n")
			w.addNodes("n")
			w.pass(soon)
			w.berth.inbox = nil
			expect := func(when, want string) {
				t.Helper()
				if got := w.replicasShown(); got != want {
					t.Errorf("%s: Berth is shown %q, want %q", when, got, want)
				}
			}
			w.run.Objects = append(w.run.Objects, c.object)
			w.create(c.object)
			w.pass(soon)
			w.bindAll(t, "n")
			expect("when it is created", c.created)
			w.deletePod(w.sortedPods()[0])
			w.pass(2 * soon)
			expect("when a pod terminates", c.deleted)
			w.pass(20 * time.Second)
			expect("when the pod is gone", c.gone)
			w.berth.list()
			expect("when Berth starts again", c.restarts)
		})
	}
}

// TestADaemonSetDeletesThePodOfANodeThatIsGone: the pod was never bound, so no garbage collector knows
// that its node is gone. A bound one is collected.
func TestADaemonSetDeletesThePodOfANodeThatIsGone(t *testing.T) {
	w := newTestWorld(t, `  workload:
  - {name: agent, kind: DaemonSet, template: {spec: {containers: [{name: c}]}}}
`)
	w.addNodes("n2")
	w.pass(time.Second)
	w.bindAll(t, "n2")
	w.addNodes("n1")
	w.pass(time.Second)
	if n := len(w.sortedPods()); n != 2 {
		t.Fatalf("there are %d pods, want one for each node", n)
	}
	w.removeNode(w.nodes["n1"], false)
	w.pass(time.Second)
	if pods := w.sortedPods(); len(pods) != 1 || pods[0].obj.Spec.NodeName != "n2" {
		t.Errorf("after n1 is gone there are %d pods, want that of n2", len(pods))
	}
}
