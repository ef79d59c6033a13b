package cluster_test

import (
	"fmt"
	"slices"
	"strings"
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

func TestWorkloadOf(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "w"}
	set := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: set}
	unreadable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	for _, c := range []struct {
		name string
		in   runtime.Object
		want string
	}{
		{"Service", &v1.Service{ObjectMeta: meta, Spec: v1.ServiceSpec{Selector: set}}, "Service ns/w set map[app:web]"},
		{"ReplicationController", &v1.ReplicationController{ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Selector: set}}, "ReplicationController ns/w set map[app:web]"},
		{"ReplicaSet", &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}}, "ReplicaSet ns/w selector app=web"},
		{"StatefulSet", &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}, "StatefulSet ns/w selector app=web"},
		{"a selector that can't be read", &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: unreadable}}, "StatefulSet ns/w selector <nothing>"},
		{"no selector", &appsv1.ReplicaSet{ObjectMeta: meta}, "ReplicaSet ns/w selector <nothing>"},
		{"Job", &batchv1.Job{ObjectMeta: meta}, "Job ns/w"},
		{"DaemonSet", &appsv1.DaemonSet{ObjectMeta: meta}, "DaemonSet ns/w"},
		{"another kind", &v1.ConfigMap{ObjectMeta: meta}, "none"},
	} {
		got := "none"
		if w := cluster.WorkloadOf(c.in); w != nil {
			got = fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name)
			if w.Set != nil {
				got += fmt.Sprint(" set ", w.Set)
			}
			if w.Selector != nil {
				got += " selector " + cluster.SelectorText(w.Selector)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// selecting returns the names of the Services that select pods with labels.
func selecting(s *cluster.State, namespace string, set map[string]string) string {
	var out []string
	s.Selecting(namespace, set, func(w *cluster.Workload) { out = append(out, w.Name) })
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestServicesThatSelectAPod(t *testing.T) {
	s := newState()
	service := func(namespace, name string, set map[string]string) {
		s.SetWorkload(&cluster.Workload{Kind: cluster.Service, Namespace: namespace, Name: name, Set: set})
	}
	service("default", "web", map[string]string{"app": "web"})
	service("default", "front", map[string]string{"app": "web", "tier": "front"})
	service("default", "tier", map[string]string{"tier": "front"})
	service("default", "nothing", nil)
	service("default", "empty", map[string]string{})
	service("other", "web", map[string]string{"app": "web"})
	s.SetWorkload(&cluster.Workload{Kind: cluster.ReplicationController, Namespace: "default", Name: "rc", Set: map[string]string{"app": "web"}})
	front := map[string]string{"app": "web", "tier": "front", "x": "y"}
	for _, c := range []struct {
		namespace string
		labels    map[string]string
		want      string
	}{
		{"default", front, "front tier web"},
		{"default", map[string]string{"app": "web"}, "web"},
		{"default", map[string]string{"app": "web", "tier": "back"}, "web"},
		{"default", map[string]string{"tier": ""}, ""},
		{"default", nil, ""},
		{"other", front, "web"},
		{"nowhere", front, ""},
	} {
		if got := selecting(s, c.namespace, c.labels); got != c.want {
			t.Errorf("pods of %s with %v are selected by %q, want %q", c.namespace, c.labels, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"one selects something else", func() { service("default", "web", map[string]string{"app": "db"}) }, "front tier"},
		{"and as before", func() { service("default", "web", map[string]string{"app": "web"}) }, "front tier web"},
		{"one selects nothing any more", func() { service("default", "tier", nil) }, "front web"},
		{"one goes", func() { s.RemoveWorkload(cluster.Service, "default", "front") }, "web"},
		{"a workload of another kind and its name goes", func() { s.RemoveWorkload(cluster.ReplicaSet, "default", "web") }, "web"},
		{"all go", func() { s.RemoveWorkload(cluster.Service, "default", "web") }, ""},
	} {
		mark := s.Mark()
		before := selecting(s, "default", front)
		c.do()
		s.Rollback(mark)
		if got := selecting(s, "default", front); got != before {
			t.Errorf("%s, rolled back: %q, want %q", c.name, got, before)
		}
		c.do()
		if got := selecting(s, "default", front); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if broken := s.Broken(); len(broken) > 0 {
			t.Errorf("%s: %s", c.name, strings.Join(broken, "\n"))
		}
	}
	if s.Workload(cluster.Service, "default", "nothing") == nil || s.Workload(cluster.Service, "default", "web") != nil {
		t.Error("a workload is there that went, or isn't that didn't")
	}
	var all []string
	for _, w := range s.Workloads() {
		all = append(all, fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name))
	}
	if got, want := strings.Join(all, ", "), "ReplicationController default/rc, Service default/empty, Service default/nothing, Service default/tier, Service other/web"; got != want {
		t.Errorf("the workloads are %s, want %s", got, want)
	}
}

// TestUpdatesOfWorkloads: most are of a status, of which nothing is read.
func TestUpdatesOfWorkloads(t *testing.T) {
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	s := newState()
	template := func(p *testkit.PodBuilder) *cluster.Pod { return s.Schema.ParsePod(p.Obj()) }
	for _, c := range []struct {
		name     string
		from, to cluster.Workload
		same     bool
	}{
		{"a Service's selector", cluster.Workload{Kind: cluster.Service, Set: map[string]string{"app": "web"}}, cluster.Workload{Kind: cluster.Service, Set: map[string]string{"app": "db"}}, false},
		{"nothing of a Service", cluster.Workload{Kind: cluster.Service, Set: map[string]string{"app": "web"}}, cluster.Workload{Kind: cluster.Service, Set: map[string]string{"app": "web"}}, true},
		{"a ReplicaSet's selector", cluster.Workload{Kind: cluster.ReplicaSet, Selector: selector}, cluster.Workload{Kind: cluster.ReplicaSet, Selector: labels.Everything()}, false},
		{"a selector that selects nothing now", cluster.Workload{Kind: cluster.ReplicaSet, Selector: labels.Everything()}, cluster.Workload{Kind: cluster.ReplicaSet, Selector: labels.Nothing()}, false},
		{"nothing of a ReplicaSet", cluster.Workload{Kind: cluster.ReplicaSet, Selector: selector}, cluster.Workload{Kind: cluster.ReplicaSet, Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}, true},
		{"a selector comes", cluster.Workload{Kind: cluster.ReplicaSet}, cluster.Workload{Kind: cluster.ReplicaSet, Selector: selector}, false},
		{"a selector goes", cluster.Workload{Kind: cluster.ReplicaSet, Selector: selector}, cluster.Workload{Kind: cluster.ReplicaSet}, false},
		{"a DaemonSet's pod", cluster.Workload{Kind: cluster.DaemonSet, Template: template(testkit.Pod("p").Req("cpu", "1"))},
			cluster.Workload{Kind: cluster.DaemonSet, Template: template(testkit.Pod("p").Req("cpu", "2"))}, false},
		{"nothing of a DaemonSet", cluster.Workload{Kind: cluster.DaemonSet, Template: template(testkit.Pod("p").Req("cpu", "1"))},
			cluster.Workload{Kind: cluster.DaemonSet, Template: template(testkit.Pod("p").Req("cpu", "1000m"))}, true},
		{"a DaemonSet's pod comes", cluster.Workload{Kind: cluster.DaemonSet}, cluster.Workload{Kind: cluster.DaemonSet, Template: template(testkit.Pod("p"))}, false},
		{"a DaemonSet's pod goes", cluster.Workload{Kind: cluster.DaemonSet, Template: template(testkit.Pod("p"))}, cluster.Workload{Kind: cluster.DaemonSet}, false},
	} {
		s := newState()
		s.SetWorkload(&c.from)
		from := s.Head()
		s.SetWorkload(&c.to)
		if got := s.Head() == from; got != c.same {
			t.Errorf("%s changes: left no trace is %v, want %v", c.name, got, c.same)
		}
	}
}

func TestGroups(t *testing.T) {
	s := newState()
	ids := func() string {
		var out []string
		for _, g := range s.Groups() {
			out = append(out, fmt.Sprint(g.ID, "=", g.Target))
		}
		return strings.Join(out, " ")
	}
	s.SetGroup("b", &cluster.NodeGroup{ID: "b", Target: 1})
	s.SetGroup("a", &cluster.NodeGroup{ID: "a", Target: 2})
	mark := s.Mark()
	s.SetGroup("b", &cluster.NodeGroup{ID: "b", Target: 3})
	s.SetGroup("a", nil)
	s.SetGroup("c", &cluster.NodeGroup{ID: "c"})
	if got := ids(); got != "b=3 c=0" || s.Group("b").Target != 3 || s.Group("a") != nil {
		t.Errorf("the groups are %s", got)
	}
	s.Rollback(mark)
	if got := ids(); got != "a=2 b=1" || s.Group("c") != nil {
		t.Errorf("rolled back, the groups are %s", got)
	}
}
