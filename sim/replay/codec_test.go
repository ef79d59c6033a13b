package replay

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// This file specifies how inputs without objects are recorded.

// TestInputsWithoutObjectsComeBack encodes and decodes one input of each type that holds no
// object; TestPropertyARecordedObjectMeansTheSame is about the others.
func TestInputsWithoutObjectsComeBack(t *testing.T) {
	refused := errors.New("refused")
	for _, in := range []step.Input{
		step.PodGone{UID: "u"},
		step.NodeGone{Name: "n"},
		step.WorkloadGone{Kind: cluster.ReplicaSet, Namespace: "ns", Name: "w"},
		step.ObjectGone{Kind: cluster.ClaimKind, Namespace: "ns", Name: "c"},
		step.GroupsSet{},
		step.ServerTime{At: time.Unix(1000, 0).UTC()},
		step.GroupsSet{Busy: []string{"g"}},
		step.Consulted{UID: "u", Nodes: []string{"a", "b"}, Failed: map[string]string{"c": "why"}, Scores: map[string]int64{"a": 7}},
		step.Consulted{UID: "u", Err: refused},
		step.BindDone{UID: "u"},
		step.BindDone{UID: "u", Err: refused},
		step.TaintDone{Node: "n", Err: refused},
		step.TaintDone{Node: "n", Remove: true},
		step.EvictionDone{UID: "u", Node: "n", Err: refused},
		step.EvictionDone{UID: "u", Node: "n", Err: refused, Refused: true},
		step.SurgeDone{UID: "u", Node: "n", Err: refused},
		step.PreemptionDone{UID: "u", By: "v", Err: refused},
		step.NominationDone{UID: "u", Node: "n", Err: refused},
		step.ScaleUpDone{Group: "g", Nodes: 3, Err: refused},
		step.ScaleUpDone{Group: "g", Nodes: 3, Err: refused, Class: nodegroup.OutOfResources},
		step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Instances: []nodegroup.Instance{{ID: "i", Failed: "why", Class: nodegroup.OutOfResources}}}}},
		step.NodeDeletionDone{Node: "n", Instance: "i", Err: refused},
	} {
		encoded, err := encode(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := decode(encoded)
		if got, want := fmt.Sprintf("%T %+v", out, out), fmt.Sprintf("%T %+v", in, in); err != nil || got != want {
			t.Errorf("%s comes back as\n got %s, %v\nwant %s", encoded.Value, got, err, want)
		}
	}
}

// TestOfAPlanOnlyAnswersAndCutsAreRecorded: the planner of a replay makes the plan again.
func TestOfAPlanOnlyAnswersAndCutsAreRecorded(t *testing.T) {
	for _, x := range []struct {
		answers [][]string
		cuts    []int
		value   string
	}{
		{nil, nil, ""},
		{[][]string{{"a", "b"}, {}}, nil, `{"answers":[["a","b"],[]]}`},
		{nil, []int{3, 9}, `{"cuts":[3,9]}`},
	} {
		encoded, err := encode(step.PlanMade{Plan: &autoscaler.Plan{Covered: 7, Answers: x.answers, Cuts: x.cuts}})
		if err != nil || encoded.Kind != "PlanMade" || string(encoded.Value) != x.value {
			t.Errorf("got %s %s, %v, want PlanMade %s", encoded.Kind, encoded.Value, err, x.value)
		}
		out, err := decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if plan := out.(step.PlanMade).Plan; plan.Covered != 0 || !reflect.DeepEqual(plan.Answers, x.answers) || !slices.Equal(plan.Cuts, x.cuts) {
			t.Errorf("got %+v, want a plan with the answers %v and the cuts %v alone", plan, x.answers, x.cuts)
		}
	}
}
