package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthproject/berth/sim/scenario"
)

// Each bad scenario is refused with its line, its field and what would do.
func TestBadScenariosNameLineFieldAndRemedy(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{head + "  colour: red\n", `s.yaml:4: spec.colour: unknown field "colour"`},
		{head + "  seed: -1\n", "s.yaml:4: cannot unmarshal -1"},
		{head + "  nodeGroups:\n  - {name: g, max: many}\n", "s.yaml:5: spec.nodeGroups[0].max: it is a string; it must be a number"},
		{head + "  workload: {}\n", "s.yaml:4: "},
		{head + "  seed: [\n", "s.yaml:4: "},
		{"apiVersion: v2\nkind: Scenario\nspec: {}\n", `s.yaml:1: apiVersion: is "v2"; it must be "berth.dev/v1alpha1"`},
		{head + "  end: {at: -5s}\n", "s.yaml:4: spec.end.at: is -5s; a time must not be negative"},
		{head + "  faults: ! \n", `s.yaml:4: "!" is a YAML tag, which a Scenario does not support; remove it, or quote it if it is a value`},
		{head + "  faults: !x 3\n", `s.yaml:4: "!x" is a YAML tag`},
		{head + "  end: {at: 5 parsecs}\n", `s.yaml:4: spec.end.at: "5 parsecs" is not a duration; it must be one such as 90s`},
		{head + "  end: {at: [5s]}\n", "s.yaml"},
		{head + "  end: {at: {}}\n", "s.yaml"},
		{head + strings.Replace(group, "8Gi", "8 elephants", 1), `s.yaml:7: spec.nodeGroups[0].template.allocatable.memory: "8 elephants" is not a quantity`},
		{head + strings.Replace(group, "memory: 8Gi, ", "", 1), `s.yaml:7: spec.nodeGroups[0].template.allocatable: memory is "0"; it must be a positive quantity, or no pod would ever fit`},
		{head + strings.Replace(group, "max: 3", "max: 3\n    min: 4", 1), "s.yaml:6: spec.nodeGroups[0].max: is 3, less than min 4"},
		{head + group + strings.TrimPrefix(group, "  nodeGroups:\n"), `s.yaml:8: spec.nodeGroups[1].name: "g" is given twice`},
		{head + strings.Replace(group, "name: g", "name: G!", 1), `s.yaml:5: spec.nodeGroups[0].name: "G!" is not a valid name`},
		{head + "  faults: [{kind: Teapot}]\n", `s.yaml:4: spec.faults[0].kind: is "Teapot"; it must be one of APIConflict,`},
		{head + "  faults: [{kind: APIError}]\n", "s.yaml:4: spec.faults[0]: has no rate; APIError needs one"},
		{head + "  faults: [{kind: CrashBerth}]\n", "s.yaml:4: spec.faults[0]: has neither perHour nor at"},
		{head + "  faults: [{kind: APIError, rate: 2}]\n", "s.yaml:4: spec.faults[0].rate: is 2; a probability is from 0 to 1"},
		{head + "  faults: [{kind: APIError, rate: .nan}]\n", "s.yaml:4: spec.faults[0].rate: is NaN; a probability is from 0 to 1"},
		{head + "  faults: [{kind: CrashBerth, perHour: .nan}]\n", "s.yaml:4: spec.faults[0].perHour: is NaN; it must be a number"},
		{head + "  faults: [{kind: CrashBerth, perHour: .inf}]\n", "s.yaml:4: spec.faults[0].perHour: is +Inf; it must be a number"},
		{head + "  faults: [{kind: CrashBerth, perHour: 9223372036854775807}]\n", "s.yaml:4: spec.faults[0].perHour: is 9.223372036854776e+18; it must be at most 3600, which is one per second"},
		{head + "  faults: [{kind: SlowStop, rate: 1, for: -1s}]\n", "s.yaml:4: spec.faults[0].for: is -1s; a time must not be negative"},
		{head + "  faults: [{kind: ControllerStalls, rate: 1, group: h}]\n", `s.yaml:4: spec.faults[0].group: is "h"; ControllerStalls does not apply to a node group: remove it`},
		{head + "  faults: [{kind: StockOut, group: h}]\n", `s.yaml:4: spec.faults[0].group: "h" is not a node group`},
		{head + "  workload: [{name: w, template: {spec: {containers: [{name: c}]}}}]\n", "s.yaml:4: spec.workload[0].count: is 0; a workload needs at least 1 pod"},
		{head + "  workload: [{name: w, count: 20000000, template: {spec: {containers: [{name: c}]}}}]\n", "s.yaml:4: spec.workload[0].count: is 20000000, in 1 copies; the product must be at most 10000000"},
		{head + "  workload: [{name: w, count: 4611686018427387904, copies: 4, template: {spec: {containers: [{name: c}]}}}]\n", "spec.workload[0].count: is 4611686018427387904, in 4 copies"},
		{head + "  nodes: [{name: n, count: 20000000, template: {allocatable: {cpu: 1}}}]\n", "spec.nodes[0].count: is 20000000"},
		{head + "  workload: [{name: w, count: 1}]\n", "s.yaml:4: spec.workload[0].template: has no containers"},
		{head + "  workload: [{name: w, kind: Cron, count: 1}]\n", `spec.workload[0].kind: is "Cron"; it must be Pod, Job,`},
		{head + "  workload: [{name: w, count: 1, template: {spec: {containers: [{name: c, imag: x}]}}}]\n", `s.yaml:4: spec.workload[0].template.spec.containers[0].imag: unknown field "imag"`},
		{head + "  expect: [{metric: happiness, is: 1}]\n", `spec.expect[0].metric: "happiness" is not a metric; they are boughtBack, churn, cost,`},
		{head + "  registry: {connectionRate: 0}\n", "s.yaml:4: spec.registry.connectionRate: is 0; it must be greater than 0"},
		{head + "  expect: [{metric: cost}]\n", "spec.expect[0]: has no expectation; set is, min or max"},
		{head + "  policy: {flags: [--max-nodes-launching=many]}\n", "s.yaml:4: spec.policy.flags: invalid argument"},
		{head + "  policy: {flags: [--teapot]}\n", "s.yaml:4: spec.policy.flags: unknown flag: --teapot"},
		{head + "  policy: {schedulerConfig: nope.yaml}\n", "s.yaml:4: spec.policy.schedulerConfig: reading the scheduler configuration"},
		{head + "  policy: {emulatedVersion: '1.35'}\n", `s.yaml:4: spec.policy.emulatedVersion: "1.35" is not a version whose scheduling rules Berth implements; those are 1.36 and 1.37`},
		{head + "  policy: {flags: [--expander=magic]}\n", `s.yaml:4: spec.policy.flags: --expander is "magic"; unknown expander "magic"`},
		{head + "  policy: {flags: [--expander=grpc, --grpc-expander-url=x, --grpc-expander-cert=y]}\n", "s.yaml:4: spec.policy.flags: expander grpc is not available here"},
		{head + "  policy: {expanderPriorities: '1: ['}\n", "s.yaml:4: spec.policy.expanderPriorities: reading the priorities"},
		{head + "  policy: {nodePrices: nope.yaml}\n", "s.yaml:4: spec.policy.nodePrices: reading node prices: open nope.yaml"},
		{head + "  files: [nope.yaml]\n", "s.yaml:4: spec.files[0]: nope.yaml: no such file"},
		{head + "  objects: [{kind: Teapot, metadata: {name: x}}]\n", `s.yaml:4: spec.objects[0]: kind is "Teapot"; the kinds are Node, Pod`},
		{head + "  objects: [{kind: Pod, metadata: {name: x}, spec: {colour: red}}]\n", `s.yaml:4: spec.objects[0]: unknown field "spec.colour"`},
		{head + "  objects: [{kind: StatefulSet, apiVersion: apps/v1, metadata: {name: s}, spec: {replicas: -1}}]\n", "spec.objects[0]: StatefulSet default/s: spec.replicas is -1; it must be from 0 to 10000000"},
		{head + "  objects: [{kind: Job, apiVersion: batch/v1, metadata: {name: j}, spec: {completions: 5, parallelism: 2147483647}}]\n", "spec.objects[0]: Job default/j: spec.parallelism is 2147483647; it must be from 0 to 10000000"},
		{head + "  objects: [{kind: ReplicaSet, apiVersion: apps/v1, metadata: {name: r}, spec: {replicas: 10000001}}]\n", "spec.objects[0]: ReplicaSet default/r: spec.replicas is 10000001"},
		{head + "  objects: [{kind: ReplicationController, apiVersion: v1, metadata: {name: r}, spec: {replicas: -7}}]\n", "spec.objects[0]: ReplicationController default/r: spec.replicas is -7"},
		{head + "  objects: [{kind: Pod, metadata: {name: x, annotations: {berth.dev/run-for: soon}}}]\n", `pod default/x: annotation berth.dev/run-for is "soon"; it must be a duration`},
	} {
		_, err := scenario.Parse("s.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant …%s…", c.text, err, c.want)
		}
	}
}

// TestMistakesAreBounded: of a file in which very much is wrong, the first mistakes are reported and the
// others counted.
func TestMistakesAreBounded(t *testing.T) {
	text := head + "  nodes:\n" + strings.Repeat("  - {count: -1}\n", 300)
	_, err := scenario.Parse("s.yaml", []byte(text))
	if err == nil {
		t.Fatal("a file with mistakes is taken")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 101 || !strings.HasSuffix(lines[100], " more mistakes") {
		t.Errorf("%d lines, the last %q, want 100 mistakes and how many more there are", len(lines), lines[len(lines)-1])
	}
}

// TestAllThatIsWrongIsReportedAtOnce, in the order of lines: fields that aren't known, values that
// can't be decoded, those that are refused, flags and objects.
func TestAllThatIsWrongIsReportedAtOnce(t *testing.T) {
	const text = head + `  colour: red
  nodeGroups:
  - name: g
    max: 3
    min: 4
    launchDelay: {min: 5 parsecs}
    template: &t {allocatable: {cpu: 2 cores, memory: 8Gi, pods: 10}}
  - name: h
    max: 1
    template: *t
  workload:
  - name: w
    kind: Cron
    count: 1
    template:
      spec:
        containers:
        - name: c
          imag: x
  objects:
  - {kind: Teapot, metadata: {name: x}}
  - {kind: Pod, metadata: {name: y}, spec: {colour: red}}
  files: [nope.yaml]
  policy:
    flags:
    - --teapot
  end: {at: soon}
`
	want := []string{
		`s.yaml:4: spec.colour: unknown field "colour"`,
		"s.yaml:7: spec.nodeGroups[0].max: is 3, less than min 4",
		`s.yaml:9: spec.nodeGroups[0].launchDelay.min: "5 parsecs" is not a duration; it must be one such as 90s, 15m or 2h`,
		`s.yaml:10: spec.nodeGroups[0].template.allocatable.cpu: "2 cores" is not a quantity; it must be one such as 500m, 4 or 8Gi`,
		`s.yaml:10: spec.nodeGroups[1].template.allocatable.cpu: "2 cores" is not a quantity; it must be one such as 500m, 4 or 8Gi`,
		`s.yaml:16: spec.workload[0].kind: is "Cron"; it must be Pod, Job, ReplicaSet, StatefulSet or DaemonSet`,
		`s.yaml:22: spec.workload[0].template.spec.containers[0].imag: unknown field "imag"`,
		`s.yaml:24: spec.objects[0]: kind is "Teapot"; the kinds are `,
		`s.yaml:25: spec.objects[1]: unknown field "spec.colour"`,
		"s.yaml:26: spec.files[0]: nope.yaml: no such file or directory",
		"s.yaml:29: spec.policy.flags: unknown flag: --teapot",
		`s.yaml:30: spec.end.at: "soon" is not a duration; it must be one such as 90s, 15m or 2h`,
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"all", text, want},
		{"also what ends the decoder", strings.Replace(text, "max: 1\n", "max: [1]\n", 1), []string{"s.yaml:12: ", want[0], want[2], want[3], want[4], want[6], want[11]}},
	} {
		_, err := scenario.Parse("s.yaml", []byte(c.text))
		got := strings.Split(fmt.Sprint(err), "\n")
		same := len(got) == len(c.want)
		for i := 0; same && i < len(got); i++ {
			same = strings.HasPrefix(got[i], c.want[i])
		}
		if !same {
			t.Errorf("%s:\n got %s\nwant %s", c.name, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
		}
	}
}

// TestFaultsSayHowOftenOrWhenTheyCome has each kind of fault with nothing but its kind.
func TestFaultsSayHowOftenOrWhenTheyCome(t *testing.T) {
	const rate, event = "needs one greater than 0", "has neither perHour nor at"
	missing := map[string]string{
		scenario.APIError: rate, scenario.APIConflict: rate, scenario.APITimeout: rate, scenario.AnswerLost: rate,
		scenario.CloudError: rate, scenario.CloudLost: rate,
		scenario.LaunchFails: rate, scenario.LaunchVanishes: rate, scenario.NeverRegisters: rate, scenario.NeverReady: rate, scenario.WrongShape: rate, scenario.ExtraInstance: rate, scenario.NoTemplate: "",
		scenario.SpotReclaim: event, scenario.SpotWarning: event, scenario.CrashBerth: event, scenario.WatchStall: event, scenario.DeletePod: event,
		scenario.EvictPod: event, scenario.Cordon: event, scenario.Relabel: event,
		scenario.ForbidEvictions: event, scenario.ReclaimDraining: event,
		scenario.SlowStop: rate, scenario.ControllerStalls: rate, scenario.DeletionFails: rate, scenario.CloudNoAnswer: rate,
		scenario.GroupUnlisted: rate, scenario.ListedLate: rate, scenario.InstanceAgain: rate, scenario.NodeLingers: rate, scenario.FutureStamp: rate,
		scenario.GroupRenamed: event, scenario.GroupTwice: rate, scenario.GroupsOverlap: rate,
		scenario.NodeMoves: event, scenario.SpotReplaced: event, scenario.TaintNode: event, scenario.ClockAhead: "",
		scenario.DevicesLate: rate, scenario.DevicesWithdrawn: event, scenario.DevicesChanged: event, scenario.DeviceTainted: event, scenario.DeviceFailed: event, scenario.ClaimEdited: event,
		scenario.StockOut: "", // lasts from the beginning to the end
	}
	for _, kind := range scenario.FaultKinds() {
		want, known := missing[kind]
		_, err := scenario.Parse("s.yaml", []byte(head+"  faults: [{kind: "+kind+"}]\n"))
		if !known || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s alone: got %v, want %q", kind, err, want)
		}
	}
}
