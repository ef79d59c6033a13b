package nodecomparison_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/nodecomparison"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// fixture is a machine with a state, the pods that wait, and the candidates as a script has them.
type fixture struct {
	t       *testing.T
	machine *nodecomparison.Machine
	turn    *lifecycle.Turn
	waiting []string
	since   candidatesSince
	groups  []nodegroup.Group
}

// candidatesSince are the nodes that the script calls unneeded, with the time.
type candidatesSince map[string]time.Time

func (c candidatesSince) Since(node string) time.Time { return c[node] }

// TestScripts runs testdata/*.txt. A script's output is the verdicts that a command has brought, a
// line each, and after show what the report says. The patience is 15 minutes, and a plan is made
// and committed at once. The commands:
//
//	group NAME target=N [cents=0]     the provider tells of its groups: this one, and the others as before
//	group-gone NAME                   the provider doesn't list it any more
//	node NAME [group=g] [going]       the API shows a node; going: marked by ToBeDeletedTaint
//	node-gone NAME
//	waiting [pods=(a,b)]              these pods wait for a node from now on, and no others
//	unneeded NAME | needed NAME       the node is a candidate since now, or isn't one any more
//	plan [asked=AGO] [buy=(g:a+b,g:c)] [minimum=(g:2)] [coming=(g,g)] [due=(n1,n2)] [kept=(n3:REASON)]
//	                                  buy: a node of g for a and b, and one for c; coming: nodes that waiting pods were put on
//	tick DURATION                     time passes
//	show                              the report
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &fixture{t: t, since: candidatesSince{}}
		s.turn = &lifecycle.Turn{Now: time.Unix(36000, 0), State: cluster.New(cluster.NewSchema())}
		s.machine = nodecomparison.New(15*time.Minute, s.since)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.turn.Ready = &step.Ready{}
			args := script.NewArgs(t, d)
			answer := s.run(d.Cmd, args)
			args.Done()
			s.machine.Advance(s.turn)
			for _, broken := range s.machine.Invariants() {
				d.Fatalf(t, "broken invariant: %s", broken)
			}
			if next := s.machine.NextWake(); !next.IsZero() && !next.After(s.turn.Now) {
				d.Fatalf(t, "the machine wants to be woken at %s, which is over", next)
			}
			return s.verdicts() + answer
		})
	})
}

// verdicts writes what the last command has brought.
func (s *fixture) verdicts() string {
	var out strings.Builder
	for i := range s.turn.Ready.NodeComparisons {
		c := &s.turn.Ready.NodeComparisons[i]
		fmt.Fprintf(&out, "%s: %d of %s", c.Verdict, c.Nodes, c.Group)
		if c.Node != "" {
			fmt.Fprintf(&out, " (%s)", c.Node)
		}
		if len(c.Pods) > 0 {
			fmt.Fprintf(&out, " for %s", strings.Join(c.Pods, ", "))
		}
		if c.Price > 0 {
			fmt.Fprintf(&out, ", %.2f an hour", c.Price)
		}
		if c.Ahead > 0 {
			fmt.Fprintf(&out, ", Berth was %s sooner", c.Ahead)
		}
		if c.Reason != "" {
			fmt.Fprintf(&out, ": %s", c.Reason)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (s *fixture) run(cmd string, args *script.Args) string {
	switch cmd {
	case "group":
		s.group(args)
	case "group-gone":
		name := args.Name()
		s.groups = slices.DeleteFunc(s.groups, func(x nodegroup.Group) bool { return x.ID == name })
		s.turn.State.SetGroup(name, nil)
		s.machine.GroupsSet(s.turn, step.GroupsSet{Groups: s.groups})
	case "node":
		n := testkit.Node(args.Name()).Alloc("cpu", "4")
		if args.Flag("going") {
			n.Taint(autoscaler.ToBeDeletedTaint, "", v1.TaintEffectNoSchedule)
		}
		info := s.turn.State.Schema.ParseNode(n.Obj(), args.String("group", "g"))
		s.turn.State.SetNode(info)
		s.machine.NodeSet(s.turn, info)
	case "node-gone":
		s.turn.State.RemoveNode(args.Name())
		s.machine.NodeGone(s.turn, args.Name())
	case "waiting":
		s.waiting = args.List("pods")
	case "unneeded":
		s.since[args.Name()] = s.turn.Now
	case "needed":
		delete(s.since, args.Name())
	case "plan":
		s.plan(args)
	case "tick":
		d, err := time.ParseDuration(args.Name())
		if err != nil {
			args.Fail("%v", err)
		}
		s.turn.Now = s.turn.Now.Add(d)
	case "show":
		return s.show()
	default:
		args.Fail("unknown command")
	}
	return ""
}

func (s *fixture) group(args *script.Args) {
	g := nodegroup.Group{ID: args.Name(), Max: 100, Target: args.Int("target", 0), Price: float64(args.Int("cents", 0)) / 100}
	s.groups = append(slices.DeleteFunc(s.groups, func(x nodegroup.Group) bool { return x.ID == g.ID }), g)
	s.turn.State.SetGroup(g.ID, &cluster.NodeGroup{ID: g.ID, Max: g.Max, Target: g.Target, Price: g.Price})
	s.machine.GroupsSet(s.turn, step.GroupsSet{Groups: s.groups})
}

func (s *fixture) plan(args *script.Args) {
	plan := &autoscaler.Plan{Now: s.turn.Now.Add(-args.Duration("asked", 0))}
	for _, x := range args.List("buy") {
		group, pods, _ := strings.Cut(x, ":")
		var bin []types.UID
		for uid := range strings.SplitSeq(pods, "+") {
			bin = append(bin, types.UID(uid))
		}
		plan.ScaleUps = append(plan.ScaleUps, autoscaler.ScaleUp{Group: group, Nodes: 1, Pods: bin, Bins: [][]types.UID{bin}})
	}
	for _, x := range args.List("minimum") {
		group, nodes, _ := strings.Cut(x, ":")
		up := autoscaler.ScaleUp{Group: group}
		if _, err := fmt.Sscan(nodes, &up.Nodes); err != nil {
			args.Fail("minimum: %v", err)
		}
		plan.ScaleUps = append(plan.ScaleUps, up)
	}
	for _, group := range args.List("coming") {
		plan.Joins = append(plan.Joins, autoscaler.Join{Group: group})
	}
	var due []candidates.Due
	for _, name := range args.List("due") {
		r := &autoscaler.Removal{Node: name}
		plan.Removals = append(plan.Removals, r)
		due = append(due, candidates.Due{Removal: r, Why: "it has been empty", For: 10 * time.Minute})
	}
	for _, x := range args.List("kept") {
		name, why, _ := strings.Cut(x, ":")
		plan.Kept = append(plan.Kept, autoscaler.Kept{Node: name, Reason: autoscaler.KeptReason(why)})
	}
	s.machine.CommitPlan(s.turn, plan, due, func(uid types.UID) bool { return slices.Contains(s.waiting, string(uid)) },
		func(uid types.UID) string { return string(uid) })
}

func (s *fixture) show() string {
	r := s.machine.Report(s.turn.Now)
	var out strings.Builder
	for _, v := range step.NodeVerdicts {
		if n := r.Verdicts[v]; n != 0 {
			fmt.Fprintf(&out, "%s %d\n", v, n)
		}
	}
	fmt.Fprintf(&out, "open: %d to buy, %d to remove\n", r.Buying, r.Removing)
	if r.Early+r.Again > 0 {
		fmt.Fprintf(&out, "%d removed early, %d needed again\n", r.Early, r.Again)
	}
	fmt.Fprintf(&out, "the cluster: %.2f node hours for %.2f; Berth's: %.2f for %.2f\n", r.Cluster.Hours, r.Cluster.Cost, r.Berth.Hours, r.Berth.Cost)
	fmt.Fprintf(&out, "%d groups are remembered\n", s.machine.Groups())
	for i := range r.Differences {
		d := &r.Differences[i]
		fmt.Fprintf(&out, "difference: %s, %d of %s %s\n", d.Verdict, d.Nodes, d.Group, d.Node)
	}
	return out.String()
}
