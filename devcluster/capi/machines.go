package capi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// WithMachines is an annotation of MachinePools whose instances are Machines, too.
const WithMachines = "berth.dev/with-machines"

// finalizer keeps a Machine until its node is gone. For Cluster API's own name the API server would warn.
const finalizer = "machine.cluster.x-k8s.io/played"

// This file makes and deletes Machines. What must hold: one goroutine runs the passes, and each pass
// reads all objects anew, so that a step which failed is taken by the next.

// Controller plays Cluster API's controllers. Its Machines become nodes with Allocatable. The exported fields
// are set before Run.
type Controller struct {
	Client      kubernetes.Interface
	Objects     dynamic.Interface
	Allocatable v1.ResourceList
	Log         func(format string, args ...any)

	mu      sync.Mutex
	failing map[string]*Failure // by the name of the owner of Machines that fail; guarded by mu
	failed  map[string]*Failure // by the name of the Machine; guarded by mu
	serial  int                 // of the Machine made last; of the one goroutine of Run
}

// Failure is why Machines fail, and how many of those that are made next. Reason and Message are those of
// the Machine's status.
type Failure struct {
	Reason, Message string
	Machines        int
}

// Fail makes the next Machines of a MachineSet or MachinePool fail.
// A later call for the same owner replaces an earlier one.
func (c *Controller) Fail(owner string, f Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing == nil {
		c.failing, c.failed = map[string]*Failure{}, map[string]*Failure{}
	}
	c.failing[owner] = &f
}

// Run makes a pass every 100 ms until the context ends. What fails is tried again by the next.
// It is polling on purpose: what Berth reads is what the API server has, without caches in
// between.
func (c *Controller) Run(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := c.pass(ctx); err != nil && ctx.Err() == nil {
			c.Log("playing Cluster API: %v", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pass brings all objects one step closer to what they say.
// The order is from owners to what they own; a change of one reaches the next in the
// following pass.
func (c *Controller) pass(ctx context.Context) error {
	deployments, err := list[clusterv1.MachineDeployment](ctx, c.Objects, Deployments)
	if err != nil {
		return err
	}
	sets, err := list[clusterv1.MachineSet](ctx, c.Objects, Sets)
	if err != nil {
		return err
	}
	pools, err := list[clusterv1.MachinePool](ctx, c.Objects, Pools)
	if err != nil {
		return err
	}
	all, err := list[clusterv1.Machine](ctx, c.Objects, Machines)
	if err != nil {
		return err
	}
	for _, d := range deployments {
		if err := c.deploy(ctx, d, sets); err != nil {
			return err
		}
	}
	for _, s := range sets {
		owner := metav1.NewControllerRef(s, clusterv1.GroupVersion.WithKind("MachineSet"))
		if err := c.scale(ctx, owner, int(ptr.Deref(s.Spec.Replicas, 0)), &s.Spec.Template, all); err != nil {
			return err
		}
	}
	for _, p := range pools {
		if err := c.fill(ctx, p, all); err != nil {
			return err
		}
	}
	for _, m := range all {
		if err := c.reconcile(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// deploy gives a MachineDeployment its MachineSet, with as many replicas as it has.
// Real ones make a new set for a new template; here templates don't change.
func (c *Controller) deploy(ctx context.Context, d *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet) error {
	for _, s := range sets {
		if metav1.IsControlledBy(s, d) {
			if *s.Spec.Replicas == *d.Spec.Replicas {
				return nil
			}
			return patch(ctx, c.Objects, Sets, s.Name, map[string]any{"spec": map[string]any{"replicas": *d.Spec.Replicas}})
		}
	}
	s := &clusterv1.MachineSet{}
	s.Name, s.Namespace = d.Name+"-1", d.Namespace
	s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
	s.Spec = clusterv1.MachineSetSpec{ClusterName: d.Spec.ClusterName, Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}
	return Create(ctx, c.Objects, Sets, s)
}

// scale makes Machines of an owner, or deletes some: marked ones first, and then those that aren't
// nodes, as Cluster API does whatever the order that its users choose.
func (c *Controller) scale(ctx context.Context, owner *metav1.OwnerReference, want int, template *clusterv1.MachineTemplateSpec, all []*clusterv1.Machine) error {
	var living []*clusterv1.Machine
	for _, m := range all {
		if ref := metav1.GetControllerOf(m); ref != nil && ref.UID == owner.UID && m.DeletionTimestamp == nil {
			living = append(living, m)
		}
	}
	for range want - len(living) {
		c.serial++
		m := &clusterv1.Machine{}
		m.Namespace, m.Name = v1.NamespaceDefault, fmt.Sprintf("%s-%04d", owner.Name, c.serial)
		m.Labels, m.Finalizers = template.Labels, []string{finalizer}
		m.OwnerReferences, m.Spec = []metav1.OwnerReference{*owner}, template.Spec
		// Decided when it is made, so that the number of failures is exact.
		c.draw(owner.Name, m.Name)
		if err := Create(ctx, c.Objects, Machines, m); err != nil {
			return err
		}
	}
	slices.SortFunc(living, func(a, b *clusterv1.Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Name, b.Name))
	})
	for i := range len(living) - want {
		if err := c.Objects.Resource(Machines).Namespace(v1.NamespaceDefault).Delete(ctx, living[i].Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// rank says how soon a Machine is deleted.
// The annotation is how an autoscaler says which Machine it means.
func rank(m *clusterv1.Machine) int {
	if _, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]; marked {
		return 0
	}
	if m.Status.NodeRef.Name == "" {
		return 1
	}
	return 2
}

// draw says whether a Machine that is being made will fail.
func (c *Controller) draw(owner, machine string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.failing[owner]; f != nil && f.Machines > 0 {
		f.Machines--
		c.failed[machine] = f
	}
}

// list returns the objects of a resource.
// Lists are of all namespaces.
func list[T any](ctx context.Context, objects dynamic.Interface, resource schema.GroupVersionResource) ([]*T, error) {
	all, err := objects.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	out := make([]*T, len(all.Items))
	for i := range all.Items {
		out[i] = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Items[i].Object, out[i]); err != nil {
			return nil, fmt.Errorf("reading %s: %w", resource.Resource, err)
		}
	}
	return out, nil
}

// kinds are those of the resources.
var kinds = map[schema.GroupVersionResource]string{Deployments: "MachineDeployment", Sets: "MachineSet", Pools: "MachinePool", Machines: "Machine"}

// Create creates an object of the namespace default.
// With strict validation, so that a field that the definitions don't have is noticed.
func Create(ctx context.Context, objects dynamic.Interface, resource schema.GroupVersionResource, o any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("writing %s: %w", resource.Resource, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(resource.GroupVersion().WithKind(kinds[resource]))
	u.SetNamespace(v1.NamespaceDefault)
	if _, err := objects.Resource(resource).Namespace(v1.NamespaceDefault).Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		return fmt.Errorf("creating %s/%s: %w", resource.Resource, u.GetName(), err)
	}
	return nil
}

// patch changes an object of the namespace default, or a subresource of it.
func patch(ctx context.Context, objects dynamic.Interface, resource schema.GroupVersionResource, name string, change map[string]any, subresource ...string) error {
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = objects.Resource(resource).Namespace(v1.NamespaceDefault).Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, subresource...)
	if err != nil {
		return fmt.Errorf("changing %s/%s: %w", resource.Resource, name, err)
	}
	return nil
}
