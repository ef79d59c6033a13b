package simulatedgroup_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file specifies the file of simulated node groups: what is refused with which message,
// and which nodes a group has.

const valid = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
seed: 3
groups:
- name: g
  min: 1
  max: 5
  pricePerHour: 0.25
  launchDelay: {min: 10s, max: 20s}
  startup: {min: 5s, max: 5s}
  failureRate: 0.1
  launchesPerSecond: 2
  template:
    labels: {disk: ssd, kubernetes.io/arch: arm64}
    annotations: {note: a}
    taints: [{key: gpu, effect: NoSchedule}]
    allocatable: {cpu: "4", memory: 8Gi, pods: "10"}
    images: [{names: [web], sizeBytes: 7}]
`

// load writes a file and loads it.
func load(t *testing.T, text string) (string, *simulatedgroup.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := simulatedgroup.Load(path)
	return path, f, err
}

// loaded returns the group of the valid file.
func loaded(t *testing.T) *simulatedgroup.GroupConfig {
	t.Helper()
	_, f, err := load(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	if f.Seed != 3 || len(f.Groups) != 1 {
		t.Fatalf("got %+v, want seed 3 and one group", f)
	}
	return &f.Groups[0]
}

func TestLoadRefusesByFieldValueAndRemedy(t *testing.T) {
	change := func(old, changed string) string {
		if strings.Count(valid, old) != 1 {
			t.Fatalf("%q isn't once in the valid file", old)
		}
		return strings.Replace(valid, old, changed, 1)
	}
	second := valid + "- name: g\n  max: 1\n  template: {allocatable: {cpu: 1, memory: 1, pods: 1}}\n"
	for _, c := range []struct{ name, text, want string }{
		{"another kind", change("kind: SimulatedNodeGroups", "kind: Groups"), `apiVersion is "berth.dev/v1alpha1" and kind "Groups"; they must be "berth.dev/v1alpha1" and "SimulatedNodeGroups"`},
		{"another version", change("berth.dev/v1alpha1", "berth.dev/v2"), `apiVersion is "berth.dev/v2" and kind "SimulatedNodeGroups"; they must be`},
		{"no group", valid[:strings.Index(valid, "groups:")], "groups is empty; give at least one group"},
		{"a group without a name", change("name: g", `name: ""`), "groups[0]: node group: name is empty; give each group a name"},
		{"a name twice", second, `groups[1]: name "g" is given twice; names must be unique`},
		{"a negative minimum", change("min: 1\n", "min: -1\n"), `groups[0]: node group "g": min is -1; it must not be negative`},
		{"more at least than at most", change("min: 1\n", "min: 9\n"), `groups[0]: node group "g": min 9 is greater than max 5; set min to at most 5`},
		{"nothing allocatable", change(`{cpu: "4", memory: 8Gi, pods: "10"}`, "{}"), `groups[0]: node group "g": template has no allocatable; set at least cpu, memory and pods`},
		{"a resource that is missing", change(`, memory: 8Gi`, ""), `template allocatable memory is "0"; it must be a positive quantity`},
		{"a negative quantity", change(`pods: "10"`, `pods: "-1"`), `template allocatable pods is "-1"; it must be a positive quantity`},
		{"a launch delay backwards", change("{min: 10s, max: 20s}", "{min: 10s, max: 9s}"), `groups[0] "g": launchDelay is 10s to 9s; it must be a range from a minimum of at least 0 to a maximum that is not less`},
		{"a negative startup", change("{min: 5s, max: 5s}", "{min: -5s, max: 5s}"), `groups[0] "g": startup is -5s to 5s; it must be a range from a minimum of at least 0`},
		{"two spans backwards", strings.NewReplacer("min: 10s", "min: 30s", "min: 5s", "min: 50s").Replace(valid), "launchDelay is 30s"},
		{"a probability above 1", change("failureRate: 0.1", "failureRate: 2"), `groups[0] "g": failureRate is 2; it must be from 0 to 1`},
		{"a negative probability", change("failureRate: 0.1", "failureRate: -1"), `groups[0] "g": failureRate is -1; it must be from 0 to 1`},
		{"a negative rate", change("launchesPerSecond: 2", "launchesPerSecond: -2"), `groups[0] "g": launchesPerSecond is -2; it must not be negative`},
		{"an unknown field", change("max: 5\n", "max: 5\n  colour: red\n"), `unknown field "colour"`},
		{"no YAML", "{", "did not find expected node content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, _, err := load(t, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got  %v\nwant …%s…, and the path %s", err, c.want, path)
			}
		})
	}
	if _, err := simulatedgroup.Load("/does/not/exist"); err == nil || !strings.Contains(err.Error(), "reading node groups: open /does/not/exist: no such file") {
		t.Errorf("a missing file: got %v, want its path", err)
	}
}

func TestGroupIsWhatTheAutoscalerSees(t *testing.T) {
	g := loaded(t).Group()
	if g.ID != "g" || g.Min != 1 || g.Max != 5 || g.Target != 0 || g.Price != 0.25 || g.Instances != nil {
		t.Errorf("got %+v, want g from 1 to 5 nodes, none asked for, at 0.25 an hour, without a list of instances", g)
	}
	if g.Template == nil || g.Template.Labels["disk"] != "ssd" || len(g.Template.Spec.Taints) != 1 {
		t.Errorf("the template is %+v, want a node of the group", g.Template)
	}
}

func TestNewNodeIsRegisteredAndNotReady(t *testing.T) {
	g := loaded(t)
	n := g.NewNode("n1")
	labels := map[string]string{
		simulatedgroup.GroupLabel: "g", v1.LabelHostname: "n1", v1.LabelOSStable: "linux",
		v1.LabelArchStable: "arm64", "disk": "ssd", // of the template
	}
	if n.Name != "n1" || !maps.Equal(n.Labels, labels) || n.Annotations["note"] != "a" || n.Spec.ProviderID != "simulated://g/n1" {
		t.Errorf("got %+v with provider ID %s, want labels %v", n.ObjectMeta, n.Spec.ProviderID, labels)
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "gpu" || len(n.Status.Images) != 1 || n.Status.Images[0].SizeBytes != 7 {
		t.Errorf("got taints %v and images %v, want those of the template", n.Spec.Taints, n.Status.Images)
	}
	for name, list := range map[string]v1.ResourceList{"allocatable": n.Status.Allocatable, "capacity": n.Status.Capacity} {
		if list.Cpu().Value() != 4 || list.Memory().Value() != 8<<30 || list.Pods().Value() != 10 {
			t.Errorf("%s is %v, want that of the template", name, list)
		}
	}
	if c := n.Status.Conditions; len(c) != 1 || c[0].Type != v1.NodeReady || c[0].Status != v1.ConditionFalse {
		t.Errorf("got conditions %v, want a node that isn't ready", c)
	}

	// What happens to one node must not reach the next.
	n.Labels["disk"], n.Annotations["note"], n.Spec.Taints[0].Key = "hdd", "b", "spot"
	if next := g.NewNode("n2"); next.Labels["disk"] != "ssd" || next.Annotations["note"] != "a" || next.Spec.Taints[0].Key != "gpu" {
		t.Errorf("after a change of one node, the next is %+v with %v", next.ObjectMeta, next.Spec.Taints)
	}
}

func TestSpanBetween(t *testing.T) {
	span := func(from, to time.Duration) simulatedgroup.Span {
		return simulatedgroup.Span{Min: metav1.Duration{Duration: from}, Max: metav1.Duration{Duration: to}}
	}
	for _, c := range []struct {
		span simulatedgroup.Span
		r    float64
		want time.Duration
	}{
		{span(10*time.Second, 20*time.Second), 0, 10 * time.Second},
		{span(10*time.Second, 20*time.Second), 0.25, 12500 * time.Millisecond},
		{span(10*time.Second, 20*time.Second), 0.5, 15 * time.Second},
		{span(5*time.Second, 5*time.Second), 0.75, 5 * time.Second},
		{span(0, 0), 0.75, 0},
	} {
		if got := c.span.Between(c.r); got != c.want {
			t.Errorf("%s to %s at %v: got %s, want %s", c.span.Min.Duration, c.span.Max.Duration, c.r, got, c.want)
		}
	}
}
