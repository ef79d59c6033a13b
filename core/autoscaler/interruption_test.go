package autoscaler_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestParseInterruptionMark reads marks as the flag has them, and refuses what isn't one.
func TestParseInterruptionMark(t *testing.T) {
	for _, c := range []struct{ text, want, wrong string }{
		{"example.com/going=30s", "example.com/going=30s", ""},
		{" example.com/going ", "example.com/going", ""},
		{"condition:PreemptionScheduled=1m", "condition:PreemptionScheduled=1m0s", ""},
		{"example.com/going=", "", "greater than 0"},
		{"example.com/going=-1s", "", "greater than 0"},
		{"example.com/going=soon", "", "greater than 0"},
		{"no key", "", "no taint key"},
		{"condition:", "", "no taint key"},
		{autoscaler.ToBeDeletedTaint, "", "announces no interruption"},
		{v1.TaintNodeUnschedulable + "=1m", "", "announces no interruption"},
		{"condition:Ready", "", "announces no interruption"},
	} {
		m, err := autoscaler.ParseInterruptionMark(c.text)
		switch {
		case c.wrong == "" && (err != nil || m.String() != c.want):
			t.Errorf("%q: got %q, %v; want %q", c.text, m, err, c.want)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%q: got %q, %v; want an error that says %q", c.text, m, err, c.wrong)
		}
	}
	for _, m := range autoscaler.DefaultInterruptionMarks() {
		if again, err := autoscaler.ParseInterruptionMark(m.String()); err != nil || again != m {
			t.Errorf("the default %q is read as %v, %v", m, again, err)
		}
	}
}

// TestNobodyCanWriteTheTaintOfAnInterruption has a key that the API server refuses: a node with the
// taint berth.dev/interrupted isn't about to be taken because of it.
func TestNobodyCanWriteTheTaintOfAnInterruption(t *testing.T) {
	if faults := validation.IsQualifiedName(autoscaler.InterruptedTaint); faults == nil {
		t.Errorf("a user can write the taint %s", autoscaler.InterruptedTaint)
	}
	info := cluster.NewSchema().ParseNode(testkit.Node("n").Taint("berth.dev/interrupted", "", v1.TaintEffectNoSchedule).Obj(), "")
	if autoscaler.Going(info) {
		t.Error("a user's taint is believed")
	}
}

// TestFindInterruption finds taints whatever their effect, and conditions that are True.
func TestFindInterruption(t *testing.T) {
	marks := []autoscaler.InterruptionMark{{Taint: "a/b", Warning: time.Minute}, {Condition: "Going"}}
	going := func(status v1.ConditionStatus) *v1.Node {
		n := testkit.Node("n").Obj()
		n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: "Going", Status: status})
		return n
	}
	schema := cluster.NewSchema()
	for want, n := range map[string]*v1.Node{
		"taint a/b":       testkit.Node("n").Taint("a/b", "x", v1.TaintEffectPreferNoSchedule).Obj(),
		"condition Going": going(v1.ConditionTrue),
		"":                going(v1.ConditionFalse),
	} {
		got := ""
		info := schema.ParseNode(n, "")
		if m := autoscaler.FindInterruption(marks, info); m != nil {
			got = m.Said()
			if on := m.Interrupted(info); !on.HasTaint(autoscaler.InterruptedTaint) {
				t.Errorf("%s: the node has no taint in the state", want)
			}
		}
		if got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}
