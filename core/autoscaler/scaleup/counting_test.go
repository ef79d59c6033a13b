package scaleup

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyCountingEqualsFirstFitPodByPod packs random pods of countable classes
// onto nodes of one group, by counting, and one by one: each pod on the first node of the
// state that every rule lets it on, otherwise on a new one. Both give every pod the same node.
func TestPropertyCountingEqualsFirstFitPodByPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, pending := randomPacking(t)
		m := b.models["g"]
		runs := merged(b.runs(pending))

		mark := b.State.Mark()
		k := b.pack(m, nil, runs)
		b.State.Rollback(mark)
		mark = b.State.Mark()
		b.apply(k)
		got := b.where(pending)
		b.State.Rollback(mark)

		mark = b.State.Mark()
		b.firstFit(m, runs)
		want := b.where(pending)
		b.State.Rollback(mark)
		if got != want {
			t.Errorf("by counting\n%sone by one\n%s", got, want)
		}
	})
}

// firstFit is the slow twin of counting.
func (b *builder) firstFit(m *model, runs []*run) {
	var nodes []cluster.NodeIndex
	for _, r := range largestFirst(m.group, runs) {
		e := b.Engine(r.pods[0])
		for _, pod := range r.pods {
			placed := false
			for _, i := range nodes {
				if e.Explain(e.Class(pod), i) == nil {
					e.PlaceOn(pod, i)
					placed = true
					break
				}
			}
			if placed || len(nodes) == m.group.Max {
				continue
			}
			mark := b.State.Mark()
			i := b.addNode(m, newNode(m.group, len(nodes)))
			if e.Explain(e.Class(pod), i) != nil {
				b.State.Rollback(mark)
				continue
			}
			b.State.Release(mark)
			e.PlaceOn(pod, i)
			nodes = append(nodes, i)
		}
	}
}

// where says on which node each pod is.
func (b *builder) where(pods []*cluster.Pod) string {
	var out string
	for _, pod := range pods {
		if n := b.State.NodeOf(pod.UID); n != nil {
			out += fmt.Sprintf("%s on %s\n", pod.Name(), n.Name)
		}
	}
	return out
}

// randomPacking returns a builder over a state with one group, and pods of a few shapes,
// some with host ports, some that keep off nodes with pods of a label, some with claims for devices, for
// a limited number of nodes. The pods of the group's DaemonSet may have that label.
func randomPacking(t *rapid.T) (b *builder, pending []*cluster.Pod) {
	pick := func(of ...string) string { return of[testkit.Uniform(t, len(of), "pick")] }
	schema := cluster.NewSchema()
	state := cluster.New(schema)
	sched, err := scheduler.New(state, []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	node := testkit.Node("g").Alloc("cpu", pick("4", "7"), "memory", pick("8Gi", "31Gi"), "pods", pick("3", "110"), "example.com/gpu", pick("0", "2"))
	state.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: testkit.Uniform(t, 12, "max"), Template: schema.ParseNode(node.Obj(), "g"), Devices: randomDevices(t, state)})
	daemon := testkit.Pod("agent").Label("app", pick("x", "z")).Req("cpu", pick("500m", "5")).Owner("apps/v1", "DaemonSet", "agent")
	w := &cluster.Workload{Kind: cluster.DaemonSet, Namespace: "default", Name: "agent", Template: schema.ParsePod(daemon.Obj())}
	now := time.Unix(10000, 0)
	req := &autoscaler.Request{Now: now, ServerNow: now, Readiness: autoscaler.Readiness{StartupTime: time.Minute, Parts: cluster.Devices}}
	b = &builder{Packer: &Packer{State: state, Engine: sched.Engine}, req: req, plan: &autoscaler.Plan{}, patience: &patience{}, coming: map[string]*Coming{"g": {}}, proposed: proposals{nodes: make([]int, 1)},
		daemons: []*cluster.Workload{w}, memory: &Memory{}}
	b.promises = newPromises(state, nil, &req.Readiness, now)
	b.models = b.newModels()
	for i := range 1 + testkit.Uniform(t, 5, "shapes") {
		shape := testkit.Pod("p").Req("cpu", pick("0", "300m", "1", "3", "9"), "memory", pick("100Mi", "3Gi"), "example.com/gpu", pick("0", "0", "1"))
		port := testkit.Uniform(t, 4, "port") == 0
		app, apart := pick("x", "y"), pick("", "", "x", "y")
		claimed := randomClaim(t)
		for k := range testkit.Uniform(t, 25, "pods") {
			obj := shape.DeepCopy()
			obj.Name, obj.UID = fmt.Sprintf("p%d-%d", i, k), ""
			pod := testkit.Pod(obj.Name)
			pod.Spec = obj.Spec
			if port {
				pod.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
			}
			pod.Labels = map[string]string{"app": app}
			if apart != "" {
				pod.Apart(v1.LabelHostname, "app", apart)
			}
			claimFor(state, pod, claimed)
			pending = append(pending, schema.ParsePod(pod.Obj()))
		}
	}
	return b, pending
}
