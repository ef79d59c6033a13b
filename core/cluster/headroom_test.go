package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestWhomAHeadroomAdmits has one pod for each way in which it can belong to a headroom,
// and the nearest that doesn't.
func TestWhomAHeadroomAdmits(t *testing.T) {
	const hash = "pod-template-hash"
	web := func() *testkit.PodBuilder { return testkit.Pod("p").Label("app", "web") }
	byLabels := &cluster.Headroom{Namespace: "default", Labels: map[string]string{"app": "web", "tier": "front"}}
	all := &cluster.Headroom{Namespace: "default", Labels: map[string]string{}}
	deployment := &cluster.Headroom{Namespace: "default", Controller: &cluster.Controller{Kind: "Deployment", Name: "web"}}
	set := &cluster.Headroom{Namespace: "default", Controller: &cluster.Controller{Kind: "StatefulSet", Name: "db"}}
	booking := &cluster.Headroom{Namespace: "default", Annotations: []cluster.Annotation{{Key: "new", Value: "r"}, {Key: "old", Value: "r"}}}
	for _, c := range []struct {
		name string
		by   *cluster.Headroom
		pod  *testkit.PodBuilder
		want bool
	}{
		{"all labels", byLabels, web().Label("tier", "front").Label("more", "x"), true},
		{"some of the labels", byLabels, web(), false},
		{"another value", byLabels, web().Label("tier", "back"), false},
		{"no label asked for", all, web(), true},
		{"another namespace", all, web().Namespaced("other"), false},
		{"a ReplicaSet of the Deployment", deployment, web().Label(hash, "1").Owner("apps/v1", "ReplicaSet", "web-1"), true},
		{"a ReplicaSet of another Deployment", deployment, web().Label(hash, "1").Owner("apps/v1", "ReplicaSet", "web-api-1"), false},
		{"a ReplicaSet of no Deployment", deployment, web().Owner("apps/v1", "ReplicaSet", "web"), false},
		{"a StatefulSet of the Deployment's name", deployment, web().Label(hash, "1").Owner("apps/v1", "StatefulSet", "web-1"), false},
		{"nobody's", deployment, web().Label(hash, "1"), false},
		{"the StatefulSet's", set, web().Owner("apps/v1", "StatefulSet", "db"), true},
		{"another StatefulSet's", set, web().Owner("apps/v1", "StatefulSet", "web"), false},
		{"the annotation", booking, web().Annotate("new", "r"), true},
		{"the older annotation", booking, web().Annotate("old", "r"), true},
		{"the annotation of another", booking, web().Annotate("new", "s"), false},
		{"no annotation", booking, web(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newState().Schema.ParsePod(c.pod.Obj())
			if got := c.by.Admits(p); got != c.want {
				t.Errorf("admitted: %t, want %t", got, c.want)
			}
			p.StandIn = "any"
			if c.by.Admits(p) {
				t.Error("a stand-in is admitted")
			}
		})
	}
}

// TestHeadroomsComeAndGo, and pods are signed again whenever others may be admitted.
func TestHeadroomsComeAndGo(t *testing.T) {
	s := newState()
	p := s.Schema.ParsePod(testkit.Pod("p").Label("app", "web").Obj())
	room := func(id cluster.HeadroomID, app string) func() {
		return func() {
			s.SetHeadroom(&cluster.Headroom{ID: id, Namespace: "default", Labels: map[string]string{"app": app}})
		}
	}
	for _, c := range []struct {
		name   string
		do     func()
		want   string
		signed bool // again
	}{
		{"one", room("b", "web"), "[b]", true},
		{"the same once more", room("b", "web"), "[b]", false},
		{"another, sorted before it", room("a", "web"), "[a b]", true},
		{"one that is for other pods", room("c", "db"), "[a b]", true},
		{"one changes", room("a", "db"), "[b]", true},
		{"one goes", func() { s.RemoveHeadroom("b") }, "[]", true},
		{"one that isn't there goes", func() { s.RemoveHeadroom("b") }, "[]", false},
	} {
		before, version := fmt.Sprint(s.Admitting(nil, p)), s.SignatureVersion()
		mark := s.Mark()
		c.do()
		if got := fmt.Sprint(s.Admitting(nil, p)); got != c.want {
			t.Errorf("%s: admitted by %s, want %s", c.name, got, c.want)
		}
		if got := s.SignatureVersion() != version; got != c.signed {
			t.Errorf("%s: pods are signed again: %t, want %t", c.name, got, c.signed)
		}
		s.Rollback(mark)
		if got := fmt.Sprint(s.Admitting(nil, p)); got != before {
			t.Errorf("%s, rolled back: admitted by %s, want %s", c.name, got, before)
		}
		c.do()
	}
}
