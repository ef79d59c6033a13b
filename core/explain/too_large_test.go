package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestWhatHelpsAPodThatIsTooLarge for every node and node group is a larger one: neither pods that are deleted, taints that
// go, nor fewer rules.
func TestWhatHelpsAPodThatIsTooLarge(t *testing.T) {
	const added = "is added, or the request is lowered"
	group := func(cpu string) nodegroup.Group {
		return nodegroup.Group{ID: "g", Max: 3, Template: testkit.Node("g").Alloc("cpu", cpu, "memory", "8Gi", "pods", "10").Obj()}
	}
	unknown := nodegroup.Group{ID: "u", Max: 3, TemplateError: "no such machine type"}
	for name, x := range map[string]struct {
		groups []nodegroup.Group
		pod    *testkit.PodBuilder
		want   string // of what is waited for; with added, all of it
	}{
		"too large":                      {[]nodegroup.Group{group("31")}, testkit.Pod("p").Req("cpu", "64", "memory", "1Gi"), "a node or node group with 64 cpu is added, or the request is lowered: the largest has 32"},
		"too large in two ways":          {[]nodegroup.Group{group("48")}, testkit.Pod("p").Req("cpu", "64", "memory", "1Ti"), "a node or node group with 64 cpu is added, or the request is lowered: the largest has 48; a node or node group with 1Ti memory is added, or the request is lowered: the largest has 16Gi"},
		"of the size of a group's nodes": {[]nodegroup.Group{group("64")}, testkit.Pod("p").Req("cpu", "64"), "pods on it are deleted"},
		"of the size of a full node":     {[]nodegroup.Group{group("2")}, testkit.Pod("p").Req("cpu", "32"), "pods on it are deleted"},
		"a group's nodes aren't known":   {[]nodegroup.Group{group("2"), unknown}, testkit.Pod("p").Req("cpu", "64"), "pods on it are deleted"},
		"only a taint keeps it away":     {nil, testkit.Pod("p").Req("cpu", "1"), "taints"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t, autoscaling(func(*core.Autoscale) {}))
			taint := func(n *testkit.NodeBuilder) *testkit.NodeBuilder { return n.Taint("only", "gpus", "NoSchedule") }
			full := testkit.Node("full").Alloc("cpu", "32", "memory", "16Gi", "pods", "10")
			if x.groups == nil {
				full = taint(full)
			}
			c.Step(time.Unix(1, 0), door.Must(
				step.NodeSet{Node: full.Obj()},
				step.NodeSet{Node: taint(testkit.Node("tainted").Alloc("cpu", "2", "memory", "8Gi", "pods", "10")).Obj()},
				step.PodSet{Pod: testkit.Pod("there").Req("cpu", "20").On("full").Obj()},
				step.GroupsSet{Groups: x.groups},
				step.PodSet{Pod: x.pod.Obj()})...)
			e, _ := c.View().Explain("default", "p")
			var got []string
			for _, w := range e.WaitsFor {
				got = append(got, w.Change)
			}
			text := strings.Join(got, "; ")
			if large := strings.Contains(x.want, added); large && (text != x.want || e.Relax != nil) || !large && (!strings.Contains(text, x.want) || strings.Contains(text, added)) {
				t.Errorf("it is tried again when %q, and without %v; want %q", text, e.Relax, x.want)
			}
		})
	}
}
