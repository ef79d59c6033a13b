package openb_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/trace/openb"
)

// This file specifies which objects rows of the trace become, and which files are refused.

const (
	nodeHead = "sn,cpu_milli,memory_mib,gpu,model\n"
	podHead  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)

func load(t *testing.T, nodes, pods string) (*openb.Trace, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{openb.NodeFile: nodes, openb.PodFile: pods} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openb.Load(dir)
}

func TestObjects(t *testing.T) {
	trace, err := load(t, nodeHead+"n0,32000,262144,2,T4\n",
		podHead+"late,1000,1024,1,460,,LS,Running,20,,\n"+"early,2000,2048,2,1000,T4|P100,BE,Running,10,30,10\n")
	if err != nil {
		t.Fatal(err)
	}
	n := trace.Nodes[0].Object()
	if got := n.Status.Allocatable[openb.GPUMilli]; got.Value() != 2000 || n.Labels[openb.GPUModel] != "T4" {
		t.Errorf("node is %+v", n)
	}
	whole, part := trace.Pods[0].Object("x"), trace.Pods[1].Object("x")
	if whole.Name != "early" || part.Name != "late" {
		t.Errorf("pods come in the order %s, %s; want the order of arrival", whole.Name, part.Name)
	}
	requests := func(p *v1.Pod, name v1.ResourceName) int64 {
		q := p.Spec.Containers[0].Resources.Requests[name]
		return q.Value()
	}
	if requests(whole, openb.GPUCount) != 2 || requests(whole, openb.GPUMilli) != 2000 || requests(part, openb.GPUCount) != 0 || requests(part, openb.GPUMilli) != 460 {
		t.Errorf("requests are %v and %v", whole.Spec.Containers[0].Resources, part.Spec.Containers[0].Resources)
	}
	terms := whole.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if got := terms[0].MatchExpressions[0]; got.Key != openb.GPUModel || strings.Join(got.Values, ",") != "T4,P100" {
		t.Errorf("affinity is %+v", got)
	}
}

// TestAColumnWhoseFieldsMayBeEmptyMayBeAbsent reads a pod list without them, as the
// trace's authors publish some, and finds a pod that any GPU would do for.
func TestAColumnWhoseFieldsMayBeEmptyMayBeAbsent(t *testing.T) {
	trace, err := load(t, nodeHead, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time\na,1000,1024,1,460,20\n")
	if err != nil {
		t.Fatal(err)
	}
	want := openb.Pod{Name: "a", CPUMilli: 1000, MemoryMiB: 1024, NumGPU: 1, GPUMilli: 460, CreationTime: 20}
	if got := trace.Pods[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if affinity := trace.Pods[0].Object("x").Spec.Affinity; affinity != nil {
		t.Errorf("the pod has the affinity %+v, want none", affinity)
	}
}

func TestErrorsNameFileLineColumnAndValue(t *testing.T) {
	for _, c := range []struct{ nodes, pods, want string }{
		{nodeHead + "n0,many,1,0,\n", podHead, `openb_node_list_all_node.csv:2: column cpu_milli is "many"; it must be a number`},
		{nodeHead, podHead + "a,1,1,0,0,,LS,Running,0,0,0\nb,-1,1,0,0,,LS,Running,0,0,0\n", `openb_pod_list_default.csv:3: column cpu_milli is "-1"`},
		{nodeHead, podHead + "a,1,1\n", "record on line 2: wrong number of fields"},
		{"sn,cpu_milli,memory_mib,gpu,model,colour\n", podHead, `:1: unknown column "colour"; the columns are sn, cpu_milli`},
		{"sn,cpu_milli,memory_mib,gpu\n", podHead, `:1: column "model" is missing`},
		{nodeHead + ",1,1,0,\n", podHead, ":2: the name is empty"},
		{nodeHead, "name,memory_mib,num_gpu,gpu_milli,creation_time\n", `openb_pod_list_default.csv:1: column "cpu_milli" is missing`},
		{"", podHead, "reading the header"},
	} {
		if _, err := load(t, c.nodes, c.pods); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want …%s…", err, c.want)
		}
	}
	if _, err := openb.Load(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v for a missing directory", err)
	}
}

// TestSharedTrace reads the real trace, where it lies beside the repository.
func TestSharedTrace(t *testing.T) {
	dir := testkit.OpenbTrace(t, filepath.Join("..", "..", ".."))
	trace, err := openb.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Nodes) != 1523 || len(trace.Pods) != 8152 {
		t.Errorf("got %d nodes and %d pods, want 1523 and 8152", len(trace.Nodes), len(trace.Pods))
	}
}
