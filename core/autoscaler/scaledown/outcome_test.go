package scaledown_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// aging changes something of which what is said of nodes changes with the time, or what a request asks for.
func (h *history) aging() {
	t, now := h.t, h.req.ServerNow
	name := h.Nodes[testkit.Uniform(t, len(h.Nodes), "which")]
	ago := time.Duration(testkit.Uniform(t, 90, "ago")) * time.Second
	switch kind := testkit.Uniform(t, 6, "aging"); kind {
	case 0: // a node that is starting
		n := testkit.Node(name).Alloc("cpu", "8", "memory", "16Gi", "pods", "12").Obj()
		n.CreationTimestamp = metav1.NewTime(now.Add(-ago))
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
		h.log = append(h.log, fmt.Sprintf("%s has been starting for %s", name, ago))
		h.State.SetNode(h.State.Schema.ParseNode(n, h.Group))
	case 1, 2: // a pod that is terminating, or of kube-system
		p := testkit.Pod(fmt.Sprintf("aging%d", len(h.log))).Owner("apps/v1", "ReplicaSet", "web").Req("cpu", "500m").With(func(p *v1.Pod) {
			if kind == 1 {
				p.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)}
			} else {
				p.Namespace, p.CreationTimestamp = "kube-system", metav1.NewTime(now.Add(-ago))
			}
		}).Obj()
		h.log = append(h.log, fmt.Sprintf("place %s/%s on %s: %s old", p.Namespace, p.Name, name, ago))
		h.State.Place(h.State.Schema.ParsePod(p), name)
	case 3:
		h.req.ScaleDown.Leaving = map[string]int{"g": testkit.Uniform(t, 3, "leaving")}
		h.log = append(h.log, fmt.Sprintf("%v are leaving", h.req.ScaleDown.Leaving))
	case 4:
		h.req.ScaleDown.Rules.KeepUnready = !h.req.ScaleDown.Rules.KeepUnready
		h.log = append(h.log, "another rule")
	case 5:
		g := *h.State.Group("g")
		g.Options = &cluster.GroupOptions{}
		if testkit.Uniform(t, 2, "threshold") == 0 {
			limit := []float64{0.1, 0.5, 2}[testkit.Uniform(t, 3, "limit")]
			g.Options.UtilizationThreshold = &limit
		}
		if testkit.Uniform(t, 2, "startup") == 0 {
			g.Options.StartupTime = &metav1.Duration{Duration: time.Duration(1+testkit.Uniform(t, 3, "startup time")) * 30 * time.Second}
		}
		g.Target += testkit.Uniform(t, 2, "target")
		h.log = append(h.log, "the group is another")
		h.State.SetGroup("g", &g)
	}
}

// TestPropertyOutcomesAreThoseFromNothing makes passes over clusters with random histories and
// quiet times. A simulator that keeps what Check says and comes to the outcome of the last pass when
// nothing can have changed plans what one does that looks at every node in every pass, to the
// last byte. A quarter of the passes come to the outcome of the last, also in clusters with devices; but
// where candidates are entangled, these are found anew in each pass.
func TestPropertyOutcomesAreThoseFromNothing(t *testing.T) {
	var without, with quietPasses
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		h.req.ScaleDown.Rules.RecheckAfter = time.Duration(testkit.Uniform(t, 3, "recheck")) * 40 * time.Second
		h.req.ScaleDown.Rules.SystemPodTimeout = time.Minute
		h.req.Readiness.StartupTime = time.Minute
		slow := testkit.Must(scaledown.New(h.State, []*framework.Profile{plugins.Default(h.State.Schema, plugins.Options{})}, engine.Options{Seed: 7, Rebuilt: true}))
		for range rapid.IntRange(1, 25).Draw(t, "passes") {
			var fitting []autoscaler.Fitting
			switch testkit.Uniform(t, 8, "what happens") {
			case 0:
				h.change()
			case 1:
				h.aging()
			case 2:
				h.log = append(h.log, "a pod fits")
				fitting = []autoscaler.Fitting{{Pod: h.pending("fits"), Node: h.Nodes[0]}}
			default:
				h.req.ScaleDown.Displaced, h.req.ScaleDown.Replacing = nil, nil
			}
			entangled := h.sim.Entangled()
			h.req.Now = h.req.Now.Add(10 * time.Second)
			h.req.ServerNow = h.req.Now
			h.log = append(h.log, fmt.Sprint("a pass at ", h.req.Now.Unix()))
			want, got := autoscaler.NewPlan(h.req, 0), autoscaler.NewPlan(h.req, 0)
			want.Fitting, got.Fitting = fitting, fitting
			slow.Plan(h.req, &autoscaler.Questions{}, want)
			h.sim.Plan(h.req, &autoscaler.Questions{}, got)
			if testkit.Uniform(t, 2, "forget") == 0 {
				h.sim.Forget(h.req.Now)
			}
			if got, want := planText(got), planText(want); got != want {
				h.fail("repeated: %t; the plan is\n%s\nfrom nothing\n%s", h.sim.Repeated(), got, want)
			}
			for _, broken := range h.sim.Broken() {
				h.fail("%s", broken)
			}
			switch {
			case entangled && h.sim.Repeated():
				h.fail("a pass came to the outcome of the last, which left entangled candidates")
			case entangled:
			case h.devices:
				with.count(h.sim.Repeated())
			default:
				without.count(h.sim.Repeated())
			}
		}
	})
	without.check(t, 500, "without devices")
	with.check(t, 200, "with devices")
}

// quietPasses counts passes, and those that came to the outcome of the last without looking at a node.
type quietPasses struct{ all, repeated int }

func (q *quietPasses) count(repeated bool) {
	if q.all++; repeated {
		q.repeated++
	}
}

// check fails if less than a quarter of the passes came to the outcome of the last, by more than chance explains
// (three standard deviations: what is expected is 27 %), with so many quiet ones. Below least, as in the few worlds
// of make check, that may happen.
func (q *quietPasses) check(t *testing.T, least int, where string) {
	t.Helper()
	t.Logf("%d of %d passes over clusters %s came to the outcome of the last", q.repeated, q.all, where)
	chance := 3 * math.Sqrt(float64(q.all)*3/16)
	if q.all >= least && float64(q.repeated) < float64(q.all)/4-chance {
		t.Errorf("%d of %d passes over clusters %s came to the outcome of the last without looking; a quarter has to", q.repeated, q.all, where)
	}
}

// TestAStuckNodesUtilizationIsOfItsLastSimulation has a node whose pod b has nowhere to go, and a
// pod d there that counts as gone after the first pass. That pass makes n1 a candidate, and so the
// next one looks at all nodes again. When it is time to simulate the stuck node once more, d no
// longer counts, although nothing has changed in the cluster since.
func TestAStuckNodesUtilizationIsOfItsLastSimulation(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: 3, Max: 3, Template: s.Schema.ParseNode(testkit.PartFullNode("t").Obj(), "g")})
	s.SetWorkload(cluster.WorkloadOf(testkit.ReplicaSet("r", "app", "r")))
	for name, cpu := range map[string]string{"n1": "4", "n2": "4", "stuck": "8"} {
		s.SetNode(s.Schema.ParseNode(testkit.Node(name).Alloc("cpu", cpu, "memory", "8Gi", "pods", "10").Obj(), "g"))
	}
	pod := func(name, cpu string) *testkit.PodBuilder {
		return testkit.Pod(name).Owner("apps/v1", "ReplicaSet", "r").Label("app", "r").Req("cpu", cpu)
	}
	s.Place(s.Schema.ParsePod(pod("a", "1").Obj()), "n1")
	s.Place(s.Schema.ParsePod(pod("c", "2500m").Obj()), "n2")
	s.Place(s.Schema.ParsePod(pod("b", "3500m").Obj()), "stuck")
	sim, req := newSimulator(t, s)
	req.ScaleDown.Rules.RecheckAfter = 30 * time.Second
	start := time.Unix(100000, 0)
	s.Place(s.Schema.ParsePod(pod("d", "300m").With(func(p *v1.Pod) { // gone 5 s after the first pass
		p.DeletionTimestamp = &metav1.Time{Time: start.Add(-55 * time.Second)}
	}).Obj()), "stuck")
	utilization := func(at time.Duration) float64 {
		req.Now, req.ServerNow = start.Add(at), start.Add(at)
		for _, k := range pass(sim, req).Kept {
			if k.Node == "stuck" && k.Reason == autoscaler.KeptNoPlace {
				return k.Utilization
			}
		}
		t.Fatalf("after %s the node isn't stuck", at)
		return 0
	}
	if got, want := utilization(0), 3.8/8; got != want {
		t.Errorf("in the first pass its utilization is %g, want %g", got, want)
	}
	for at := 10 * time.Second; at < 30*time.Second; at += 10 * time.Second {
		utilization(at)
	}
	if got, want := utilization(30*time.Second), 3.5/8; got != want {
		t.Errorf("when it is simulated again its utilization is %g, want %g", got, want)
	}
}

// planText writes what a plan says about nodes.
func planText(p *autoscaler.Plan) (out string) {
	for _, r := range p.Removals {
		out += fmt.Sprintf("%+v\n", *r)
	}
	for i := range p.Kept {
		out += fmt.Sprintf("%+v\n", p.Kept[i])
	}
	return out
}
