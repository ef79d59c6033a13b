package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// autoscaling returns the configuration of a core that scales, too.
func autoscaling(change func(*core.Autoscale)) core.Config {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	change(&a)
	cfg.Autoscale = &a
	return cfg
}

// newCore returns a core with the default profile.
func newCore(t testing.TB, cfg core.Config) *core.Core {
	t.Helper()
	schema := cluster.NewSchema()
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	c, err := core.New(schema, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handPlanned is a core that is handed plans which the test fills.
type handPlanned struct {
	t *testing.T
	*core.Core
	now     time.Time
	request *autoscaler.Request // without an answer; nil for none
}

// newHandPlanned returns a core with a group "g" of nodes that cost 0.40 an hour, of which the
// nodes n1 to n4 exist, and n0, which is in no group.
func newHandPlanned(t *testing.T, change func(*core.Autoscale)) *handPlanned {
	t.Helper()
	p := &handPlanned{t: t, Core: newCore(t, autoscaling(change)), now: time.Unix(1000, 0)}
	in := []step.Input{step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Min: 1, Max: 9, Target: 4, Price: 0.4, Template: testkit.Node("g").Alloc("cpu", "4").Obj()}}}}
	for i := range 5 {
		n := step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "8Gi").Obj(), Group: "g"}
		if i == 0 {
			n.Group = ""
		}
		in = append(in, n)
	}
	p.step(0, in...)
	return p
}

func (p *handPlanned) step(after time.Duration, in ...step.Input) step.Ready {
	p.t.Helper()
	p.now = p.now.Add(after)
	r := p.Step(p.now, door.Must(in...)...)
	if r.Plan != nil {
		p.request = r.Plan
	}
	for _, broken := range p.Invariants() {
		p.t.Errorf("broken invariant: %s", broken)
	}
	return r
}

// plan answers the open request, which was made when the last was answered, after 10 seconds.
func (p *handPlanned) plan(change func(*autoscaler.Plan)) step.Ready {
	p.t.Helper()
	p.step(10 * time.Second)
	plan := autoscaler.NewPlan(p.request, 0)
	change(plan)
	return p.step(0, step.PlanMade{Plan: plan})
}

// ledger returns the decisions of a kind, a line each.
func ledger(r *step.Ready, kind step.DecisionKind) string {
	var b strings.Builder
	for i := range r.Decisions {
		if d := &r.Decisions[i]; d.Kind == kind {
			fmt.Fprintln(&b, d)
		}
	}
	return b.String()
}
