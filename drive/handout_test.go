package drive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// logged are workers that write down what they are given, and keep what reports
// the outcome of each piece of work.
type logged struct {
	calls    []string
	outcomes []func()
}

var (
	errRefused  = errors.New("refused")
	errBudget   = fmt.Errorf("%w: 0 allowed", step.ErrRefused)
	errStockOut = &nodegroup.Error{Class: nodegroup.OutOfResources, Message: "no more"}
)

func (l *logged) log(report func(), format string, args ...any) {
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
	if report != nil {
		l.outcomes = append(l.outcomes, report)
	}
}

func (l *logged) Consult(x step.Consult, answer func(step.Consulted)) {
	l.log(func() { answer(step.Consulted{Nodes: []string{"n"}}) }, "consult %s", x.UID)
}
func (l *logged) Bind(x step.Bind, done func(error)) {
	l.log(func() { done(errRefused) }, "bind %s", x.UID)
}
func (l *logged) Cancel(x step.Cancel) { l.log(nil, "cancel %s", x.UID) }
func (l *logged) Deallocate(x step.Deallocation, done func(error)) {
	l.log(func() { done(errRefused) }, "deallocate %s", x.UID)
}
func (l *logged) Preempt(x step.Preemption, done func(error)) {
	l.log(func() { done(nil) }, "preempt %s", x.UID)
}
func (l *logged) Nominate(x step.Nomination, done func(error)) {
	l.log(func() { done(errRefused) }, "nominate %s", x.UID)
}
func (l *logged) WriteStatus(x step.StatusWrite, done func(error)) {
	l.log(func() { done(errRefused) }, "write the status of %s", x.UID)
}
func (l *logged) Condition(x step.Condition) { l.log(nil, "condition %s", x.UID) }
func (l *logged) Event(x step.Event)         { l.log(nil, "event %s", x.UID) }
func (l *logged) Taint(x step.Taint, done func(error)) {
	l.log(func() { done(nil) }, "taint %s", x.Node)
}
func (l *logged) Evict(x step.Eviction, done func(error)) {
	l.log(func() { done(map[types.UID]error{"e1": errRefused, "e2": errBudget}[x.UID]) }, "evict %s", x.UID)
}
func (l *logged) Surge(x step.Surge, done func(error)) {
	l.log(func() { done(map[types.UID]error{"s2": errRefused}[x.UID]) }, "surge %s", x.UID)
}
func (l *logged) ScaleUp(x step.ScaleUp, done func(error)) {
	l.log(func() { done(map[string]error{"g2": errStockOut}[x.Group]) }, "scale up %s", x.Group)
}
func (l *logged) DeleteNodes(list []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	var names []string
	for _, x := range list {
		names = append(names, x.Node+x.Instance)
	}
	l.log(func() { done(list[1], errRefused); done(list[0], nil) }, "delete %s", strings.Join(names, " and "))
}
func (l *logged) DecreaseTarget(x step.TargetDecrease) { l.log(nil, "decrease %s", x.Group) }
func (l *logged) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	l.log(func() { done(compute()) }, "plan")
}

// newLogged returns a driver with such workers, and the inputs that come back.
func newLogged(t *testing.T, workers Workers) (*Driver, *[]step.Input) {
	t.Helper()
	schema := cluster.NewSchema()
	in := &[]step.Input{}
	cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
	scale := core.DefaultAutoscale()
	cfg.Autoscale = &scale
	d, err := New(Config{
		Schema:  schema,
		Core:    cfg,
		Workers: workers, Inbox: func(x step.Input) { *in = append(*in, x) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, in
}

// TestEveryWorkIsHandedOutOnceInTheStatedOrder takes a Ready apart that has two of
// everything.
func TestEveryWorkIsHandedOutOnceInTheStatedOrder(t *testing.T) {
	l := &logged{}
	d, in := newLogged(t, l)
	err := d.handOut(&step.Ready{
		Plan:            &autoscaler.Request{Now: time.Unix(7, 0)},
		TargetDecreases: []step.TargetDecrease{{Group: "g1", Nodes: 1}, {Group: "g2", Nodes: 2}},
		NodeDeletions:   []step.NodeDeletion{{Group: "g1", Node: "n1", Instance: "i1"}, {Group: "g1", Instance: "i2"}},
		ScaleUps:        []step.ScaleUp{{Group: "g1", Nodes: 1}, {Group: "g2", Nodes: 2}},
		Evictions:       []step.Eviction{{UID: "e1", Node: "n1"}, {UID: "e2", Node: "n2"}},
		Surges:          []step.Surge{{UID: "s1", Node: "n1"}, {UID: "s2", Node: "n2"}},
		Taints:          []step.Taint{{Node: "n1", Taint: v1.Taint{Key: "k"}}, {Node: "n2", Remove: true}},
		Events:          []step.Event{{UID: "v1"}, {UID: "v2"}},
		Conditions:      []step.Condition{{UID: "c1"}, {UID: "c2"}},
		Nominations:     []step.Nomination{{UID: "o1", Node: "n1"}, {UID: "o2"}},
		StatusWrites:    []step.StatusWrite{{UID: "s1"}, {UID: "s2"}},
		Deallocations:   []step.Deallocation{{UID: "d1"}, {UID: "d2"}},
		Preemptions:     []step.Preemption{{UID: "p1", By: "q1"}, {UID: "p2", By: "q2"}},
		Cancels:         []step.Cancel{{UID: "x1"}, {UID: "b2"}},
		Binds:           []step.Bind{{UID: "b1", Node: "n1"}, {UID: "b2", Node: "n2"}},
		Consults:        []step.Consult{{UID: "a1"}, {UID: "a2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantCalls := []string{
		"consult a1", "consult a2", "bind b1", "bind b2", "cancel x1", "cancel b2", "deallocate d1", "deallocate d2", "nominate o1", "nominate o2",
		"preempt p1", "preempt p2", "write the status of s1", "write the status of s2", "condition c1", "condition c2", "event v1", "event v2",
		"taint n1", "taint n2", "surge s1", "surge s2", "evict e1", "evict e2", "scale up g1", "scale up g2", "delete n1i1 and i2", "decrease g1", "decrease g2", "plan",
	}
	if !slices.Equal(l.calls, wantCalls) {
		t.Errorf("handed out\n%s\nwant\n%s", strings.Join(l.calls, "\n"), strings.Join(wantCalls, "\n"))
	}
	if len(*in) > 0 {
		t.Errorf("before any outcome was reported the inbox has %v", *in)
	}
	for _, report := range l.outcomes {
		report()
	}
	want := []step.Input{
		step.Consulted{UID: "a1", Nodes: []string{"n"}}, step.Consulted{UID: "a2", Nodes: []string{"n"}},
		step.BindDone{UID: "b1", Err: errRefused}, step.BindDone{UID: "b2", Err: errRefused},
		step.DeallocationDone{UID: "d1", Err: errRefused}, step.DeallocationDone{UID: "d2", Err: errRefused},
		step.NominationDone{UID: "o1", Node: "n1", Err: errRefused}, step.NominationDone{UID: "o2", Err: errRefused},
		step.PreemptionDone{UID: "p1", By: "q1"}, step.PreemptionDone{UID: "p2", By: "q2"},
		step.StatusWritten{UID: "s1", Err: errRefused}, step.StatusWritten{UID: "s2", Err: errRefused},
		step.TaintDone{Node: "n1", Key: "k"}, step.TaintDone{Node: "n2", Remove: true},
		step.SurgeDone{UID: "s1", Node: "n1"}, step.SurgeDone{UID: "s2", Node: "n2", Err: errRefused},
		step.EvictionDone{UID: "e1", Node: "n1", Err: errRefused}, step.EvictionDone{UID: "e2", Node: "n2", Err: errBudget, Refused: true},
		step.ScaleUpDone{Group: "g1", Nodes: 1}, step.ScaleUpDone{Group: "g2", Nodes: 2, Err: errStockOut, Class: nodegroup.OutOfResources},
		step.NodeDeletionDone{Instance: "i2", Err: errRefused}, step.NodeDeletionDone{Node: "n1", Instance: "i1"},
	}
	for i := range max(len(*in)-1, len(want)) {
		if i >= len(want) || i >= len(*in) || fmt.Sprintf("%#v", (*in)[i]) != fmt.Sprintf("%#v", want[i]) {
			t.Fatalf("outcome %d: got %#v, want %#v", i, (*in)[i:], want[i:])
		}
	}
	if p, ok := (*in)[len(*in)-1].(step.PlanMade); !ok || !p.Plan.Now.Equal(time.Unix(7, 0)) {
		t.Errorf("the last outcome is %#v, want the plan that was asked for", (*in)[len(*in)-1])
	}
}

// TestNothingIsHandedOutOfAnEmptyReady shows that no call is made without work.
func TestNothingIsHandedOutOfAnEmptyReady(t *testing.T) {
	l := &logged{}
	d, _ := newLogged(t, l)
	if err := d.handOut(&step.Ready{}); err != nil || len(l.calls) > 0 {
		t.Errorf("got %v, %v", l.calls, err)
	}
}

// TestAPlannerThatCannotFollowAnswersWithoutActions forgets the part of the journal
// that the planner hasn't read.
func TestAPlannerThatCannotFollowAnswersWithoutActions(t *testing.T) {
	l := &logged{}
	d, in := newLogged(t, l)
	now := time.Unix(7, 0)
	d.Core().Take(now, door.Must(step.NodeSet{Node: testkit.Node("n").Obj()})...)
	state := d.Core().State()
	state.Trim(state.Head())
	err := d.handOut(&step.Ready{Binds: []step.Bind{{UID: "b"}}, Plan: &autoscaler.Request{Now: now}})
	if !errors.Is(err, cluster.ErrBehind) {
		t.Errorf("got %v, want %v", err, cluster.ErrBehind)
	}
	if !slices.Equal(l.calls, []string{"bind b"}) {
		t.Errorf("handed out %v, want the bind and no plan", l.calls)
	}
	if len(*in) != 1 {
		t.Fatalf("got %v, want an empty plan", *in)
	}
	if p, ok := (*in)[0].(step.PlanMade); !ok || !p.Plan.Now.Equal(now) || len(p.Plan.ScaleUps)+len(p.Plan.Removals)+len(p.Plan.NoHelp) > 0 {
		t.Errorf("got %#v, want an empty plan of the request's time", (*in)[0])
	}
}
