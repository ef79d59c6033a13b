package scaleup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// sizes are those of an adversary who may create pods, groups or DaemonSets as many as he
// likes.
type sizes struct {
	groups, classes, daemons int
	pod                      func(i int) *testkit.PodBuilder // of a class
}

// adversarial returns a packer and a request of some sizes: one pod of each class, and groups
// whose nodes have the label tenant=NUMBER.
func adversarial(t rapid.TB, x sizes) (*Packer, autoscaler.Request) {
	t.Helper()
	schema := cluster.NewSchema()
	state := cluster.New(schema)
	sched, err := scheduler.New(state, []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range x.groups {
		b := testkit.Node(fmt.Sprintf("g%04d", i)).Alloc("cpu", "16", "memory", "64Gi", "pods", "110")
		b.Labels["tenant"] = fmt.Sprint(i)
		state.SetGroup(b.Name, &cluster.NodeGroup{ID: b.Name, Max: 100, Price: 1 + float64(i%7), Template: schema.ParseNode(b.Obj(), b.Name)})
	}
	for i := range x.daemons {
		name := fmt.Sprint("agent", i)
		b := testkit.Pod(name).Req("cpu", "10m").Owner("apps/v1", "DaemonSet", name)
		state.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: "default", Name: name, Template: schema.ParsePod(b.Obj())})
	}
	now := time.Unix(10000, 0)
	req := autoscaler.Request{Number: 1, Now: now, ServerNow: now}
	for i := range x.classes {
		req.Pending = append(req.Pending, schema.ParsePod(x.pod(i).Obj()))
	}
	return &Packer{State: state, Engine: sched.Engine, Memory: &Memory{}, Questions: &autoscaler.Questions{}}, req
}

// refused returns a pod that no group takes, of a class of its own.
func refused(i int) *testkit.PodBuilder {
	return testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "1").Select("tenant", fmt.Sprint("none", i))
}

// tenant returns a pod that only a node of its own group takes.
func tenant(i int) *testkit.PodBuilder {
	return testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "1").Select("tenant", fmt.Sprint(i))
}

// apart returns a pod that no group takes, and that looks at other pods.
func apart(i int) *testkit.PodBuilder {
	return refused(i).Label("app", fmt.Sprint(i)).Apart(v1.LabelTopologyZone, "app", fmt.Sprint(i))
}

// TestWorkIsBounded walks over the sizes that grow a plan, and asserts how much it does: not as
// many nodes are added to the state as there are classes and groups together, each pair of a
// class and a group is asked about twice at most, and a group is packed again only for what has
// changed for it. The next plan asks nothing again of plain classes.
func TestWorkIsBounded(t *testing.T) {
	for _, x := range []struct {
		name   string
		pod    func(int) *testkit.PodBuilder
		bought int  // groups of which nodes are bought, in 1/100
		plain  bool // the next plan knows what it was told
	}{
		{"no group helps", refused, 0, true},
		{"no group helps, and the pods look at others", apart, 0, false},
		{"tenants", tenant, 100, true},
	} {
		for _, n := range []sizes{{1, 1, 0, nil}, {10, 10, 20, nil}, {50, 50, 5, nil}, {10, 1000, 5, nil}, {100, 300, 1, nil}} {
			n.pod = x.pod
			t.Run(fmt.Sprintf("%s, %d groups, %d classes, %d DaemonSets", x.name, n.groups, n.classes, n.daemons), func(t *testing.T) {
				p, req := adversarial(t, n)
				p.Plan(req, autoscaler.NewPlan(&req, 0))
				blocks := (n.classes + 255) / 256
				most := Work{Nodes: n.groups * (1 + blocks), Asked: 2 * n.groups * n.classes,
					Packings: 2*n.groups + n.groups*x.bought/100, Tried: 4 * n.groups * n.classes}
				if w := p.Work(); w.Nodes > most.Nodes || w.Asked > most.Asked || w.Packings > most.Packings || w.Tried > most.Tried {
					t.Errorf("the plan did %+v, want no more than %+v", w, most)
				}
				asked := p.Work().Asked
				p.Memory.last = nil
				p.Plan(req, autoscaler.NewPlan(&req, 0))
				if again := p.Work().Asked - asked; x.plain && again > 0 {
					t.Errorf("the next plan asked about %d pairs of a class and a group again", again)
				}
			})
		}
	}
}

// TestARememberedPlanAsksAsOften: a plan that is recalled from memory counts the questions that
// the stopwatch was asked when it was made, so that the questions after it have the numbers that a
// recording has of them.
func TestARememberedPlanAsksAsOften(t *testing.T) {
	p, req := adversarial(t, sizes{20, 1000, 5, refused})
	var asked [2]int
	for i := range asked {
		p.Questions = &autoscaler.Questions{Watch: &autoscaler.Cuts{}}
		p.Plan(req, autoscaler.NewPlan(&req, 0))
		asked[i] = p.Questions.Asked()
	}
	if asked[0] == 0 || asked[1] != asked[0] {
		t.Errorf("the plan asked the stopwatch %d times, and the same plan again %d times, want as often", asked[0], asked[1])
	}
}

// impatient is a stopwatch for which each span has taken long enough.
type impatient struct{}

func (impatient) Start(autoscaler.Span) {}

func (impatient) Over(autoscaler.Span) bool { return true }

// byWork is a stopwatch that measures how many pairs of a class and a group a plan asks about.
type byWork struct {
	*Packer
	begun, most int
}

func (w *byWork) Start(autoscaler.Span) {}

func (w *byWork) Over(autoscaler.Span) bool { return w.work.Asked-w.begun >= w.most }

// TestPlansThatAreCutShortComeToAnEnd has 2,000 classes that none of 200 groups takes, and time
// in each plan for a few of the groups. Each plan goes on where the one before it ended, and the
// last says why no group helps any of them.
func TestPlansThatAreCutShortComeToAnEnd(t *testing.T) {
	const groups, classes, most = 200, 2000, 20_000
	p, req := adversarial(t, sizes{groups, classes, 20, refused})
	for plans := 1; ; plans++ {
		begun := p.Work().Asked
		p.Questions = &autoscaler.Questions{Watch: &byWork{p, begun, most}}
		plan := autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		if asked := p.Work().Asked - begun; asked > most+maxVain+2*classes+explainedTogether*groups {
			t.Fatalf("plan %d asked about %d pairs of a class and a group", plans, asked)
		}
		if plan.Unplanned == 0 {
			if len(plan.NoHelp) != classes || p.Work().Asked > 2*groups*classes {
				t.Errorf("%d classes are explained, after %+v", len(plan.NoHelp), p.Work())
			}
			return
		}
		if plans > 2*groups*classes/most {
			t.Fatalf("after %d plans %d pods are left, and %+v", plans, plan.Unplanned, p.Work())
		}
	}
}

// TestEveryClassIsExplainedInItsTurn by plans that are cut short at once, of classes of which nothing
// is remembered, and of more than may be tried in vain.
func TestEveryClassIsExplainedInItsTurn(t *testing.T) {
	for name, x := range map[string]sizes{"few groups": {3, 1000, 0, apart}, "in vain": {200, 600, 0, apart}} {
		t.Run(name, func(t *testing.T) {
			p, req := adversarial(t, x)
			p.Questions.Watch = impatient{}
			said := map[types.UID]bool{}
			for req.Number = 1; req.Number <= 4; req.Number++ {
				plan := autoscaler.NewPlan(&req, 0)
				p.Plan(req, plan)
				for _, n := range plan.NoHelp {
					said[n.Pods[0]] = true
				}
			}
			if len(said) != x.classes {
				t.Errorf("four plans explain %d classes of %d", len(said), x.classes)
			}
		})
	}
}

// TestARoundInVainEndsWithTheStopwatch has no group help, when each question is answered with
// yes: the plan ends after what may be in vain and one group more, and explains some classes.
func TestARoundInVainEndsWithTheStopwatch(t *testing.T) {
	const groups, classes = 300, 500
	p, req := adversarial(t, sizes{groups, classes, 1, refused})
	p.Questions.Watch = impatient{}
	plan := autoscaler.NewPlan(&req, 0)
	p.Plan(req, plan)
	if most := maxVain + 2*classes; p.Work().Tried > most || plan.Unplanned != classes-explainedTogether {
		t.Errorf("%d pods are left to the next plan after %+v, want all but %d after no more than %d tries", plan.Unplanned, p.Work(), explainedTogether, most)
	}
	// A class of the last group is bought a node by the plan whose turn it is.
	for _, x := range []struct {
		number uint64
		ups    int
	}{{groups - 2, 0}, {groups - 1, 1}} {
		p, req := adversarial(t, sizes{groups, classes, 0, func(i int) *testkit.PodBuilder {
			if i == 0 {
				return tenant(groups - 1)
			}
			return refused(i)
		}})
		req.Number = x.number
		p.Questions.Watch = impatient{}
		plan := autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		if len(plan.ScaleUps) != x.ups {
			t.Errorf("the plan for request %d buys nodes of %d groups, want %d", x.number, len(plan.ScaleUps), x.ups)
		}
	}
}

// TestATargetThatLiesIsNoWork has a group whose target is far beyond its maximum: for one pod one
// of the coming nodes stands in the state. All of them count for the limits.
func TestATargetThatLiesIsNoWork(t *testing.T) {
	p, req := adversarial(t, sizes{1, 1, 0, tenant})
	g := *p.State.Groups()[0]
	g.Target = 1<<31 - 1
	p.State.SetGroup(g.ID, &g)
	req.Limits.MaxNodesTotal = 10
	req.Limits.Totals = []autoscaler.Total{{Resource: v1.ResourceMemory, Max: 1 << 40}}
	plan := autoscaler.NewPlan(&req, 0)
	p.Plan(req, plan)
	if p.Work().Nodes > 2 || plan.Covered != 1 || len(plan.ScaleUps) > 0 {
		t.Errorf("the plan covers %d pods and buys %d times, after %+v", plan.Covered, len(plan.ScaleUps), p.Work())
	}
	// A group that could grow may not, for the nodes that are coming.
	other := g
	other.ID, other.Target = "h", 0
	p.State.SetGroup(other.ID, &other)
	req.Pending = append(req.Pending, p.State.Schema.ParsePod(refused(1).Obj()))
	for limit, why := range map[int]string{10: MaxNodesTotal, 0: TotalReached(v1.ResourceMemory)} {
		req.Limits.MaxNodesTotal = limit
		plan = autoscaler.NewPlan(&req, 0)
		p.Plan(req, plan)
		if want := slices.Sorted(slices.Values([]string{"1 max node group size reached", "1 " + why})); len(plan.NoHelp) != 1 || !slices.Equal(plan.NoHelp[0].Reasons, want) {
			t.Errorf("no group helps: %v, want %q", plan.NoHelp, want)
		}
	}
}
