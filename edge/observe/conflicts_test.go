package observe

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestBindsThatComeSecondAreConflicts: a bind that another scheduler was faster at is a conflict about its pod,
// and one that fails for another reason is not.
func TestBindsThatComeSecondAreConflicts(t *testing.T) {
	l := newLive(t)
	l.step(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()})
	l.step(step.PodSet{Pod: testkit.Pod("refused").Req("cpu", "1").Obj()})
	l.step(step.BindDone{UID: "pod-refused", Err: errors.New("refused by a webhook")})
	l.wants(`berth_scheduler_conflicts_total{about="pod"} 0`)
	l.step(step.PodSet{Pod: testkit.Pod("second").Req("cpu", "1").Obj()})
	l.step(step.BindDone{UID: "pod-second", Err: apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, "second", errors.New("pod second is already assigned to node n2"))})
	l.wants(`berth_scheduler_conflicts_total{about="pod"} 1`, `berth_scheduler_conflicts_total{about="room"} 0`)
}
