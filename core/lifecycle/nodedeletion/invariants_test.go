package nodedeletion

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestInvariantsFindWhatIsWrong plants a deletion of node n that no method makes, and has
// the checks look at it. What every method leaves behind is checked by the scripts.
func TestInvariantsFindWhatIsWrong(t *testing.T) {
	schema := cluster.NewSchema()
	node := func(name string, taints ...string) *cluster.NodeInfo {
		b := testkit.Node(name)
		for _, key := range taints {
			b.Taint(key, "", v1.TaintEffectNoSchedule)
		}
		return schema.ParseNode(b.Obj(), "g")
	}
	const is = "; it should be so that it is "
	tainted := node("n", autoscaler.ToBeDeletedTaint)
	for _, c := range []struct {
		name    string
		state   state
		taint   string
		cordon  bool
		inState *cluster.NodeInfo // nil for out of the state
		want    []string          // without what each begins with
	}{
		{"being tainted", tainting{}, autoscaler.ToBeDeletedTaint, false, tainted, nil},
		{"being deleted", deleting{called{node: tainted}}, autoscaler.ToBeDeletedTaint, false, nil, nil},
		{"deleted", deleted{}, autoscaler.ToBeDeletedTaint, false, nil, nil},
		{"being given back", untainting{}, autoscaler.ToBeDeletedTaint, false, node("n"), nil},
		{"with another's taint", tainting{}, "other", false, tainted, []string{`its taint is "other"`}},
		{"being deleted, without what it looked like", deleting{}, autoscaler.ToBeDeletedTaint, false, nil, []string{"what the node looked like is not known"}},
		{"in doubt, without what it looked like", inDoubt{}, autoscaler.ToBeDeletedTaint, false, nil, []string{"what the node looked like is not known"}},
		{"in doubt, with what another looked like", inDoubt{called{node: node("m")}}, autoscaler.ToBeDeletedTaint, false, nil, []string{"it remembers node m"}},
		{"deleted, and listed without having been shown", deleted{listed: true}, autoscaler.ToBeDeletedTaint, false, nil,
			[]string{"its instance was looked for though the node isn't shown"}},
		{"being tainted, and clean", tainting{}, autoscaler.ToBeDeletedTaint, false, node("n"), []string{"the node is in the state, clean" + is + "in the state, tainted"}},
		{"being tainted, and gone", tainting{}, autoscaler.ToBeDeletedTaint, false, nil, []string{"the node is out of the state" + is + "in the state, tainted"}},
		{"being deleted, and in the state", deleting{called{node: tainted}}, autoscaler.ToBeDeletedTaint, false, tainted,
			[]string{"the node is in the state, tainted" + is + "out of the state"}},
		{"being drained, and schedulable", delayed{}, autoscaler.ToBeDeletedTaint, true, tainted,
			[]string{"the node is in the state, tainted, and schedulable" + is + "in the state, tainted"}},
		{"given back, and tainted", untaintFailed{}, autoscaler.ToBeDeletedTaint, false, tainted,
			[]string{"the node is in the state, tainted" + is + "in the state, clean"}},
	} {
		m, s := New(Config{}), cluster.New(schema)
		m.enter("n", &deletion{group: "g", marking: marking{taint: v1.Taint{Key: c.taint}, cordon: c.cordon}, state: c.state})
		if c.inState != nil {
			s.SetNode(c.inState)
		}
		got := append(m.Invariants(), m.InvariantsIn(s)...)
		var want []string
		for _, what := range c.want {
			want = append(want, "deletion of node n ("+c.state.String()+"): "+what)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
}

func TestPlannedDeletionsAreCounted(t *testing.T) {
	m := New(Config{})
	d := &deletion{group: "g", marking: marking{taint: v1.Taint{Key: autoscaler.ToBeDeletedTaint}}, state: tainting{}}
	m.enter("n", d)
	check := func(when string, want int) {
		t.Helper()
		if got := m.Planned("g"); got != want || len(m.Invariants()) > 0 {
			t.Errorf("%s: %d planned, want %d; %v", when, got, want, m.Invariants())
		}
	}
	check("being tainted", 1)
	m.setGroup(d, "h")
	check("of another group", 0)
	m.setGroup(d, "g")
	m.set(d, untainting{})
	check("being given back", 0)
	m.set(d, tainted{})
	check("tainted", 1)
	m.enter("n", d)
	check("entered again", 1)
	m.drop("n")
	check("gone", 0)
	m.planned["g"]++
	if got := m.Invariants(); len(got) != 1 {
		t.Errorf("a wrong count: got %q", got)
	}
}
