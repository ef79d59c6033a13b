package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/sim/scenario"
)

// This file specifies pod groups in scenarios: which objects they stand for, and what is refused.

func TestBadPodGroupsNameLineFieldAndRemedy(t *testing.T) {
	workload := func(text string) string {
		return head + "  workload: [{name: w, count: 1, " + text + "}]\n"
	}
	const pods = ", template: {spec: {containers: [{name: c}]}}"
	for _, c := range []struct{ text, want string }{
		{workload("podGroup: {minCount: -1}" + pods), "s.yaml:4: spec.workload[0].podGroup.minCount: is -1; it must be from 0 to "},
		{workload("podGroup: {min: 1}" + pods), `s.yaml:4: spec.workload[0].podGroup.min: unknown field "min"`},
		{workload("podGroup: {disruptionMode: some}" + pods), `s.yaml:4: spec.workload[0].podGroup.disruptionMode: is "some"; it must be single or all`},
		{workload("podGroup: {levels: zone}" + pods), `s.yaml:4: spec.workload[0].podGroup.levels: annotation berth.dev/topology-levels: "zone" isn't required or preferred; write LABEL=required`},
		{workload("podGroup: {topology: rack, levels: rack=preferred}" + pods), `s.yaml:4: spec.workload[0].podGroup.levels: annotation berth.dev/topology-levels: "rack" is required by`},
		{workload("kind: DaemonSet, podGroup: {}" + pods), "s.yaml:4: spec.workload[0].podGroup: is set, and the kind is DaemonSet"},
		{workload("podGroup: {}, template: {spec: {schedulingGroup: {podGroupName: g}, containers: [{name: c}]}}"), "s.yaml:4: spec.workload[0].podGroup: is set, and so is template.spec.schedulingGroup; remove one of them"},
	} {
		_, err := scenario.Parse("s.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant …%s…", c.text, err, c.want)
		}
	}
}

func TestPodGroupsInShortStandForObjects(t *testing.T) {
	r, err := scenario.Parse("s.yaml", []byte(head+`  workload:
  - {name: gang, copies: 2, count: 2, podGroup: {minCount: 2, topology: rack, levels: "zone=required, block=preferred", disruptionMode: all}, template: {spec: {priority: 7, containers: [{name: c}]}}}
  - {name: open, namespace: team, count: 1, podGroup: {}, template: {spec: {containers: [{name: c}]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range claimed[*schedulingv1beta1.PodGroup](r) {
		text := fmt.Sprintf("group %s/%s:", g.Namespace, g.Name)
		if gang := g.Spec.SchedulingPolicy.Gang; gang != nil {
			text += fmt.Sprintf(" gang of %d", gang.MinCount)
		}
		if g.Spec.SchedulingPolicy.Basic != nil {
			text += " basic"
		}
		if x := g.Spec.SchedulingConstraints; x != nil {
			text += fmt.Sprintf(" in one %s", x.Topology[0].Key)
		}
		if levels := g.Annotations["berth.dev/topology-levels"]; levels != "" {
			text += " with " + levels
		}
		if g.Spec.DisruptionMode != nil && g.Spec.DisruptionMode.All != nil {
			text += " as a whole"
		}
		if g.Spec.Priority != nil {
			text += fmt.Sprintf(" with priority %d", *g.Spec.Priority)
		}
		got = append(got, text)
	}
	for _, p := range claimed[*v1.Pod](r) {
		got = append(got, fmt.Sprintf("pod %s/%s of %s", p.Namespace, p.Name, *p.Spec.SchedulingGroup.PodGroupName))
	}
	want := []string{
		"group default/gang-0: gang of 2 in one rack with zone=required, block=preferred as a whole with priority 7",
		"group default/gang-1: gang of 2 in one rack with zone=required, block=preferred as a whole with priority 7",
		"group team/open: basic",
		"pod default/gang-0-0 of gang-0", "pod default/gang-0-1 of gang-0",
		"pod default/gang-1-0 of gang-1", "pod default/gang-1-1 of gang-1",
		"pod team/open-0 of open",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}
