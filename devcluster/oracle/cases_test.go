package oracle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/devcluster/oracle"
)

// caseFile is a table of cases in testdata/cases.
type caseFile struct {
	Clusters map[string][]caseNode
	Objects  []map[string]any // of every case
	Cases    []caseOf
}

type caseNode struct {
	Name          string
	Labels        map[string]string
	Taints        []v1.Taint
	Unschedulable bool
	Allocatable   map[string]string
	Images        []v1.ContainerImage
	Features      []string
}

type casePod struct {
	Name, Node, Namespace string
	Nominated             string
	Started               *int64 // in seconds
	Labels                map[string]string
	Count                 int
	Terminating           bool
	Claims                []string
	Spec                  v1.PodSpec
}

type caseOf struct {
	Name    string
	Cluster string
	Nodes   []caseNode
	Pods    []casePod
	Objects []map[string]any
	Config  string // what a KubeSchedulerConfiguration says, without its head
	Claims  []string
	Pod     casePod
	Want    struct {
		Feasible []string
		Best     []string // those of the highest score, when it matters
		Message  string   // when nothing is feasible and it matters; without preemption's part unless it has one
		Chosen   string   // where others have to leave, and
		Victims  []string // who
	}
}

// TestCases has both schedulers judge the tables: behaviours that
// kube-scheduler's own tests pin down, and what random search has found.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	judges := map[string]*oracle.Judge{}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file := caseFile{}
		if err := yaml.UnmarshalStrict(raw, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i := range file.Cases {
			c := &file.Cases[i]
			t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+"/"+c.Name, func(t *testing.T) {
				judge := judges[c.Config]
				text, o := "", plugins.Options{}
				if c.Config != "" {
					text = head + c.Config
					cfg, err := config.Parse([]byte(text))
					if err != nil {
						t.Fatal(err)
					}
					o = cfg.Profiles[0]
				}
				if judge == nil {
					if judge, err = oracle.New(t.Context(), text); err != nil {
						t.Fatal(err)
					}
					judges[c.Config] = judge
				}
				world, pod := c.build(t, &file)
				decide(t, c, judge, o, world, pod)
			})
		}
	}
}

func decide(t *testing.T, c *caseOf, judge *oracle.Judge, o plugins.Options, world *oracle.Cluster, pod *v1.Pod) {
	t.Helper()
	if err := judge.Set(world); err != nil {
		t.Fatal(err)
	}
	theirs, err := judge.Judge(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	state, e := berth(world, o)
	mine := verdicts(state, e, pod)
	if problem := disagree(world, theirs, mine); problem != "" {
		t.Error(problem)
	}
	for who, got := range map[string]*oracle.Outcome{"kube-scheduler": theirs, "Berth": mine} {
		var feasible, best []string
		top := int64(-1)
		for _, n := range world.Nodes {
			v := got.Nodes[n.Name]
			if !v.OK {
				continue
			}
			feasible = append(feasible, n.Name)
			if v.Total > top {
				best, top = nil, v.Total
			}
			if v.Total == top {
				best = append(best, n.Name)
			}
		}
		if !slices.Equal(feasible, c.Want.Feasible) && len(feasible)+len(c.Want.Feasible) > 0 {
			t.Errorf("%s: feasible %v, want %v: %s", who, feasible, c.Want.Feasible, got.Message)
		}
		if c.Want.Best != nil && !slices.Equal(best, c.Want.Best) {
			t.Errorf("%s: best %v, want %v", who, best, c.Want.Best)
		}
		message := got.Message
		if !strings.Contains(c.Want.Message, " preemption: ") {
			message, _, _ = strings.Cut(message, " preemption: ")
		}
		if got.Chosen != c.Want.Chosen && (c.Want.Chosen != "" || len(c.Want.Victims) > 0) || c.Want.Victims != nil && !slices.Equal(got.Victims[got.Chosen].Pods, c.Want.Victims) {
			t.Errorf("%s: preempts %v on %q of %v, want %v on %q", who, got.Victims[got.Chosen].Pods, got.Chosen, got.Victims, c.Want.Victims, c.Want.Chosen)
		}
		if c.Want.Message != "" && message != c.Want.Message {
			t.Errorf("%s: told %q, want %q", who, message, c.Want.Message)
		}
	}
}

func (c *caseOf) build(t *testing.T, file *caseFile) (*oracle.Cluster, *v1.Pod) {
	t.Helper()
	w := &oracle.Cluster{}
	nodes := c.Nodes
	if c.Cluster != "" {
		nodes = file.Clusters[c.Cluster]
	}
	for i := range nodes {
		w.Nodes = append(w.Nodes, nodes[i].object())
	}
	for i := range c.Pods {
		for k := range max(1, c.Pods[i].Count) {
			p := c.Pods[i].object(fmt.Sprintf("existing-%d-%d", i, k))
			if p.Status.NominatedNodeName != "" {
				w.Nominated = append(w.Nominated, p)
				continue
			}
			w.Pods = append(w.Pods, p)
		}
	}
	named := map[string]bool{}
	for _, raw := range append(slices.Clone(c.Objects), file.Objects...) {
		o := objectOf(t, raw)
		key := fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
		if !named[key] {
			w.Objects = append(w.Objects, o)
		}
		named[key] = true
	}
	c.Pod.Claims = append(c.Pod.Claims, c.Claims...)
	return w, c.Pod.object("pod")
}

func (n *caseNode) object() *v1.Node {
	out := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	out.Spec.Taints, out.Spec.Unschedulable = n.Taints, n.Unschedulable
	out.Status.Images, out.Status.DeclaredFeatures = n.Images, n.Features
	out.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("110")}
	for name, q := range n.Allocatable {
		out.Status.Allocatable[v1.ResourceName(name)] = resource.MustParse(q)
	}
	return out
}

func (p *casePod) object(name string) *v1.Pod {
	out := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("pod-" + name), Labels: p.Labels}, Spec: p.Spec}
	if p.Namespace != "" {
		out.Namespace = p.Namespace
	}
	if p.Name != "" {
		out.Name = p.Name
	}
	if p.Started != nil {
		at := metav1.NewTime(time.Unix(*p.Started, 0))
		out.Status.StartTime = &at
	}
	out.Status.NominatedNodeName = p.Nominated
	if p.Terminating {
		out.DeletionTimestamp = &metav1.Time{}
	}
	if p.Node != "" {
		out.Spec.NodeName = p.Node
	}
	out.Spec.SchedulerName = v1.DefaultSchedulerName
	if out.Spec.Containers == nil {
		out.Spec.Containers = []v1.Container{{Name: "c"}}
	}
	for _, c := range p.Claims {
		out.Spec.Volumes = append(out.Spec.Volumes, v1.Volume{Name: c, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	return out
}

func objectOf(t *testing.T, raw map[string]any) cluster.Object {
	t.Helper()
	var o cluster.Object
	switch raw["kind"] {
	case "Namespace":
		o = &v1.Namespace{}
	case "PersistentVolumeClaim":
		o = &v1.PersistentVolumeClaim{}
	case "PersistentVolume":
		o = &v1.PersistentVolume{}
	case "StorageClass":
		o = &storagev1.StorageClass{}
	case "CSINode":
		o = &storagev1.CSINode{}
	case "CSIDriver":
		o = &storagev1.CSIDriver{}
	case "CSIStorageCapacity":
		o = &storagev1.CSIStorageCapacity{}
	case "PodDisruptionBudget":
		o = &policyv1.PodDisruptionBudget{}
	case "VolumeAttachment":
		o = &storagev1.VolumeAttachment{}
	default:
		t.Fatalf("kind %v", raw["kind"])
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, o); err != nil {
		t.Fatal(err)
	}
	return o
}
