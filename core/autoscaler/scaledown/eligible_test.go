package scaledown_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// now is the API server's time.
var now = time.Unix(100_000, 0)

// newCheck returns a check by the flags' defaults.
func newCheck(s *cluster.State) *scaledown.Check {
	a := core.DefaultAutoscale()
	return &scaledown.Check{Rules: &a.Removal, State: s, Readiness: &a.Readiness, Now: now}
}

// withGroup returns a state with the node group g.
func withGroup() *cluster.State {
	s := cluster.New(cluster.NewSchema())
	s.SetGroup("g", &cluster.NodeGroup{ID: "g", Min: 1, Max: 10, Target: 3})
	return s
}

// aNode is a node of 4 cores and 8 GiB that was made an hour ago.
func aNode(name string) *testkit.NodeBuilder {
	n := testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi")
	n.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	return n
}

func annotated(key, value string) *testkit.NodeBuilder {
	n := aNode("n")
	n.Annotations = map[string]string{key: value}
	return n
}

// unready is a node that isn't ready, made so long ago.
func unready(age time.Duration) *testkit.NodeBuilder {
	n := aNode("n")
	n.Status.Conditions[0].Status = v1.ConditionFalse
	n.CreationTimestamp = metav1.NewTime(now.Add(-age))
	return n
}

// TestIneligible checks why nodes aren't candidates, as far as that is no matter of
// their pods' rules.
func TestIneligible(t *testing.T) {
	const disabled = "ScaleDownDisabledAnnotation: it has the annotation "
	deleting := aNode("n")
	deleting.DeletionTimestamp = &metav1.Time{Time: now}
	keepUnready := func(c *scaledown.Check) { c.Rules.KeepUnready = true }
	for _, x := range []struct {
		name      string
		node      *testkit.NodeBuilder
		group     string // "" for g
		flags     func(*scaledown.Check)
		pods      []*testkit.PodBuilder
		nominated []*cluster.Pod
		want      string
	}{
		{name: "a node without pods", node: aNode("n")},
		{name: "in no group", node: aNode("n"), group: "-", want: "NotAutoscaled: it is not in a node group"},
		{name: "in a group that is gone", node: aNode("n"), group: "old", want: "NotAutoscaled: its node group old no longer exists"},
		{name: "in a group that is rolling out", node: aNode("n"), group: "rolling", want: "NodeGroupRollingOut: it is rolling out"},
		{name: "being removed", node: aNode("n").Taint(autoscaler.ToBeDeletedTaint, "1", v1.TaintEffectNoSchedule), want: "CurrentlyBeingDeleted: it is being removed"},
		{name: "being deleted in the API", node: deleting, want: "CurrentlyBeingDeleted: it is being removed"},
		{name: "a candidate's taint", node: aNode("n").Taint(autoscaler.DeletionCandidateTaint, "1", v1.TaintEffectPreferNoSchedule)},
		{name: "disabled", node: annotated(cluster.ScaleDownDisabledAnnotation, "true"), want: disabled + "cluster-autoscaler.kubernetes.io/scale-down-disabled: true"},
		{name: "not disabled", node: annotated(cluster.ScaleDownDisabledAnnotation, "false")},
		{name: "disabled by no boolean", node: annotated(cluster.ScaleDownDisabledAnnotation, "yes")},
		{name: "disabled as Karpenter does", node: annotated(cluster.DoNotDisruptAnnotation, "true"), want: disabled + "karpenter.sh/do-not-disrupt: true"},
		{name: "by no boolean", node: annotated(cluster.DoNotDisruptAnnotation, "1h")},
		{name: "starting", node: unready(15 * time.Minute), want: "Starting: it is not ready yet, and was created within the last 15m0s (--max-node-startup-time)"},
		{name: "broken", node: unready(15*time.Minute + time.Second)},
		{name: "broken, and such nodes stay", node: unready(time.Hour), flags: keepUnready, want: "ScaleDownUnreadyDisabled: it is not ready (--scale-down-unready-enabled=false)"},
		{name: "ready, and such nodes stay", node: aNode("n"), flags: keepUnready},
		{name: "awaited", node: aNode("n"), nominated: []*cluster.Pod{standIn("a"), {Object: testkit.Pod("p").Obj(), UID: "p"}}, want: "PodIsToCome default/p: the pod is nominated to it"},
		{name: "kept free", node: aNode("n"), nominated: []*cluster.Pod{standIn("a")}, want: "PodIsToCome: room is reserved on it for expected pods"},
		{name: "as utilized as it may be", node: aNode("n"), pods: []*testkit.PodBuilder{testkit.Pod("p").Req("cpu", "2")}},
		{name: "more utilized", node: aNode("n"), pods: []*testkit.PodBuilder{testkit.Pod("p").Req("cpu", "2100m")},
			want: "NotUnderutilized: cpu utilization 52.5 % > 50 % (--scale-down-utilization-threshold) [0.525]"},
		{name: "broken and utilized", node: unready(time.Hour), pods: []*testkit.PodBuilder{testkit.Pod("p").Req("memory", "6Gi")},
			want: "NotUnderutilized: memory utilization 75 % > 50 % (--scale-down-utilization-threshold) [0.75]"},
		{name: "utilized by daemons alone", node: aNode("n"), pods: []*testkit.PodBuilder{daemon("d").Req("cpu", "3")},
			want: "NotUnderutilized: cpu utilization 75 % > 50 % (--scale-down-utilization-threshold) [0.75]"},
	} {
		s := withGroup()
		group := map[string]string{"": "g", "-": ""}[x.group]
		if x.group == "old" || x.group == "rolling" {
			group = x.group
		}
		s.SetGroup("rolling", &cluster.NodeGroup{ID: "rolling", Max: 10, Target: 3, KeepNodes: "it is rolling out"})
		i := s.SetNode(s.Schema.ParseNode(x.node.Obj(), group))
		for _, p := range x.pods {
			s.Place(s.Schema.ParsePod(p.Obj()), "n")
		}
		for _, p := range x.nominated {
			s.Nominate(p, "n")
		}
		c := newCheck(s)
		if x.flags != nil {
			x.flags(c)
		}
		if got := keptText(c.Ineligible(s.Node(i))); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// keptText is why a node stays, with the pod and the utilization where they are known.
func keptText(k *autoscaler.Kept) string {
	if k == nil {
		return ""
	}
	text := string(k.Reason)
	if k.Pod != "" {
		text += " " + k.Pod
	}
	if text += ": " + k.Detail; k.Utilization > 0 {
		text += fmt.Sprintf(" [%v]", k.Utilization)
	}
	return text
}

func standIn(name string) *cluster.Pod {
	p := testkit.Pod(name).Obj()
	return &cluster.Pod{Object: p, UID: p.UID, StandIn: "headroom"}
}

func daemon(name string) *testkit.PodBuilder {
	return testkit.Pod(name).Owner("apps/v1", "DaemonSet", "d")
}
