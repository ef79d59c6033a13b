package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core/autoscalingapi"
)

// oneGroup is a file of a node group.
const oneGroup = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- {name: g, max: 10, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`

var (
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	buffers  = schema.GroupVersionResource{Group: autoscalingapi.Group, Version: "v1beta1", Resource: "capacitybuffers"}
	requests = schema.GroupVersionResource{Group: autoscalingapi.Group, Version: "v1beta1", Resource: "provisioningrequests"}
	// workloads are Kueue's.
	workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads"}
)

// headroomCluster is a cluster with the definitions of what asks for headroom.
type headroomCluster struct {
	t       *testing.T
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// define creates the definitions, and waits until they are served.
func (h *headroomCluster) define(config *rest.Config) {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "headroom.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	if h.dynamic, err = dynamic.NewForConfig(config); err != nil {
		h.t.Fatal(err)
	}
	for dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := dec.Decode(o); err == io.EOF {
			break
		} else if err != nil {
			h.t.Fatal(err)
		}
		if _, err := h.dynamic.Resource(crds).Create(h.t.Context(), o, metav1.CreateOptions{}); err != nil {
			h.t.Fatal(err)
		}
	}
	for _, kind := range []schema.GroupVersionResource{buffers, requests, workloads} {
		eventually(h.t, kind.Resource+" to be served", func(ctx context.Context) bool {
			_, err := h.dynamic.Resource(kind).List(ctx, metav1.ListOptions{})
			return err == nil
		})
	}
}

// create creates an object of a kind, and returns it as the API has it.
func (h *headroomCluster) create(resource schema.GroupVersionResource, kind, name string, owner *unstructured.Unstructured, spec map[string]any) *unstructured.Unstructured {
	h.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": resource.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"namespace": v1.NamespaceDefault, "name": name}, "spec": spec}}
	if owner != nil {
		o.SetOwnerReferences(controlledBy(owner))
	}
	o, err := h.dynamic.Resource(resource).Namespace(v1.NamespaceDefault).Create(h.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return o
}

func controlledBy(o *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(o, o.GroupVersionKind())}
}

// template creates a PodTemplate for pods like one.
func (h *headroomCluster) template(name string, p *v1.Pod, labels map[string]string, owner *unstructured.Unstructured) {
	h.t.Helper()
	o := &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: name}, Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.Spec}}
	o.Template.Spec.RestartPolicy = v1.RestartPolicyAlways
	if owner != nil {
		o.OwnerReferences = controlledBy(owner)
	}
	if _, err := h.client.CoreV1().PodTemplates(v1.NamespaceDefault).Create(h.t.Context(), o, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// has reports whether an object has a condition, true, with a reason and a message; "" is any.
func (h *headroomCluster) has(ctx context.Context, resource schema.GroupVersionResource, name, kind, reason, message string) bool {
	o, err := h.dynamic.Resource(resource).Namespace(v1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	var x struct {
		Status autoscalingapi.ProvisioningRequestStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &x); err != nil {
		return false
	}
	c := meta.FindStatusCondition(x.Status.Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && (reason == "" || c.Reason == reason) && (message == "" || c.Message == message)
}

// runs waits until a pod runs, and returns its node.
func (h *headroomCluster) runs(name string) string {
	h.t.Helper()
	eventually(h.t, "the pod "+name+" to run", func(ctx context.Context) bool { return get(ctx, h.client, name).Status.Phase == v1.PodRunning })
	return get(h.t.Context(), h.client, name).Spec.NodeName
}

// nodes returns the names of all nodes.
func (h *headroomCluster) nodes(ctx context.Context) map[string]bool {
	out := map[string]bool{}
	list, err := h.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range list.Items {
			out[list.Items[i].Name] = true
		}
	}
	return out
}

// kueue creates what Kueue's controller creates for a Workload with one pod set that waits
// for an admission check: a ProvisioningRequest that the Workload owns, and then the
// PodTemplate that the request owns. It returns the request's name.
func (h *headroomCluster) kueue(workload, class string, p *v1.Pod, count int) string {
	h.t.Helper()
	owner := h.create(workloads, "Workload", workload, nil, map[string]any{"queueName": "main"})
	name := workload + "-check-1"
	template := "ppt-" + name + "-main"
	r := h.create(requests, "ProvisioningRequest", name, owner, map[string]any{
		"provisioningClassName": class, "parameters": map[string]any{},
		"podSets": []any{map[string]any{"podTemplateRef": map[string]any{"name": template}, "count": int64(count)}}})
	h.template(template, p, map[string]string{"batch.kubernetes.io/job-name": workload}, r)
	return name
}

// admitted returns a pod of a Workload as its Job makes it once Kueue has admitted it: with
// the annotations of the check's podSetUpdates.
func admitted(p *v1.Pod, request, class string) *v1.Pod {
	p.Annotations = map[string]string{autoscalingapi.ConsumeAnnotation: request, autoscalingapi.ClassAnnotation: class}
	return p
}

// TestHeadroom has Berth keep room for a CapacityBuffer, on a node that it buys for it and
// where only the buffer's pods come to run; and serve Kueue's own ProvisioningRequests of
// both classes. What Berth saw is recorded, and replayed it decides the same.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	h := &headroomCluster{t: t, client: client}
	h.define(c.Config)
	recording := filepath.Join(t.TempDir(), "recording")
	p, _ := startBerth(t, c, append(nodeGroups(t, c, oneGroup), "--scan-interval=2s", "--record="+recording)...)

	// A buffer of two chunks of 2 CPUs: a node of 4.
	h.create(buffers, "CapacityBuffer", "web", nil, map[string]any{"podTemplateRef": map[string]any{"name": "web"}, "replicas": int64(2)})
	h.template("web", pod("web", "2"), map[string]string{"app": "web"}, nil)
	kept := func(ctx context.Context) bool {
		return h.has(ctx, buffers, "web", autoscalingapi.Provisioning, autoscalingapi.InjectedReason, "2 of 2 chunks have room")
	}
	eventually(t, "the buffer's chunks to have room", kept)
	bought := h.nodes(t.Context())
	if len(bought) != 1 {
		t.Errorf("the nodes are %v, want one for the buffer", bought)
	}
	create(t, client, pod("stranger", "1"))
	if node := h.runs("stranger"); bought[node] {
		t.Errorf("a stranger runs on %s, which was bought for the buffer", node)
	}
	for i := range 2 {
		web := pod(fmt.Sprint("web", i), "2")
		web.Labels = map[string]string{"app": "web"}
		create(t, client, web)
		h.runs(web.Name)
	}
	// Of what was kept nothing is left, and beside the stranger there is room for one chunk.
	eventually(t, "the buffer's chunks to have room again, on a third node", func(ctx context.Context) bool { return len(h.nodes(ctx)) == 3 && kept(ctx) })

	// Three pods of 3 CPUs: nodes are bought for all of them.
	name := h.kueue("train", autoscalingapi.BestEffortAtomic, pod("train", "3"), 3)
	eventually(t, "the atomic request to be provisioned", func(ctx context.Context) bool {
		return h.has(ctx, requests, name, autoscalingapi.Accepted, "", "") && h.has(ctx, requests, name, autoscalingapi.Provisioned, autoscalingapi.CapacityIsProvisionedReason, "")
	})
	before := len(h.nodes(t.Context()))
	for i := range 3 {
		create(t, client, admitted(pod(fmt.Sprint("train", i), "3"), name, autoscalingapi.BestEffortAtomic))
	}
	for i := range 3 {
		h.runs(fmt.Sprint("train", i))
	}
	if after := h.nodes(t.Context()); len(after) > before+3 {
		t.Errorf("there were %d nodes before the request's pods, and are %d; want three more", before, len(after))
	}

	// Two pods of 1500m on a node that is there: a stranger of 2 CPUs has to leave them room.
	makeNode(t, client, "fixed", "8Gi")
	onFixed := func(name, cpu string) *v1.Pod {
		p := pod(name, cpu)
		p.Spec.NodeSelector = map[string]string{v1.LabelHostname: "fixed"}
		return p
	}
	name = h.kueue("check", autoscalingapi.CheckCapacity, onFixed("check", "1500m"), 2)
	eventually(t, "the request's room to be found", func(ctx context.Context) bool {
		return h.has(ctx, requests, name, autoscalingapi.Accepted, "", "") && h.has(ctx, requests, name, autoscalingapi.Provisioned, autoscalingapi.CapacityIsFoundReason, "")
	})
	create(t, client, onFixed("other", "2500m"))
	eventually(t, "the stranger to be refused the room", func(ctx context.Context) bool { return refusal(get(ctx, client, "other")) != "" })
	for i := range 2 {
		create(t, client, admitted(onFixed(fmt.Sprint("check", i), "1500m"), name, autoscalingapi.CheckCapacity))
	}
	for i := range 2 {
		h.runs(fmt.Sprint("check", i))
	}

	p.Stop(10 * time.Second)
	raw, err := exec.CommandContext(t.Context(), berth, "simulate", "--replay", recording, "-o", "json").Output()
	if err != nil {
		t.Fatalf("replaying: %v\n%s", err, raw)
	}
	var out struct {
		Decisions        map[string]int
		Digest, Recorded string
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if out.Recorded == "" || out.Digest != out.Recorded || out.Decisions["RoomKept"] == 0 || out.Decisions["Booked"] != 2 {
		t.Errorf("the replay: %+v", out)
	}
}
