package conformance_test

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
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/devcluster/oracle"
)

// This file has Berth and kube-scheduler answer the tables of testdata/cases, which
// people wrote or random search found. What must hold: both answer what the case wants,
// and the same in everything else, too.

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
	UID                   types.UID // "" is made up
	Nominated             string
	Started               *int64 // in seconds
	Labels                map[string]string
	Count                 int
	Terminating           bool
	Claims                []string
	// Devices are the claims that were made of templates for the pod.
	Devices []v1.PodResourceClaimStatus
	Spec    v1.PodSpec
}

type caseOf struct {
	Name    string
	Version string // 1.36 or 1.37, of a case that only this version answers so; "" for all
	Cluster string
	Nodes   []caseNode
	Pods    []casePod
	Objects []map[string]any
	Config  string // a KubeSchedulerConfiguration without apiVersion and kind
	Claims  []string
	Pod     casePod
	Want    struct {
		Feasible []string
		Best     []string // those of the highest score, when it matters
		Message  string   // when nothing is feasible and it matters; without preemption's part unless it has one
		Chosen   string   // the node that preemption chooses
		Victims  []string // the pods that preemption deletes there
	}
}

// TestCases: both schedulers answer the tables as they want it. The tables hold
// behaviours that kube-scheduler's own tests fix, and mismatches that random search found.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	eachVersion(t, func(t *testing.T, v compat.Version) { testCases(t, v, files) })
}

// testCases evaluates the cases of some files under the rules of a version.
func testCases(t *testing.T, v compat.Version, files []string) {
	byConfig := map[string]peer{}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file := caseFile{}
		if err := yaml.UnmarshalStrict(raw, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all := t // outlives the single cases
		for i := range file.Cases {
			c := &file.Cases[i]
			if c.Version != "" && c.Version != v.String() {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+"/"+c.Name, func(t *testing.T) {
				text, o := "", plugins.Options{}
				if c.Config != "" {
					text = head + c.Config
					cfg, err := config.Parse([]byte(text), v)
					if err != nil {
						t.Fatal(err)
					}
					o = cfg.Profiles[0]
				}
				if _, ok := byConfig[c.Config]; !ok {
					if byConfig[c.Config], err = peerOf(all, v, text); err != nil {
						t.Fatal(err)
					}
				}
				in, pod := c.build(t, &file)
				c.check(t, byConfig[c.Config], o, in, pod)
			})
		}
	}
}

// check has both schedulers answer about the pod in the cluster, and compares their
// outcomes with each other and with what the case wants.
func (c *caseOf) check(t *testing.T, upstream peer, o plugins.Options, in *oracle.Cluster, pod *v1.Pod) {
	t.Helper()
	if err := upstream.Set(in); err != nil {
		t.Fatal(err)
	}
	theirs, err := upstream.Evaluate(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	state, e := stateOf(upstream.version, in, o)
	ours := berthOutcome(state, e, pod)
	if problem := difference(in, theirs, ours); problem != "" {
		t.Error(problem)
	}
	c.checkWanted(t, "kube-scheduler", in, theirs)
	c.checkWanted(t, "Berth", in, ours)
}

// checkWanted compares an outcome with what the case wants. What the case doesn't say
// isn't compared.
func (c *caseOf) checkWanted(t *testing.T, scheduler string, in *oracle.Cluster, got *oracle.Outcome) {
	t.Helper()
	var feasible, best []string
	top := int64(-1)
	for _, n := range in.Nodes {
		a := got.Nodes[n.Name]
		if !a.OK {
			continue
		}
		feasible = append(feasible, n.Name)
		if a.Total > top {
			best, top = nil, a.Total
		}
		if a.Total == top {
			best = append(best, n.Name)
		}
	}
	if !slices.Equal(feasible, c.Want.Feasible) && len(feasible)+len(c.Want.Feasible) > 0 {
		t.Errorf("%s: feasible %v, want %v: %s", scheduler, feasible, c.Want.Feasible, got.Message)
	}
	if c.Want.Best != nil && !slices.Equal(best, c.Want.Best) {
		t.Errorf("%s: best %v, want %v", scheduler, best, c.Want.Best)
	}
	message := strings.TrimSuffix(got.Message, " not found") // of DynamicResources; see difference
	if !strings.Contains(c.Want.Message, " preemption: ") {
		message, _, _ = strings.Cut(message, " preemption: ")
	}
	if got.Chosen != c.Want.Chosen && (c.Want.Chosen != "" || len(c.Want.Victims) > 0) || c.Want.Victims != nil && !slices.Equal(got.Victims[got.Chosen].Pods, c.Want.Victims) {
		t.Errorf("%s: preempts %v on %q of %v, want %v on %q", scheduler, got.Victims[got.Chosen].Pods, got.Chosen, got.Victims, c.Want.Victims, c.Want.Chosen)
	}
	if c.Want.Message != "" && message != c.Want.Message {
		t.Errorf("%s: got the message %q, want %q", scheduler, message, c.Want.Message)
	}
}

// build returns the case's cluster and its pod.
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
	if p.UID != "" {
		out.UID = p.UID
	}
	out.Status.ResourceClaimStatuses = p.Devices
	if p.Started != nil {
		at := metav1.NewTime(time.Unix(*p.Started, 0))
		out.Status.StartTime = &at
	}
	out.Status.NominatedNodeName = p.Nominated
	if p.Terminating {
		at := metav1.NewTime(time.Unix(1, 0))
		out.DeletionTimestamp = &at
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

// objectOf decodes an object of one of the kinds that rules about volumes, devices and
// preemption read.
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
	case "ResourceClaim":
		o = &resourcev1.ResourceClaim{}
	case "ResourceSlice":
		o = &resourcev1.ResourceSlice{}
	case "DeviceClass":
		o = &resourcev1.DeviceClass{}
	case "DeviceTaintRule":
		o = &resourcev1.DeviceTaintRule{}
	default:
		t.Fatalf("kind %v", raw["kind"])
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, o); err != nil {
		t.Fatal(err)
	}
	return o
}
