package live

import (
	"log/slog"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/step"
)

// headroomAPI is an API with the definitions of some kinds, and objects of them.
func headroomAPI(defined []headroomKind, objects ...runtime.Object) (*fake.Clientset, *fakedynamic.FakeDynamicClient) {
	client := fake.NewClientset(
		&v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "template"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}},
	)
	for _, kind := range defined {
		d := client.Discovery().(*fakediscovery.FakeDiscovery)
		d.Resources = append(d.Resources, &metav1.APIResourceList{GroupVersion: kind.resource.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: kind.resource.Resource}}})
	}
	lists := map[schema.GroupVersionResource]string{capacityBuffers.resource: "CapacityBufferList", provisioningRequests.resource: "ProvisioningRequestList"}
	return client, fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
}

func custom(version, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": autoscalingapi.Group + "/" + version, "kind": kind,
		"metadata": map[string]any{"namespace": "ns", "name": name, "uid": "uid-" + name}, "spec": spec}}
}

// TestWhatAsksForHeadroomIsWatched when its definition is there, with what it refers to; and
// what exists is delivered before Berth decides anything.
func TestWhatAsksForHeadroomIsWatched(t *testing.T) {
	template := map[string]any{"podTemplateRef": map[string]any{"name": "template"}, "replicas": int64(2)}
	deployment := map[string]any{"scalableRef": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": "web"}}
	broken := map[string]any{"replicas": "many"}
	forever := map[string]any{"podTemplateRef": map[string]any{"name": "template"}, "limits": map[string]any{"cpu": "1e-999999999", "memory": "4e999999999"}}
	request := map[string]any{"provisioningClassName": autoscalingapi.CheckCapacity}
	for _, c := range []struct {
		name    string
		defined []headroomKind
		objects []runtime.Object
		want    []string
	}{
		{"nothing without a definition", nil, nil, nil},
		{"buffers of templates", []headroomKind{capacityBuffers}, []runtime.Object{custom("v1beta1", "CapacityBuffer", "b", template)},
			[]string{"ObjectSet *autoscalingapi.CapacityBuffer b", "ObjectSet *v1.PodTemplate template"}},
		{"a kind that a buffer refers to, and no other", []headroomKind{capacityBuffers}, []runtime.Object{custom("v1beta1", "CapacityBuffer", "b", deployment)},
			[]string{"ObjectSet *autoscalingapi.CapacityBuffer b", "ObjectSet *cluster.Scalable Deployment/web", "ObjectSet *v1.PodTemplate template"}},
		{"a buffer that can't be read, as one that asks for nothing", []headroomKind{capacityBuffers}, []runtime.Object{custom("v1beta1", "CapacityBuffer", "b", broken)},
			[]string{"ObjectSet *autoscalingapi.CapacityBuffer b", "ObjectSet *v1.PodTemplate template"}},
		{"a buffer with amounts that take forever to be read", []headroomKind{capacityBuffers}, []runtime.Object{custom("v1beta1", "CapacityBuffer", "b", forever)},
			[]string{"ObjectSet *autoscalingapi.CapacityBuffer b", "ObjectSet *v1.PodTemplate template"}},
		{"requests", []headroomKind{capacityBuffers, provisioningRequests}, []runtime.Object{custom("v1", "ProvisioningRequest", "r", request)},
			[]string{"ObjectSet *autoscalingapi.ProvisioningRequest r", "ObjectSet *v1.PodTemplate template"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, dynamic := headroomAPI(c.defined, c.objects...)
			in := newInbox()
			if _, err := watchHeadroom(t.Context(), client, dynamic, NewHealth(true), in, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range in.take() {
				got = append(got, describe(x))
				if b, ok := x.(step.ObjectSet).Object.(*autoscalingapi.CapacityBuffer); ok && b.UID != "uid-b" {
					t.Errorf("the buffer's UID is %q", b.UID)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("delivered %q, want %q", got, c.want)
			}
		})
	}
}

// TestADefinitionThatComesLaterIsFound without a restart.
func TestADefinitionThatComesLaterIsFound(t *testing.T) {
	client, dynamic := headroomAPI([]headroomKind{provisioningRequests}, custom("v1beta1", "CapacityBuffer", "b", nil))
	in := newInbox()
	h, err := watchHeadroom(t.Context(), client, dynamic, NewHealth(true), in, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	in.take()
	if h.lookForDefinitions(t.Context()) {
		t.Error("no definition is missing")
	}
	d := client.Discovery().(*fakediscovery.FakeDiscovery)
	d.Resources = append(d.Resources, &metav1.APIResourceList{GroupVersion: capacityBuffers.resource.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: "capacitybuffers"}}})
	if !h.lookForDefinitions(t.Context()) {
		t.Error("a definition is still missing")
	}
	var got []step.Input
	for len(got) == 0 {
		<-in.signal
		got = in.take()
	}
	if first := describe(got[0]); first != "ObjectSet *autoscalingapi.CapacityBuffer b" {
		t.Errorf("delivered %q", first)
	}
}

// TestStatusesAreWritten with the object's UID, and fields without a value removed.
func TestStatusesAreWritten(t *testing.T) {
	n := int32(3)
	for _, c := range []struct {
		name  string
		write step.StatusWrite
		want  string
	}{
		{"capacitybuffers", step.StatusWrite{UID: "u", Namespace: "ns", Name: "x", Buffer: &autoscalingapi.CapacityBufferStatus{Replicas: &n}},
			`{"metadata":{"uid":"u"},"status":{"podTemplateRef":null,"replicas":3,"podTemplateGeneration":null}}`},
		{"provisioningrequests", step.StatusWrite{UID: "u", Namespace: "ns", Name: "x", Request: &autoscalingapi.ProvisioningRequestStatus{Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "R"}}}},
			`{"metadata":{"uid":"u"},"status":{"conditions":[{"type":"Accepted","status":"True","lastTransitionTime":null,"reason":"R","message":""}]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, dynamic := headroomAPI(nil)
			var got string
			dynamic.PrependReactor("patch", c.name, func(a clienttesting.Action) (bool, runtime.Object, error) {
				if p := a.(clienttesting.PatchAction); a.GetSubresource() == "status" && p.GetName() == "x" && a.GetNamespace() == "ns" {
					got = string(p.GetPatch())
				}
				return true, custom("v1", "X", "x", nil), nil
			})
			if err := newHeadroomReporter(dynamic).write(t.Context(), c.write); err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("wrote %s, want %s", got, c.want)
			}
		})
	}
}
