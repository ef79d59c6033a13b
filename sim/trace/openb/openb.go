// Package openb reads the openb traces of a production GPU cluster (the data
// of "Beware of Fragmentation", USENIX ATC 2023) as Kubernetes objects.
//
// What must hold: a trace is read completely or refused, and an error names the file, the
// line, the column and the value. Columns are found by name, in any order.
package openb

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The names of the trace's GPUs in Kubernetes: whole ones and thousandths as resources, the
// model as a label of nodes.
const (
	GPUCount = v1.ResourceName("alibabacloud.com/gpu-count")
	GPUMilli = v1.ResourceName("alibabacloud.com/gpu-milli")
	GPUModel = "alibabacloud.com/gpu-card-model"
)

// The files of a trace.
const (
	NodeFile = "openb_node_list_all_node.csv"
	PodFile  = "openb_pod_list_default.csv"
)

// Node is a row of the node list. GPU is a number of GPUs.
type Node struct {
	Name                     string
	CPUMilli, MemoryMiB, GPU int64
	Model                    string // of its GPUs, "" when it has none
}

// Pod is a row of the pod list. GPUMilli is thousandths of each of its GPUs. Times are in
// seconds from the start of the trace; DeletionTime is 0 for a pod that was not deleted.
type Pod struct {
	Name                       string
	CPUMilli, MemoryMiB        int64
	NumGPU, GPUMilli           int64
	GPUSpec                    []string // acceptable models, empty for any
	QoS                        string
	CreationTime, DeletionTime int64
}

// nodeColumns and podColumns are the columns of the files, and optional those that may be
// absent, as they are from lists that the trace's authors publish beside the first: fields
// of these may be empty in the lists that have them.
var (
	nodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	podColumns  = []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"}
	optional    = []string{"gpu_spec", "qos", "pod_phase", "deletion_time", "scheduled_time"}
)

// Trace is a cluster and the pods that came to it, in order of arrival.
type Trace struct {
	Nodes []Node
	Pods  []Pod
}

// Load reads both files of a directory. Pods with equal creation times keep the order of the
// file.
func Load(dir string) (*Trace, error) {
	t := &Trace{}
	err := read(filepath.Join(dir, NodeFile), nodeColumns, func(r row) error {
		n := Node{Name: r.text("sn"), CPUMilli: r.number("cpu_milli"), MemoryMiB: r.number("memory_mib"), GPU: r.number("gpu"), Model: r.text("model")}
		t.Nodes = append(t.Nodes, n)
		return r.named(n.Name)
	})
	if err != nil {
		return nil, err
	}
	err = read(filepath.Join(dir, PodFile), podColumns, func(r row) error {
		p := Pod{
			Name: r.text("name"), CPUMilli: r.number("cpu_milli"), MemoryMiB: r.number("memory_mib"),
			NumGPU: r.number("num_gpu"), GPUMilli: r.number("gpu_milli"), QoS: r.text("qos"),
			CreationTime: r.number("creation_time"), DeletionTime: r.number("deletion_time"),
		}
		if spec := r.text("gpu_spec"); spec != "" {
			p.GPUSpec = strings.Split(spec, "|")
		}
		t.Pods = append(t.Pods, p)
		return r.named(p.Name)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(t.Pods, func(a, b Pod) int { return cmp.Compare(a.CreationTime, b.CreationTime) })
	return t, nil
}

// row is one line of a file.
type row struct {
	at     map[string]int // index in fields, by column
	fields []string
	errs   *[]error // what is wrong with the line so far
}

// text returns the value of a column that read was asked for; "" if the file doesn't have
// it.
func (r row) text(column string) string {
	i, ok := r.at[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(r.fields[i])
}

// number returns a column that has a number of at least 0, fractions cut off.
func (r row) number(column string) int64 {
	s := r.text(column)
	if s == "" && strings.HasSuffix(column, "_time") {
		return 0 // not every pod was deleted or scheduled
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || v > 1<<50 {
		*r.errs = append(*r.errs, fmt.Errorf("column %s is %q; it must be a number of at least 0", column, s))
		return 0
	}
	return int64(v)
}

// named returns all that is wrong with the line whose object has this name.
func (r row) named(name string) error {
	if name == "" {
		*r.errs = append(*r.errs, errors.New("the name is empty; every row needs a name"))
	}
	return errors.Join(*r.errs...)
}

// read calls f for each row of a file, which must have the columns in want but for those
// that are optional, and no others.
func read(path string, want []string, f func(row) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the trace: %w", err)
	}
	defer file.Close()
	in := csv.NewReader(file)
	at, err := columns(path, in, want)
	if err != nil {
		return err
	}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err) // names the line
		}
		var errs []error
		if err := f(row{at, fields, &errs}); err != nil {
			line, _ := in.FieldPos(0)
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
}

// columns reads the header, and returns the index of each column.
func columns(path string, in *csv.Reader, want []string) (map[string]int, error) {
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: reading the header: %w", path, err)
	}
	at := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if !slices.Contains(want, name) {
			return nil, fmt.Errorf("%s:1: unknown column %q; the columns are %s", path, name, strings.Join(want, ", "))
		}
		at[name] = i
	}
	for _, name := range want {
		if _, ok := at[name]; !ok && !slices.Contains(optional, name) {
			return nil, fmt.Errorf("%s:1: column %q is missing; the columns are %s", path, name, strings.Join(want, ", "))
		}
	}
	return at, nil
}

// quantities returns a list of CPU, in thousandths of a core, and memory, in MiB.
func quantities(cpuMilli, memoryMiB int64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(cpuMilli, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(memoryMiB<<20, resource.BinarySI),
	}
}

// Object returns the node as a Kubernetes object that is ready.
func (n *Node) Object() *v1.Node {
	obj := &v1.Node{}
	obj.Name = n.Name
	obj.Labels = map[string]string{v1.LabelHostname: n.Name}
	list := quantities(n.CPUMilli, n.MemoryMiB)
	list[v1.ResourcePods] = *resource.NewQuantity(110, resource.DecimalSI)
	if n.GPU > 0 {
		list[GPUCount] = *resource.NewQuantity(n.GPU, resource.DecimalSI)
		list[GPUMilli] = *resource.NewQuantity(n.GPU*1000, resource.DecimalSI)
	}
	if n.Model != "" {
		obj.Labels[GPUModel] = n.Model
	}
	obj.Status.Capacity, obj.Status.Allocatable = list, list
	obj.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}
	return obj
}

// Object returns the pod as a Kubernetes object. A pod with whole GPUs requests their count
// and their thousandths; one with a part of a GPU requests thousandths only, so that others
// may share the GPU. The device plugin chooses the device, not the scheduler.
func (p *Pod) Object(namespace string) *v1.Pod {
	obj := &v1.Pod{}
	obj.Namespace, obj.Name = namespace, p.Name
	obj.Labels = map[string]string{"qos": strings.ToLower(p.QoS)}
	list := quantities(p.CPUMilli, p.MemoryMiB)
	if p.NumGPU > 0 && p.GPUMilli > 0 {
		list[GPUMilli] = *resource.NewQuantity(p.NumGPU*p.GPUMilli, resource.DecimalSI)
		if p.GPUMilli >= 1000 {
			list[GPUCount] = *resource.NewQuantity(p.NumGPU, resource.DecimalSI)
		}
	}
	obj.Spec.RestartPolicy = v1.RestartPolicyNever
	obj.Spec.Containers = []v1.Container{{
		Name: "main", Image: "openb", Resources: v1.ResourceRequirements{Requests: list, Limits: extended(list)},
	}}
	if len(p.GPUSpec) > 0 {
		obj.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: GPUModel, Operator: v1.NodeSelectorOpIn, Values: p.GPUSpec}},
			}}},
		}}
	}
	return obj
}

// extended returns the extended resources of a list: the API server requires that their
// limits equal their requests.
func extended(list v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for name, q := range list {
		if strings.Contains(string(name), "/") {
			out[name] = q
		}
	}
	return out
}
