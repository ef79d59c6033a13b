package clusterapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/door"
)

// This file makes the template of a group from the capacity annotations of its object: what a new
// node looks like when there is none to look at.

// The names of the capacity annotations. That of CSI drivers is nodegroup.CSIDriversAnnotation.
const (
	capacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/"
	cpuKey         = capacityPrefix + "cpu"
	memoryKey      = capacityPrefix + "memory"
	diskKey        = capacityPrefix + "ephemeral-disk"
	maxPodsKey     = capacityPrefix + "maxPods"
	gpuTypeKey     = capacityPrefix + "gpu-type"
	gpuCountKey    = capacityPrefix + "gpu-count"
	draDriverKey   = capacityPrefix + "dra-driver"
	labelsKey      = capacityPrefix + "labels"
	taintsKey      = capacityPrefix + "taints"
)

// defaultMaxPods is how many pods a node takes when its group doesn't say.
const defaultMaxPods = 110

// DefaultArch is the architecture of new nodes unless their labels say another.
const DefaultArch = "amd64"

// template returns what a new node of an object's group looks like. The error names each annotation
// that is missing or can't be read, with what would be accepted. arch is the architecture of nodes
// that don't say.
//
// Labels are those that Cluster API copies from Machines to nodes, then those of the annotation, which
// win. A template that is wrong keeps the group from growing from zero only: once it has a node, that
// one is the model.
func template(o *scalable, arch string) (*v1.Node, error) {
	c := capacity{annotations: o.Annotations, allocatable: v1.ResourceList{}}
	c.quantity(cpuKey, v1.ResourceCPU, required)
	c.quantity(memoryKey, v1.ResourceMemory, required)
	c.quantity(diskKey, v1.ResourceEphemeralStorage, optional)
	c.pods()
	c.gpus()
	n := &v1.Node{}
	n.Labels = map[string]string{v1.LabelArchStable: arch, v1.LabelOSStable: "linux"}
	for key, value := range o.Spec.Template.Metadata.Labels {
		if propagated(key) {
			n.Labels[key] = value
		}
	}
	maps.Copy(n.Labels, c.labels())
	n.Spec.Taints = c.taints(o.Spec.Template.Spec.Taints)
	if drivers := o.Annotations[nodegroup.CSIDriversAnnotation]; drivers != "" {
		n.Annotations = map[string]string{nodegroup.CSIDriversAnnotation: drivers}
	}
	n.Status.Allocatable, n.Status.Capacity = c.allocatable, c.allocatable
	if len(c.wrong) > 0 {
		return nil, errors.New(strings.Join(c.wrong, "; "))
	}
	if _, err := nodegroup.CSIDrivers(n); err != nil {
		return nil, err
	}
	return n, nil
}

// capacity is what is read of annotations. Its methods read on after a fault, so that a person learns
// of all of them at once.
type capacity struct {
	annotations map[string]string
	allocatable v1.ResourceList
	wrong       []string // what is wrong with them
}

// need says whether an annotation may be missing.
type need bool

const (
	optional need = false
	required need = true
)

// refuse records that an annotation can't be used.
func (c *capacity) refuse(key, want string) {
	c.wrong = append(c.wrong, fmt.Sprintf("annotation %s is %q; it must be %s", key, c.annotations[key], want))
}

// quantity reads an amount of a resource.
func (c *capacity) quantity(key string, name v1.ResourceName, need need) {
	raw := c.annotations[key]
	if raw == "" {
		if need == required {
			c.wrong = append(c.wrong, fmt.Sprintf("annotation %s is missing; without it the group can't be scaled up from zero", key))
		}
		return
	}
	q, err := door.Amount(raw)
	if err != nil || q.Sign() <= 0 {
		c.refuse(key, "a quantity above 0, such as 4 or 16Gi")
		return
	}
	c.allocatable[name] = q
}

// count reads a whole number of at least 0; ok is false when there is none.
func (c *capacity) count(key string) (n int64, ok bool) {
	raw := c.annotations[key]
	if raw == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(raw, 10, 32)
	if err != nil || n < 0 {
		c.refuse(key, "a whole number of at least 0")
		return 0, false
	}
	return n, true
}

// pods reads how many pods a node takes, which has a default: without it no pod would fit.
func (c *capacity) pods() {
	n, _ := c.count(maxPodsKey)
	if n == 0 { // as with Cluster Autoscaler, which takes 0 for not said
		n = defaultMaxPods
	}
	c.allocatable[v1.ResourcePods] = *resource.NewQuantity(n, resource.DecimalSI)
}

// gpus reads the number of GPUs and the resource that they are. With a DRA driver they are no
// resource of the node.
func (c *capacity) gpus() {
	name, driver := c.annotations[gpuTypeKey], c.annotations[draDriverKey]
	n, counted := c.count(gpuCountKey)
	switch {
	case name == "" && counted && n > 0 && driver == "":
		c.wrong = append(c.wrong, fmt.Sprintf("annotation %s is missing beside %s; it must be the name of a resource, such as nvidia.com/gpu", gpuTypeKey, gpuCountKey))
	case !counted || n == 0:
	case driver != "" && (len(validation.IsDNS1123Subdomain(driver)) > 0 || len(driver) > resourcev1.DriverNameMaxLength):
		c.refuse(draDriverKey, fmt.Sprintf("a DNS name of at most %d characters, such as gpu.nvidia.com", resourcev1.DriverNameMaxLength))
	case driver != "" && n > resourcev1.ResourceSliceMaxDevices:
		c.refuse(gpuCountKey, fmt.Sprintf("at most %d beside %s", resourcev1.ResourceSliceMaxDevices, draDriverKey))
	case name == "":
	case len(validation.IsQualifiedName(name)) > 0 || !strings.Contains(name, "/"):
		c.refuse(gpuTypeKey, "the name of a resource, such as nvidia.com/gpu")
	default:
		c.allocatable[v1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
}

// devices returns the slice that a DRA driver will publish on a new node of an object's group, whose
// annotations template has accepted; nil without a driver. As with Cluster Autoscaler, its devices have
// the type gpu, and no more is known of them.
func devices(o *scalable) []resourcev1.ResourceSlice {
	c := capacity{annotations: o.Annotations}
	driver := o.Annotations[draDriverKey]
	n, _ := c.count(gpuCountKey)
	if driver == "" || n == 0 {
		return nil
	}
	kind := "gpu"
	out := resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: driver}}
	for i := range n {
		out.Spec.Devices = append(out.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}})
	}
	return []resourcev1.ResourceSlice{out}
}

// parts returns the parts of a list with commas, without empty ones.
func (c *capacity) parts(key string) []string {
	var out []string
	for part := range strings.SplitSeq(c.annotations[key], ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// labels reads the labels that new nodes will have. They are written by whoever makes the group: what
// isn't a label is refused here, before it becomes part of a node.
func (c *capacity) labels() map[string]string {
	out := map[string]string{}
	for _, part := range c.parts(labelsKey) {
		key, value, found := strings.Cut(part, "=")
		if !found || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			c.refuse(labelsKey, fmt.Sprintf("a list of labels, KEY=VALUE,KEY=VALUE, and %q is not one", part))
			continue
		}
		out[key] = value
	}
	return out
}

// taints returns those of an object with those of the annotation, which counts more.
func (c *capacity) taints(spec []v1.Taint) []v1.Taint {
	var out []v1.Taint
	add := func(t v1.Taint) {
		if i := slices.IndexFunc(out, func(x v1.Taint) bool { return x.Key == t.Key && x.Effect == t.Effect }); i >= 0 {
			out[i] = t
			return
		}
		out = append(out, t)
	}
	for _, t := range spec {
		add(v1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	for _, part := range c.parts(taintsKey) {
		rest, effect, _ := strings.Cut(part, ":")
		key, value, _ := strings.Cut(rest, "=")
		switch t := (v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}); {
		case len(validation.IsQualifiedName(key)) > 0, len(validation.IsValidLabelValue(value)) > 0,
			t.Effect != v1.TaintEffectNoSchedule && t.Effect != v1.TaintEffectPreferNoSchedule && t.Effect != v1.TaintEffectNoExecute:
			c.refuse(taintsKey, fmt.Sprintf("a list of taints, KEY=VALUE:EFFECT,KEY:EFFECT, and %q is not one", part))
		default:
			add(t)
		}
	}
	return out
}

// propagated reports whether Cluster API gives a label of Machines to their nodes.
func propagated(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	for _, d := range []string{"node-restriction.kubernetes.io", "node.cluster.x-k8s.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return domain == "node-role.kubernetes.io"
}
