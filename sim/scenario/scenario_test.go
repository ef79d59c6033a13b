package scenario_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/sim/scenario"
	"github.com/berthproject/berth/sim/trace/openb"
)

const head = "apiVersion: berth.dev/v1alpha1\nkind: Scenario\nspec:\n"

const group = `  nodeGroups:
  - name: g
    max: 3
    template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
`

// TestAliases stand for values, for any number of them but not for more than memory holds.
func TestAliases(t *testing.T) {
	const head = "apiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x, description: &d \"some words\"}\nspec:\n"
	r, err := scenario.Parse("s.yaml", []byte(head+`  nodes:
  - name: a
    template: &node {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
  - {name: b, template: *node}
`))
	if err != nil {
		t.Fatal(err)
	}
	if q := r.Spec.Nodes[1].Template.Allocatable["cpu"]; q.String() != "4" {
		t.Errorf("node b has %s CPUs, want 4", q.String())
	}
	for _, levels := range []int{5, 40} {
		var many strings.Builder
		many.WriteString(head + "  objects:\n  - {kind: Pod, metadata: {name: p}}\n  - a0: &a0 x\n")
		for i := 1; i <= levels; i++ {
			fmt.Fprintf(&many, "    a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
		}
		want := "spec.objects[1]: kind is"
		if levels > 5 {
			want = "s.yaml: its aliases (*name) expand to more than 1000000 values; nest fewer aliases"
		}
		if _, err := scenario.Parse("s.yaml", []byte(many.String())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d levels: %.300v, want %s", levels, err, want)
		}
	}
}

// TestAmountsToWriteMayBeZero: of an instance that writes nothing while it boots, and of an
// empty layer. Rates may not.
func TestAmountsToWriteMayBeZero(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{head + strings.Replace(group, "max: 3", "max: 3\n    boot: {bytes: 0}", 1), ""},
		{head + strings.Replace(group, "max: 3", "max: 3\n    boot: {bytes: -1}", 1), "boot.bytes: is -1; it must not be negative"},
		{head + strings.Replace(group, "max: 3", "max: 3\n    boot: {rate: 0}", 1), "boot.rate: is 0; it must be greater than 0"},
		{head + "  images: [{name: i, layers: [{bytes: 0}]}]\n", ""},
		{head + "  images: [{name: i, layers: [{bytes: -1}]}]\n", "layers[0].bytes: is -1; it must not be negative"},
	} {
		_, err := scenario.Parse("s.yaml", []byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %q", c.text, err, c.want)
		}
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestScenariosAreReadAsJSONToo has files whose kind stands where a line-wise
// look misses it.
func TestScenariosAreReadAsJSONToo(t *testing.T) {
	for name, text := range map[string]string{
		"one line":        `{"apiVersion":"berth.dev/v1alpha1","kind":"Scenario","spec":{"seed":7}}`,
		"kind at the end": `{"spec":{"seed":7},"apiVersion":"berth.dev/v1alpha1","kind":"Scenario"}`,
		"tabs":            "{\n\t\"apiVersion\": \"berth.dev/v1alpha1\",\n\t\"kind\": \"Scenario\",\n\t\"spec\": {\n\t\t\"seed\": 7\n\t}\n}\n",
		"flow":            "{apiVersion: berth.dev/v1alpha1, kind: Scenario, spec: {seed: 7}}\n",
		"far down":        "# " + strings.Repeat("long ", 20_000) + "\n" + head + "  seed: 7\n",
	} {
		runs, err := scenario.Load([]string{write(t, "s.yaml", text)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := runs[0].Spec.Seed; got != 7 {
			t.Errorf("%s: seed %d, want 7; notes %q", name, got, runs[0].Notes)
		}
	}
	policy := write(t, "p.yaml", `{"apiVersion":"berth.dev/v1alpha1","kind":"Policy","spec":{"flags":["--max-nodes-total=5"]}}`)
	runs, err := scenario.Load([]string{policy, write(t, "s.yaml", head+group)})
	if err != nil || runs[0].Autoscale.Limits.MaxNodesTotal != 5 {
		t.Errorf("a policy as JSON: %v, %+v", err, runs)
	}
}

// TestScenariosStandAlone has files in which a scenario and other objects would
// be in each other's way: one of them was passed over without a word.
func TestScenariosStandAlone(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
	for _, c := range []struct{ text, want string }{
		{head + "  seed: 7\n---\n" + pod, "s:6: a Scenario must be alone in its file"},
		{pod + "---\n" + head + "  seed: 7\n", "s:5: a Scenario must be alone in its file"},
		{`{"kind":"Pod","metadata":{"name":"p"}}` + "\n" + `{"apiVersion":"berth.dev/v1alpha1","kind":"Policy"}`, "s:2: a Policy must be alone in its file"},
		{"apiVersion: berth.dev/v2\nkind: Scenario\n", `s:1: apiVersion: is "berth.dev/v2"; it must be "berth.dev/v1alpha1"`},
	} {
		if _, err := scenario.Load([]string{write(t, "s", c.text)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant …%s…", c.text, err, c.want)
		}
	}
	for name, text := range map[string]string{
		"an empty document after it":        head + "  seed: 7\n---\n# nothing\n",
		"a separator before it":             "---\n" + head + "  seed: 7\n",
		"a foreign policy beside manifests": pod + "---\napiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: q}\n",
	} {
		if _, err := scenario.Load([]string{write(t, "s", text)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// dump is as kubectl prints: the second pod is bound to a node that isn't there.
const dump = `apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: n1
    annotations:
      text: |
        - a line that looks like an item
        items:
  status:
    allocatable: {cpu: "4", memory: 8Gi, pods: "10"}
- apiVersion: v1
  kind: Pod
  metadata:
    name: here
    namespace: default
  spec:
    containers:
    - name: c
      resources:
        requests:
          cpu: "1"
    nodeName: n1
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata: {name: lost, namespace: default}
  spec: {nodeName: n2, containers: [{name: c}]}
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata: {name: over, namespace: default}
  spec: {nodeName: n2, containers: [{name: c}]}
  status: {phase: Succeeded}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: x, namespace: default}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: b, namespace: default}
  spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
kind: List
metadata:
  resourceVersion: ""
---
apiVersion: v1
kind: Pod
metadata:
  name: late
  annotations: {berth.dev/arrive-after: 90s, berth.dev/run-for: 1m..5m}
spec: {containers: [{name: c}]}
`

func TestDumpsAndManifests(t *testing.T) {
	check := func(r *scenario.Run) {
		t.Helper()
		var got []string
		for _, o := range r.Objects {
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."))
			if p, ok := o.(*v1.Pod); ok && (p.Name != "here" || p.Spec.Containers[0].Resources.Requests.Cpu().Value() != 1) {
				t.Errorf("pod %+v", p)
			}
			if n, ok := o.(*v1.Node); ok && n.Status.Allocatable.Cpu().Value() != 4 {
				t.Errorf("node %+v", n)
			}
		}
		if strings.Join(got, " ") != "Node Pod PodDisruptionBudget" {
			t.Errorf("objects: %v", got)
		}
		if len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "1 pod(s) on nodes that are not in the input are ignored, such as default/lost on n2") ||
			!strings.Contains(r.Notes[1], "1 object(s) of kind ConfigMap") {
			t.Errorf("notes: %q", r.Notes)
		}
		if len(r.Arrivals) != 1 || r.Arrivals[0].At != 90*time.Second {
			t.Errorf("arrivals: %+v", r.Arrivals)
		}
	}
	runs, err := scenario.Load([]string{write(t, "dump.yaml", dump)})
	if err != nil {
		t.Fatal(err)
	}
	check(runs[0])
	// The same as JSON, beside a scenario.
	text := `{"apiVersion":"v1","kind":"List","metadata":{},"items":[
 {"kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}},
 {"kind":"Pod","metadata":{"name":"here"},"spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running"}},
 {"kind":"Pod","metadata":{"name":"lost"},"spec":{"nodeName":"n2"}},
 {"kind":"ConfigMap","metadata":{"name":"x"}},
 {"kind":"PodDisruptionBudget","metadata":{"name":"b"}}]}
{"kind":"Pod","metadata":{"name":"late","annotations":{"berth.dev/arrive-after":"90s"}}}`
	runs, err = scenario.Load([]string{write(t, "dump.json", text), write(t, "s.yaml", head+"  seed: 7\n")})
	if err != nil {
		t.Fatal(err)
	}
	check(runs[0])
	if runs[0].Spec.Seed != 7 {
		t.Errorf("seed %d", runs[0].Spec.Seed)
	}
	for _, c := range []struct{ text, want string }{
		{text[:len(text)-len(text)/2], "the file ends in the middle of an object; was it cut off?"},
		{strings.Replace(text, `"lost"`, `"here"`, 1), ":4: Pod default/here is given twice"},
		{strings.Replace(text, `"cpu":"1"`, `"cpu":"1x"`, 1), ":3: Pod /here: quantities must match"},
		{strings.Replace(dump, "  kind: ConfigMap", "  sort: ConfigMap", 1), "dump:36: kind is missing"},
		{strings.Replace(dump, "berth.dev/arrive-after: 90s", "berth.dev/arrive-after: soon", 1), `annotation berth.dev/arrive-after is "soon"`},
		{strings.Replace(dump, "{phase: Running}", "{phase: Running", 1), "dump:13: the object that begins here can't be parsed"},
		{dump[:strings.Index(dump, "kind: List")], "dump:43: the list of items has no end; was the file cut off?"},
		{"", "the file is empty"},
		{"just words\n", "dump:1: this is not a Kubernetes object"},
	} {
		if _, err := scenario.Load([]string{write(t, "dump", c.text)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant …%s…", err, c.want)
		}
	}
	runs, err = scenario.Load([]string{write(t, "s.yaml", head+group)})
	if err != nil || len(runs[0].Notes) != 1 || !strings.Contains(runs[0].Notes[0], "there is no workload") {
		t.Errorf("an empty workload: %v, notes %v", err, runs[0].Notes)
	}
}

// TestATracesFolderIsAddedLikeAManifest adds a trace of one node and two pods, of which one
// comes a minute later, to a scenario.
func TestATracesFolderIsAddedLikeAManifest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"s.yaml":       `{"apiVersion": "berth.dev/v1alpha1", "kind": "Scenario"}`,
		openb.NodeFile: "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\n",
		openb.PodFile:  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time\na,1000,1024,0,0,100\nb,1000,1024,0,0,160\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := scenario.Load([]string{filepath.Join(dir, "s.yaml"), dir})
	if err != nil {
		t.Fatal(err)
	}
	r := runs[0]
	if len(runs) != 1 || len(r.Objects) != 1 || len(r.Arrivals) != 2 || r.Arrivals[1].At != time.Minute {
		t.Errorf("got %d runs with %d objects and the arrivals %+v; want one, with a node, and pods at 0s and 1m", len(runs), len(r.Objects), r.Arrivals)
	}
}

// TestPolicies runs one workload under two policies.
func TestPolicies(t *testing.T) {
	policy := func(name, flag string) string {
		return write(t, name+".yaml", "apiVersion: berth.dev/v1alpha1\nkind: Policy\nspec:\n  flags: ["+flag+"]\n")
	}
	s := write(t, "s.yaml", head+group+"  policy: {flags: [--max-nodes-total=9]}\n")
	runs, err := scenario.Load([]string{policy("quick", "--max-nodes-total=5"), s, policy("slow", "--max-nodes-total=6")})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 2 || runs[0].Name != "s under quick" || runs[0].Autoscale.Limits.MaxNodesTotal != 5 || runs[1].Autoscale.Limits.MaxNodesTotal != 6 {
		t.Errorf("%d runs: %+v", len(runs), runs[0])
	}
	for flag, want := range map[string]string{"--teapot": ".yaml:4: spec.flags: unknown flag: --teapot", "--max-nodes-total=-1": ".yaml:4: spec.flags: --max-nodes-total is -1"} {
		if _, err := scenario.Load([]string{s, policy("bad", flag)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := scenario.Load([]string{policy("alone", "--max-nodes-total=5")}); err == nil || !strings.Contains(err.Error(), "only policies") {
		t.Errorf("a policy alone: %v", err)
	}
}

func TestGroupsThatNoPodFitsAreNoted(t *testing.T) {
	text := head + group + "  workload: [{name: w, count: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: %d}}}]}}}]\n"
	for cpu, want := range map[int]int{4: 0, 5: 1} {
		r, err := scenario.Parse("s.yaml", []byte(fmt.Sprintf(text, cpu)))
		if err != nil || len(r.Notes) != want {
			t.Errorf("%d CPUs on nodes of 4: %v, notes %v", cpu, err, r.Notes)
		}
	}
}

func TestQuantilesAreOfTheNearestRank(t *testing.T) {
	var v []float64
	for i := range 100 {
		v = append(v, float64(99-i))
	}
	if q := scenario.QuantilesOf(v); q != (scenario.Quantiles{P50: 50, P90: 90, P99: 99, Max: 99}) {
		t.Errorf("%+v", q)
	}
	if q := scenario.QuantilesOf(nil); q != (scenario.Quantiles{}) {
		t.Errorf("of nothing: %+v", q)
	}
}

// TestStableNames holds the JSON names that people's scripts read.
func TestStableNames(t *testing.T) {
	raw, err := json.Marshal(&scenario.Summary{})
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`pods.total pods.bound pods.completed pods.pending pods.toCome pods.evicted pods.preempted
		timeToBound.p50 timeToBound.p99 timeToBound.max timeToRunning.p50 timeToRunning.p99 timeToRunning.max
		nodes.peak nodes.launched nodes.failedLaunches nodes.cancelledLaunches nodes.final nodeHours cost utilization.cpu utilization.memory
		pdbViolations churn virtualSeconds wallSeconds digest`) {
		var at any = tree
		for _, part := range strings.Split(name, ".") {
			m, ok := at.(map[string]any)
			if !ok {
				t.Fatalf("%s: %v is no object", name, at)
			}
			if at, ok = m[part]; !ok {
				t.Errorf("%s is missing", name)
			}
		}
	}
}

// TestAPolicyHasTheRulesOfAVersion: the newest ones, unless it names another, for which its file is read, too.
func TestAPolicyHasTheRulesOfAVersion(t *testing.T) {
	for text, want := range map[string]compat.Version{
		"": compat.Newest, "  policy: {emulatedVersion: '1.36'}\n": compat.V36, "  policy: {emulatedVersion: kube=1.37}\n": compat.V37,
	} {
		r, err := scenario.Parse("s.yaml", []byte(head+text))
		if err != nil {
			t.Fatal(err)
		}
		if schema, _ := r.Scheduler.Build(); schema.Version() != want {
			t.Errorf("%q: the rules are those of %s, want %s", text, schema.Version(), want)
		}
	}
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: {podGroupPostFilter: {}}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, v := range compat.Versions() {
		_, err := scenario.Parse("s.yaml", fmt.Appendf(nil, "%s  policy: {emulatedVersion: %q, schedulerConfig: %q}\n", head, v, path))
		if refused := err != nil; refused != (v == compat.V36) {
			t.Errorf("under %s the file of 1.37 gives %v", v, err)
		}
	}
}
