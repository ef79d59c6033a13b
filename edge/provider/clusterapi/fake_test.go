package clusterapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/scale"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/test/testkit"
)

// management is a management cluster without an API server, and the provider that reads it. Its
// tests run in bubbles of testing/synctest, so that they can wait until caches have followed.
type management struct {
	t         testing.TB
	objects   *fakedynamic.FakeDynamicClient
	discovery *fakediscovery.FakeDiscovery
	version   schema.GroupVersion
	provider  *Provider
	log       *bytes.Buffer
	// onUpdate is called before a size is written, and onAnswer after; their error is the
	// call's. They may be nil.
	onUpdate, onAnswer func() error
	away               error // of reading a size; nil when it can be read
	revision           int   // of all sizes
}

// manage runs a test with a management cluster that has the objects of a text.
func manage(t *testing.T, cfg Config, text string, test func(m *management)) {
	t.Helper()
	testkit.WithoutErrorBackoff(t)
	synctest.Test(t, func(t *testing.T) {
		m := newManagement(t, cfg, "v1beta2", resources, text)
		test(m)
	})
}

func newManagement(t testing.TB, cfg Config, version string, served []string, text string) *management {
	m := &management{t: t, version: schema.GroupVersion{Group: DefaultGroup, Version: version}, log: &bytes.Buffer{}}
	m.discovery = fake.NewClientset().Discovery().(*fakediscovery.FakeDiscovery)
	m.serve(served...)
	lists := map[schema.GroupVersionResource]string{}
	for _, resource := range resources {
		lists[m.version.WithResource(resource)] = resource + "List"
	}
	m.objects = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	for _, o := range parse(t, text) {
		m.create(o)
	}
	log := slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	m.provider = newProvider(cfg, clients{host: "https://management", discovery: m.discovery, dynamic: m.objects,
		scales: func(meta.RESTMapper) (scale.ScalesGetter, error) { return m, nil }}, time.Now, log)
	m.provider.Start(t.Context())
	return m
}

// serve has the API server serve kinds.
func (m *management) serve(served ...string) {
	list := &metav1.APIResourceList{GroupVersion: m.version.String()}
	for _, resource := range served {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource})
	}
	m.discovery.Resources = nil
	if len(served) > 0 {
		m.discovery.Resources = []*metav1.APIResourceList{{GroupVersion: "v1"}, list}
	}
}

// parse reads objects whose namespace is default.
func parse(t testing.TB, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if o.Object == nil {
			continue
		}
		o.SetAPIVersion(DefaultGroup + "/v1beta2")
		if o.GetNamespace() == "" {
			o.SetNamespace("default")
		}
		o.SetUID(types.UID("uid of " + o.GetName()))
		out = append(out, o)
	}
}

func (m *management) resource(o *unstructured.Unstructured) schema.GroupVersionResource {
	return m.version.WithResource(strings.ToLower(o.GetKind()) + "s")
}

func (m *management) create(o *unstructured.Unstructured) {
	m.t.Helper()
	if _, err := m.objects.Resource(m.resource(o)).Namespace(o.GetNamespace()).Create(context.Background(), o, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// get returns an object of the namespace default.
func (m *management) get(resource, name string) *unstructured.Unstructured {
	m.t.Helper()
	o, err := m.objects.Resource(m.version.WithResource(resource)).Namespace("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	return o
}

// change changes an object of the namespace default.
func (m *management) change(resource, name string, f func(o map[string]any)) {
	m.t.Helper()
	o := m.get(resource, name)
	f(o.Object)
	if _, err := m.objects.Resource(m.version.WithResource(resource)).Namespace("default").Update(context.Background(), o, metav1.UpdateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	synctest.Wait()
}

// groups returns the groups as lines, and the error.
func (m *management) groups() string {
	m.t.Helper()
	list, err := m.provider.Groups(m.t.Context())
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, g := range list {
		line := fmt.Sprintf("%s: %d to %d, %d wanted", g.ID, g.Min, g.Max, g.Target)
		if g.Unreadable != "" {
			line = g.ID + ": " + g.Unreadable
		} else if g.Instances == nil {
			line += ", not listed"
		}
		if g.KeepNodes != "" {
			line += "; its nodes stay: " + g.KeepNodes
		}
		for _, in := range g.Instances {
			line += "; " + in.ID
			if in.Node != "" {
				line += " is " + in.Node
			}
			if in.Failed != "" {
				line += fmt.Sprintf(" failed, %s %s: %s", in.Class, in.FailureCode(), in.Failed)
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// calls returns what the API server was asked to do since it was called last.
func (m *management) calls() []string {
	var out []string
	for _, a := range m.objects.Actions() {
		out = append(out, a.GetVerb()+" "+a.GetResource().Resource)
	}
	m.objects.ClearActions()
	return out
}

// marked returns the Machines that have the annotation by which Cluster API deletes them first.
func (m *management) marked() []string {
	var out []string
	list, err := m.objects.Resource(m.version.WithResource(machines)).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range list.Items {
		if _, ok := list.Items[i].GetAnnotations()["cluster.x-k8s.io/delete-machine"]; ok {
			out = append(out, list.Items[i].GetName())
		}
	}
	slices.Sort(out)
	return out
}

// Scales implements scale.ScalesGetter. Only sizes of the namespace default can be read.
func (m *management) Scales(string) scale.ScaleInterface { return m }

// Get implements scale.ScaleInterface.
func (m *management) Get(_ context.Context, resource schema.GroupResource, name string, _ metav1.GetOptions) (*autoscalingv1.Scale, error) {
	if m.away != nil {
		return nil, m.away
	}
	n, _, err := unstructured.NestedInt64(m.get(resource.Resource, name).Object, "spec", "replicas")
	return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(m.revision)}, Spec: autoscalingv1.ScaleSpec{Replicas: int32(n)}}, err
}

// Update implements scale.ScaleInterface.
func (m *management) Update(_ context.Context, resource schema.GroupResource, s *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	if m.onUpdate != nil {
		if err := m.onUpdate(); err != nil {
			return nil, err
		}
	}
	if s.ResourceVersion != fmt.Sprint(m.revision) {
		return nil, apierrors.NewConflict(resource, s.Name, errors.New("it was written since"))
	}
	m.resize(resource.Resource, s.Name, int64(s.Spec.Replicas))
	if m.onAnswer != nil {
		return nil, m.onAnswer()
	}
	return s, nil
}

// resize has somebody write a size.
func (m *management) resize(resource, name string, n int64) {
	m.revision++
	m.change(resource, name, func(o map[string]any) {
		if err := unstructured.SetNestedField(o, n, "spec", "replicas"); err != nil {
			m.t.Fatal(err)
		}
	})
}

// Patch implements scale.ScaleInterface.
func (m *management) Patch(context.Context, schema.GroupVersionResource, string, types.PatchType, []byte, metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	return nil, errors.New("sizes are updated, not patched")
}

// size returns how many nodes an object wants.
func (m *management) size(resource, name string) int64 {
	n, _, err := unstructured.NestedInt64(m.get(resource, name).Object, "spec", "replicas")
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

var _ nodegroup.Provider = (*Provider)(nil)
