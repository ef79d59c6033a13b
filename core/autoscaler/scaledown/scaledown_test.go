package scaledown_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/testkit"
)

// TestRemovable says of nodes whether they could go.
func TestRemovable(t *testing.T) {
	for _, x := range []struct {
		name      string
		group     string
		node      func(*v1.Node)
		pods      []*testkit.PodBuilder
		nominated *testkit.PodBuilder
		want      bool
	}{
		{name: "an empty node of a group", group: "g", want: true},
		{name: "a node of no group"},
		{name: "a node that the API deletes", group: "g", node: func(n *v1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }},
		{name: "one with the annotation", group: "g", node: func(n *v1.Node) { n.Annotations = map[string]string{autoscaler.ScaleDownDisabledAnnotation: "true"} }},
		{name: "one with the annotation set otherwise", group: "g", node: func(n *v1.Node) { n.Annotations = map[string]string{autoscaler.ScaleDownDisabledAnnotation: "false"} }, want: true},
		{name: "a pod", group: "g", pods: []*testkit.PodBuilder{testkit.Pod("p")}},
		{name: "a daemon pod", group: "g", pods: []*testkit.PodBuilder{testkit.Pod("p").Owner("apps/v1", "DaemonSet", "d")}, want: true},
		{name: "a mirror pod", group: "g", pods: []*testkit.PodBuilder{mirror()}, want: true},
		{name: "a pod behind such", group: "g", pods: []*testkit.PodBuilder{mirror(), testkit.Pod("q")}},
		{name: "a pod that is to come", group: "g", nominated: testkit.Pod("p")},
	} {
		s := cluster.New(cluster.NewSchema())
		n := testkit.Node("n").Obj()
		if x.node != nil {
			x.node(n)
		}
		i := s.SetNode(s.Schema.ParseNode(n, x.group))
		for _, p := range x.pods {
			s.Place(s.Schema.ParsePod(p.Obj()), "n")
		}
		if x.nominated != nil {
			s.Nominate(s.Schema.ParsePod(x.nominated.Obj()), "n")
		}
		if got := scaledown.Removable(s.Node(i)); got != x.want {
			t.Errorf("%s: removable %t, want %t", x.name, got, x.want)
		}
	}
}

func mirror() *testkit.PodBuilder {
	b := testkit.Pod("m")
	b.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	return b
}

// TestCandidates lists the removable nodes by name. One that isn't ready is a candidate
// only when it has had its time to become so.
func TestCandidates(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	now, startup := time.Unix(10000, 0), 15*time.Minute
	for _, x := range []struct {
		name  string
		group string
		ready v1.ConditionStatus
		age   time.Duration
	}{
		{"z", "g", v1.ConditionTrue, 0},
		{"free", "", v1.ConditionTrue, time.Hour},
		{"broken", "g", v1.ConditionFalse, startup + time.Second},
		{"starting", "g", v1.ConditionFalse, startup},
		{"a", "h", v1.ConditionTrue, time.Hour},
	} {
		b := testkit.Node(x.name)
		b.Status.Conditions[0].Status = x.ready
		b.CreationTimestamp = metav1.NewTime(now.Add(-x.age))
		s.SetNode(s.Schema.ParseNode(b.Obj(), x.group))
	}
	if got, want := fmt.Sprint(scaledown.Candidates(s, now, startup)), "[a broken z]"; got != want {
		t.Errorf("candidates %s, want %s", got, want)
	}
}
