package step_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestTaintsAreAppliedWithWhatGoesWithThem writes taints one after the other. A node that was
// unschedulable before stays so, also when a write is repeated or another process removes the
// taint.
func TestTaintsAreAppliedWithWhatGoesWithThem(t *testing.T) {
	removal := v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: "1", Effect: v1.TaintEffectNoSchedule}
	put, plain := step.Taint{Taint: removal, Cordon: true, Note: "why"}, step.Taint{Taint: removal, Note: "why"}
	controllers := step.Taint{Taint: v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}}
	soft := step.Taint{Taint: v1.Taint{Key: "soft"}}
	off, softOff := step.Taint{Taint: removal, Remove: true, Note: "any"}, step.Taint{Taint: soft.Taint, Remove: true}
	for _, c := range []struct {
		name     string
		cordoned bool // before
		writes   []step.Taint
		want     string // taints, whether unschedulable, annotations
	}{
		{"put on", false, []step.Taint{put}, "1 true map[berth.dev/removal:cordoned; why]"},
		{"put on twice", false, []step.Taint{put, put}, "1 true map[berth.dev/removal:cordoned; why]"},
		{"taken off", false, []step.Taint{put, off}, "0 false map[]"},
		{"taken off, though it isn't there", true, []step.Taint{off}, "0 true map[]"},
		{"put on a node that is unschedulable", true, []step.Taint{put}, "1 true map[berth.dev/removal:why]"},
		{"and taken off", true, []step.Taint{put, put, off}, "0 true map[]"},
		{"without a cordon", false, []step.Taint{plain}, "1 false map[berth.dev/removal:why]"},
		{"taken off after the node controller's taint has come", false, []step.Taint{put, controllers, off}, "0 false map[]"},
		{"the same of a node that was unschedulable", true, []step.Taint{controllers, put, off}, "1 true map[]"},
		{"another taint beside it", false, []step.Taint{put, soft}, "2 true map[berth.dev/removal:cordoned; why]"},
		{"another taint taken off", false, []step.Taint{put, soft, softOff}, "1 true map[berth.dev/removal:cordoned; why]"},
	} {
		b := testkit.Node("n")
		b.Annotations = map[string]string{}
		n := b.Obj()
		n.Spec.Unschedulable = c.cordoned
		for _, x := range c.writes {
			before, taints := fmt.Sprint(n.Annotations), fmt.Sprint(n.Spec.Taints)
			next := *n
			x.Apply(&next)
			if fmt.Sprint(n.Annotations) != before || fmt.Sprint(n.Spec.Taints) != taints {
				t.Errorf("%s: %+v has changed what others read", c.name, x)
			}
			n = &next
		}
		if got := fmt.Sprint(len(n.Spec.Taints), " ", n.Spec.Unschedulable, " ", n.Annotations); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
