package candidates_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// fixture is a machine with the state, and the API's nodes as they are, shown or not.
type fixture struct {
	t       *testing.T
	cfg     candidates.Config
	machine *candidates.Machine
	turn    *lifecycle.Turn
	api     map[string]*cluster.NodeInfo
	writes  map[string]step.Taint // that were asked for last, by node
	answer  string                // of a command that has one
	states  script.States
}

// TestScripts runs testdata/*.txt. A script's output is what the machine asked for, and what
// changed by the command: soft taints that aren't as they are to be, and when the machine wants
// to be woken. The commands:
//
//	config [unneeded=30s] [unready=1m] [keep-unready] [ttl=0s] [bulk=10] [bulk-time=3s] [no-soft-taints]
//	group NAME [unneeded=TIME] [unready=TIME]            the provider tells of it, perhaps with times of its own
//	node NAME [group=g] [unready] [soft=VALUE] [going]   the API shows a node; going: with the taint of removals
//	node-gone NAME
//	going NAME | stays NAME [evicted]                    its removal begins in the state; ends with the node staying, though pods were evicted
//	plan [empty=(n1,n2)] [drain=(n3)] [kept=(n4:REASON)] [sick=WHY]     drain: with two pods at 0.40
//	written NODE [fails]                                 the outcome of a write; the API isn't shown yet
//	restart                                              another process takes over, with the API's nodes
//	lead                                                 the same, of a process that stood by
//	tick DURATION                                        time passes
//	states                                               all soft taints that aren't as they are to be
//	show                                                 the nodes' soft taints in the state and in the API, and the candidates
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &fixture{t: t, api: map[string]*cluster.NodeInfo{}, writes: map[string]step.Taint{}}
		s.turn = &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema())}
		s.configure(script.NewArgs(t, &datadriven.TestData{}))
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.turn.Ready, s.answer = &step.Ready{}, ""
			args := script.NewArgs(t, d)
			s.run(d, args)
			args.Done()
			s.machine.Advance(s.turn)
			for _, broken := range append(s.machine.Invariants(), s.machine.InvariantsIn(s.turn.State)...) {
				d.Fatalf(t, "broken invariant: %s", broken)
			}
			return s.output()
		})
	})
}

func (s *fixture) configure(args *script.Args) {
	s.cfg = candidates.Config{
		UnneededTime: args.Duration("unneeded", 30*time.Second), UnreadyTime: args.Duration("unready", time.Minute), KeepUnready: args.Flag("keep-unready"),
		TTL: args.Duration("ttl", 0), MaxBulk: args.Int("bulk", 10), BulkTime: args.Duration("bulk-time", 3*time.Second), NoSoftTaints: args.Flag("no-soft-taints"),
	}
	s.machine = candidates.New(s.cfg)
}

func (s *fixture) run(d *datadriven.TestData, args *script.Args) {
	t := s.turn
	switch d.Cmd {
	case "config":
		s.configure(args)
	case "group":
		s.group(args)
	case "node":
		n := s.node(args)
		s.api[n.Name] = n
		for _, p := range candidates.Problems(n) {
			s.answer += p.String() + "\n"
		}
		t.State.SetNode(s.machine.NodeSet(n, n))
	case "node-gone":
		name := args.Name()
		delete(s.api, name)
		t.State.RemoveNode(name)
		s.machine.NodeGone(name)
	case "going":
		t.State.SetNode(t.State.NodeByName(args.Name()).WithTaint(v1.Taint{Key: autoscaler.ToBeDeletedTaint, Effect: v1.TaintEffectNoSchedule}))
	case "stays":
		s.machine.Forget(args.Name())
		if args.Flag("evicted") {
			s.machine.DrainedInVain(args.Name(), t.Now)
		}
		t.State.SetNode(t.State.NodeByName(args.Name()).WithoutTaint(autoscaler.ToBeDeletedTaint))
	case "plan":
		for _, due := range s.machine.CommitPlan(t, s.plan(args)) {
			s.answer += fmt.Sprintf("due %s: %s for %s\n", due.Node, due.Why, due.For)
		}
	case "written":
		s.written(args)
	case "restart":
		s.restart()
	case "lead":
		t.State = cluster.New(t.State.Schema)
		s.eachNode(func(n *cluster.NodeInfo) { t.State.SetNode(n) })
		s.machine.BecomeLeader()
		s.eachNode(s.machine.Resume)
	case "tick":
		wait, err := time.ParseDuration(args.Name())
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		t.Now = t.Now.Add(wait)
	case "states":
		s.states.ShowAll()
	case "show":
		s.show()
	default:
		d.Fatalf(s.t, "unknown command %q", d.Cmd)
	}
}

func (s *fixture) group(args *script.Args) {
	g := &cluster.NodeGroup{ID: args.Name(), Max: 10, Options: &cluster.GroupOptions{}}
	for key, option := range map[string]**metav1.Duration{"unneeded": &g.Options.UnneededTime, "unready": &g.Options.UnreadyTime} {
		if d := args.Duration(key, -1); d >= 0 {
			*option = &metav1.Duration{Duration: d}
		}
	}
	s.turn.State.SetGroup(g.ID, g)
}

func (s *fixture) node(args *script.Args) *cluster.NodeInfo {
	b := testkit.Node(args.Name())
	if args.Flag("unready") {
		b.Status.Conditions[0].Status = v1.ConditionFalse
	}
	if value := args.String("soft", ""); value != "" {
		b.Taint(autoscaler.DeletionCandidateTaint, value, v1.TaintEffectPreferNoSchedule)
	}
	if args.Flag("going") {
		b.Taint(autoscaler.ToBeDeletedTaint, "", v1.TaintEffectNoSchedule)
	}
	return s.turn.State.Schema.ParseNode(b.Obj(), args.String("group", ""))
}

func (s *fixture) plan(args *script.Args) *autoscaler.Plan {
	p := &autoscaler.Plan{Now: s.turn.Now, Sick: args.String("sick", "")}
	for _, name := range args.List("empty") {
		p.Removals = append(p.Removals, &autoscaler.Removal{Node: name})
	}
	for _, name := range args.List("drain") {
		p.Removals = append(p.Removals, &autoscaler.Removal{Node: name, Utilization: 0.4,
			Homes: []autoscaler.Home{{Pod: types.UID("p"), Node: "x"}, {Pod: types.UID("q"), Node: "x"}}})
	}
	for _, kept := range args.List("kept") {
		node, reason, _ := strings.Cut(kept, ":")
		p.Kept = append(p.Kept, autoscaler.Kept{Node: node, Reason: autoscaler.KeptReason(reason), Pod: "default/p", Detail: "as it is"})
	}
	slices.SortFunc(p.Kept, func(a, b autoscaler.Kept) int { return strings.Compare(a.Node, b.Node) })
	return p
}

// written has the API take a write, or not, and tells of the outcome.
func (s *fixture) written(args *script.Args) {
	in := step.TaintDone{Node: args.Name(), Key: autoscaler.DeletionCandidateTaint}
	if args.Flag("fails") {
		in.Err = errors.New("refused")
	} else if n := s.api[in.Node]; n != nil {
		s.api[in.Node] = n.WithoutTaint(in.Key)
		if write := s.writes[in.Node]; !write.Remove {
			s.api[in.Node] = n.WithTaint(write.Taint)
		}
	}
	s.machine.TaintDone(s.turn, in)
}

// restart ends the process, and begins another.
func (s *fixture) restart() {
	groups := s.turn.State.Groups()
	s.turn.State, s.machine = cluster.New(s.turn.State.Schema), candidates.New(s.cfg)
	for _, g := range groups {
		s.turn.State.SetGroup(g.ID, g)
	}
	s.eachNode(func(n *cluster.NodeInfo) { s.turn.State.SetNode(s.machine.NodeSet(n, n)) })
}

// eachNode calls f with each node that the API has, by name.
func (s *fixture) eachNode(f func(*cluster.NodeInfo)) {
	for _, name := range slices.Sorted(maps.Keys(s.api)) {
		f(s.api[name])
	}
}

func (s *fixture) show() {
	soft := func(n *cluster.NodeInfo) string {
		for _, t := range n.Object.Spec.Taints {
			if t.Key == autoscaler.DeletionCandidateTaint {
				return t.Value + ":" + string(t.Effect)
			}
		}
		return "none"
	}
	s.turn.State.Nodes(func(n *cluster.Node) {
		s.answer += fmt.Sprintf("%s: %s in the state, %s in the API", n.Name, soft(n.NodeInfo), soft(s.api[n.Name]))
		if since := s.machine.Since(n.Name); !since.IsZero() {
			s.answer += fmt.Sprintf(", candidate for %s", s.turn.Now.Sub(since))
		}
		s.answer += "\n"
	})
	s.answer += fmt.Sprintf("%d candidates\n", s.machine.Count())
}

func (s *fixture) output() string {
	var out strings.Builder
	r := s.turn.Ready
	for i := range r.Decisions {
		fmt.Fprintln(&out, r.Decisions[i].String())
	}
	for _, x := range r.Taints {
		s.writes[x.Node] = x
		verb := "taint"
		if x.Remove {
			verb = "untaint"
		}
		fmt.Fprintf(&out, "%s %s %s=%s:%s\n", verb, x.Node, x.Taint.Key, x.Taint.Value, x.Taint.Effect)
	}
	out.WriteString(s.answer)
	out.WriteString(s.states.Text(s.machine.Unsettled(), s.turn.Now, s.machine.NextWake()))
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}
