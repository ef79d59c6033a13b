package door_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

func long(n int) string { return strings.Repeat("x", n) }

// admit returns what is left of an input, nil when it is refused, and what is said of it.
func admit(in step.Input) (out step.Input, said []string) {
	admitted, ok := door.Admit(in, func(p door.Problem) { said = append(said, p.Error()) })
	if !ok {
		return nil, said
	}
	return admitted.Unwrap(), said
}

// TestInputsThatAreRefused: nothing of them reaches the core.
func TestInputsThatAreRefused(t *testing.T) {
	groups := make([]nodegroup.Group, door.MaxGroups+1)
	for i := range groups {
		groups[i].ID = fmt.Sprint(i)
	}
	for _, x := range []struct {
		in   step.Input
		said string
	}{
		{step.PodSet{}, "pod: the object is missing; the input is ignored"},
		{step.NodeSet{Group: long(3000)}, "node: the object is missing; the input is ignored"},
		{step.DaemonSetSet{}, "DaemonSet: the object is missing; the input is ignored"},
		{step.ObjectSet{}, "object: the object is missing; the input is ignored"},
		{step.WorkloadSet{}, "workload: the object is missing; the input is ignored"},
		{step.NodeSet{Node: testkit.Node(long(300)).Obj()}, "node /" + long(300) + ": its name has 300 bytes, at most 253 are accepted; it is ignored"},
		{step.WorkloadSet{Workload: &cluster.Workload{Kind: cluster.Job, Namespace: long(254), Name: "j"}}, "Job " + long(254) + "/j: its namespace has 254 bytes, at most 253 are accepted; it is ignored"},
		{step.GroupsSet{Groups: groups}, "the provider: its list of node groups has 10001 groups, at most 10000 are accepted; the last known state is used"},
	} {
		if out, said := admit(x.in); out != nil || !slices.Equal(said, []string{x.said}) {
			t.Errorf("%.60v: admitted %v, said %q; want it refused with %q", x.in, out, said, x.said)
		}
	}
}

// TestGroupsThatListTooMuch: what a provider says about one group keeps nothing of the others.
func TestGroupsThatListTooMuch(t *testing.T) {
	template := testkit.Node("t").Alloc("cpu", "4").Obj()
	tainted := template.DeepCopy()
	tainted.Spec.Taints = make([]v1.Taint, door.MaxEntries+1)
	in := step.GroupsSet{Busy: []string{"busy"}, Groups: []nodegroup.Group{
		{ID: "good", Template: template, Instances: []nodegroup.Instance{{ID: "i"}}},
		{ID: long(door.MaxID + 1)},
		{ID: "crowded", Instances: make([]nodegroup.Instance, door.MaxInstances+1)},
		{ID: "named", Instances: []nodegroup.Instance{{ID: "i", Node: long(door.MaxID + 1)}}},
		{ID: "tainted", Template: tainted},
		{ID: "wordy", TemplateError: long(2000), Instances: []nodegroup.Instance{{ID: "i", Failed: long(3000), Code: "c"}}},
	}}
	before, _ := json.Marshal(in)
	out, said := admit(in)
	if after, _ := json.Marshal(in); string(after) != string(before) {
		t.Error("the input was changed")
	}
	cut := long(door.MaxText) + "…"
	const taints = "the taints of its template has 1001 entries, at most 1000 are accepted; the group can't grow"
	want := step.GroupsSet{Busy: []string{"busy", "crowded", "named"}, Groups: []nodegroup.Group{
		in.Groups[0], {ID: "tainted", TemplateError: taints},
		{ID: "wordy", TemplateError: cut, Instances: []nodegroup.Instance{{ID: "i", Failed: cut, Code: "c"}}},
	}}
	if got, _ := json.Marshal(out); string(got) != string(must(json.Marshal(want))) {
		t.Errorf("admitted is\n%.600s\nwant\n%.600s", got, must(json.Marshal(want)))
	}
	if want := []string{
		"node group " + cut + ": its ID has 2049 bytes, at most 2048 are accepted; it is ignored",
		"node group crowded: its list of instances has 100001 instances, at most 100000 are accepted; its last known state is used",
		"node group named: the ID or the node of an instance has 2049 bytes, at most 2048 are accepted; its last known state is used",
		"node group tainted: " + taints,
	}; !slices.Equal(said, want) {
		t.Errorf("said is %q\nwant %q", said, want)
	}
	if _, again := admit(out); len(again) > 0 {
		t.Errorf("what was admitted isn't admitted again: %q", again)
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// TestErrorsOfOutcomesAreShortened has each outcome carry a megabyte of text.
func TestErrorsOfOutcomesAreShortened(t *testing.T) {
	cause := errors.New(long(1 << 20))
	for _, in := range []step.Input{
		step.BindDone{Err: cause}, step.DeallocationDone{Err: cause}, step.TaintDone{Err: cause}, step.EvictionDone{Err: cause}, step.SurgeDone{Err: cause}, step.ScaleUpDone{Err: cause},
		step.NodeDeletionDone{Err: cause}, step.PreemptionDone{Err: cause}, step.NominationDone{Err: cause}, step.StatusWritten{Err: cause}, step.Consulted{Err: cause},
	} {
		out, _ := admit(in)
		if err := reflect.ValueOf(out).FieldByName("Err").Interface().(error); len(err.Error()) > door.MaxText+3 || !errors.Is(err, cause) {
			t.Errorf("%T: the error has %d bytes and is the cause: %t; want at most %d, true", in, len(err.Error()), errors.Is(err, cause), door.MaxText+3)
		}
	}
	failed := map[string]string{"n": long(2000), "m": "short"}
	out, _ := admit(step.Consulted{Failed: failed})
	if got := out.(step.Consulted).Failed; len(got["n"]) > door.MaxText+3 || got["m"] != "short" || len(failed["n"]) != 2000 {
		t.Errorf("reasons of %d bytes and %q; want at most %d and short", len(got["n"]), got["m"], door.MaxText+3)
	}
}

// TestPropertyAmountsOfInputsAreBoundedInACopy puts amounts that can't be counted with into inputs.
func TestPropertyAmountsOfInputsAreBoundedInACopy(t *testing.T) {
	amount := rapid.SampledFrom([]string{"1", "100m", "1e30", "2e30", "4e999999", "-4e999999"})
	rapid.Check(t, func(t *rapid.T) {
		node := testkit.Node("n").Alloc("cpu", amount.Draw(t, "cpu"), "memory", amount.Draw(t, "memory")).Obj()
		pod := testkit.Pod("p").Req("cpu", amount.Draw(t, "request")).Obj()
		buffer := &autoscalingapi.CapacityBuffer{Spec: autoscalingapi.CapacityBufferSpec{Limits: node.Status.Allocatable.DeepCopy()}}
		for _, in := range []step.Input{step.NodeSet{Node: node}, step.PodSet{Pod: pod}, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Template: node}}}, step.ObjectSet{Object: buffer}} {
			wild := hasWild(in)
			out, said := admit(in)
			if hasWild(out) || len(said) > 0 {
				t.Fatalf("%T: an amount is beyond the bounds: %t, said %q", in, hasWild(out), said)
			}
			if hasWild(in) != wild {
				t.Fatalf("%T was changed", in)
			}
			if !wild && !reflect.DeepEqual(in, out) {
				t.Fatalf("%T has nothing beyond the bounds and isn't the same", in)
			}
		}
	})
}

// hasWild reports whether an amount of an input is beyond ±10^30.
func hasWild(in step.Input) bool {
	var lists []v1.ResourceList
	switch x := in.(type) {
	case step.NodeSet:
		lists = append(lists, x.Node.Status.Allocatable)
	case step.PodSet:
		lists = append(lists, x.Pod.Spec.Containers[0].Resources.Requests)
	case step.ObjectSet:
		lists = append(lists, x.Object.(*autoscalingapi.CapacityBuffer).Spec.Limits)
	case step.GroupsSet:
		lists = append(lists, x.Groups[0].Template.Status.Allocatable)
	}
	for _, list := range lists {
		for _, q := range list {
			if f := q.AsApproximateFloat64(); f > 1e30 || f < -1e30 {
				return true
			}
		}
	}
	return false
}

// TestWhatIsNestedTooDeeplyIsRefused reads lists in lists, and brackets in text.
func TestWhatIsNestedTooDeeplyIsRefused(t *testing.T) {
	for _, x := range []struct {
		raw  string
		good bool
	}{
		{strings.Repeat("[", door.MaxNesting) + strings.Repeat("]", door.MaxNesting), true},
		{strings.Repeat("[", door.MaxNesting+1) + strings.Repeat("]", door.MaxNesting+1), false},
		{strings.Repeat(`{"a":`, 1<<20) + "1" + strings.Repeat("}", 1<<20), false},
		{`"` + strings.Repeat(`[{\"`, 1000) + `"`, true},
		{"[" + strings.TrimSuffix(strings.Repeat("[],", 1000), ",") + "]", true},
	} {
		var out any
		if err := door.Read([]byte(x.raw), &out); (err == nil) != x.good {
			t.Errorf("%.30s…: %v, want accepted: %t", x.raw, err, x.good)
		}
	}
}

// TestNamesOfQuestions: what nothing can be called isn't asked about, nor repeated.
func TestNamesOfQuestions(t *testing.T) {
	if err := errors.Join(door.NameError("node", long(door.MaxName)), door.GroupNameError(long(door.MaxID))); err != nil {
		t.Error(err)
	}
	if err := door.NameError("node", long(1<<20)); err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), "the name of the node has 1048576 bytes; it must be no more than 253") {
		t.Errorf("a name of a megabyte: %.300v", err)
	}
	if err := door.GroupNameError(long(door.MaxID + 1)); err == nil {
		t.Error("a node group's name beyond the bound is accepted")
	}
}

// BenchmarkAdmit has pods and nodes within the bounds.
func BenchmarkAdmit(b *testing.B) {
	for _, in := range []step.Input{
		step.PodSet{Pod: cluster.Trim(testkit.Pod("p").Req("cpu", "100m", "memory", "1Gi").Obj())},
		step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "110").Obj()},
		step.BindDone{},
	} {
		b.Run(fmt.Sprintf("%T", in), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				door.Admit(in, nil)
			}
		})
	}
}

// TestGroupsThatAreListedTwice: of a group that a list has twice, the same counts once; nothing is said of
// one that it has twice and differently, or that it has and says nothing of.
func TestGroupsThatAreListedTwice(t *testing.T) {
	template := testkit.Node("t").Alloc("cpu", "4").Obj()
	same := nodegroup.Group{ID: "same", Target: 1, Template: template, Instances: []nodegroup.Instance{{ID: "i"}}}
	copied := same
	copied.Template, copied.Instances = template.DeepCopy(), slices.Clone(same.Instances)
	out, said := admit(step.GroupsSet{Busy: []string{"busy"}, Groups: []nodegroup.Group{
		same, {ID: "other", Target: 1}, {ID: "busy"}, copied, {ID: "other", Target: 2}, {ID: "last"}, {ID: "other", Target: 1},
	}})
	want := step.GroupsSet{Busy: []string{"busy", "other"}, Groups: []nodegroup.Group{same, {ID: "last"}}}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("admitted is\n%+v\nwant\n%+v", out, want)
	}
	if want := []string{
		"node group same: it is listed twice, which counts as once",
		"node group other: it is listed twice, and differently; its last known state is used",
	}; !slices.Equal(said, want) {
		t.Errorf("said is %q\nwant %q", said, want)
	}
}
