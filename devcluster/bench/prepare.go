package bench

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/devcluster/api"
)

// This file brings the cluster to the state in which a run begins. What must hold: each run of a
// case begins in the same state, whatever the last one has left.
// Whatever a scheduler could read is as in the run before, down to the names, so that ties
// fall alike.

// Namespaces of a run. Only pods in measured are counted.
const (
	measured   = "bench"
	beside     = "bench-beside" // pods that exist before the run, and that measured pods' affinity looks at
	beforehand = "bench-before" // other pods that exist before it
	churning   = "bench-churn"  // pods that are created during the run
	teams      = 10             // namespaces bench-team-0 to 9
)

// These are namespaces of standing pods by number.
func inBeside(int) string  { return beside }
func inTeams(i int) string { return fmt.Sprint("bench-team-", i%teams) }

// namespaces returns all of them, with their labels.
func namespaces() map[string]map[string]string {
	out := map[string]map[string]string{measured: teamLabel, beforehand: nil, churning: nil, beside: nil}
	for i := range teams {
		out[inTeams(i)] = teamLabel
	}
	return out
}

// createCluster creates the namespaces and the priority classes, which all runs share.
// They are created once: reset leaves them.
func (b *bench) createCluster(ctx context.Context) error {
	for name, labels := range namespaces() {
		if _, err := b.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a namespace: %w", err)
		}
	}
	for name, value := range map[string]int32{highPriority: 10, highestPriority: 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := b.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a priority class: %w", err)
		}
	}
	return nil
}

// prepare creates what a case needs beside its measured pods.
// The scheduler isn't running yet.
func (b *bench) prepare(ctx context.Context, c Case) error {
	if err := b.nodes(ctx, c); err != nil {
		return err
	}
	for _, name := range c.services {
		if err := b.service(ctx, name); err != nil {
			return err
		}
	}
	// Numbers go on from group to group of standing pods, so that names differ.
	first := 0 // pods that are there before have names of their own
	for _, x := range c.before {
		if err := b.stand(ctx, c, x, first); err != nil {
			return err
		}
		first += x.count(b.o.Size)
	}
	if c.group != nil {
		if err := b.createGroups(ctx, measured, c.group, c.size(b.o.Size), c.shape(0).Spec.PriorityClassName); err != nil {
			return err
		}
	}
	if err := b.publish(ctx, c); err != nil {
		return err
	}
	if c.volume == nil {
		return nil
	}
	return b.each(ctx, "volumes", c.size(b.o.Size), func(ctx context.Context, i int) error { return b.bound(ctx, c.volume(i)) })
}

// service creates a headless Service that selects pods by its name. Nothing serves: schedulers read the
// selector for their default spreading.
func (b *bench) service(ctx context.Context, name string) error {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ServiceSpec{ClusterIP: v1.ClusterIPNone, Selector: map[string]string{"app": name}}}
	if _, err := b.client.CoreV1().Services(measured).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a Service: %w", err)
	}
	return nil
}

// stand creates pods that are there before; the first has the number first.
// A pod that isn't waiting is created with its node in the spec, as if it had been bound.
func (b *bench) stand(ctx context.Context, c Case, x standing, first int) error {
	nodes, n := c.nodeCount(b.o.Size), x.count(b.o.Size)
	namespace := x.namespace
	if namespace == nil {
		namespace = func(int) string { return beforehand }
	}
	if err := b.createGroups(ctx, namespace(0), x.group, n, x.shape(0).Spec.PriorityClassName); err != nil {
		return err
	}
	return b.each(ctx, "pods that are there before", n, func(ctx context.Context, i int) error {
		p := x.shape(first + i)
		x.group.join(i, p)
		if !x.waiting {
			p.Spec.NodeName = nodeName((first + i) % nodes)
		}
		if x.port > 0 {
			p = withPort(p, x.port+int32(i/nodes)) //nolint:gosec // as many as pods on a node
		}
		pods := b.client.CoreV1().Pods(namespace(i))
		// A pod with a finalizer that was deleted stays, terminating.
		if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil || !x.deleted {
			return err
		}
		return pods.Delete(ctx, p.Name, metav1.DeleteOptions{})
	})
}

// bound creates a volume and the claim that it is bound to, by the same name.
// There is no PV controller, so both sides are written as it would leave them, status
// included.
func (b *bench) bound(ctx context.Context, pv *v1.PersistentVolume) error {
	pvc := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: pv.Name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "true"}}}
	pvc.Spec = v1.PersistentVolumeClaimSpec{AccessModes: pv.Spec.AccessModes, VolumeName: pv.Name, StorageClassName: new(string),
		Resources: v1.VolumeResourceRequirements{Requests: pv.Spec.Capacity}}
	pvc, err := b.client.CoreV1().PersistentVolumeClaims(measured).Create(ctx, pvc, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID}
	if pv, err = b.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil {
		return err
	}
	pv.Status.Phase = v1.VolumeBound
	if _, err := b.client.CoreV1().PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil {
		return err
	}
	pvc.Status.Phase = v1.ClaimBound
	_, err = b.client.CoreV1().PersistentVolumeClaims(measured).UpdateStatus(ctx, pvc, metav1.UpdateOptions{})
	return err
}

// Names have five digits, so that they sort by number.
func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// nodeCount returns how many nodes a case has; some need one for each pod.
func (c Case) nodeCount(s Size) int {
	if c.nodes != nil {
		return c.nodes(s)
	}
	return s.Nodes
}

// nodes creates the nodes of a case, in three zones.
// With attach a CSINode says how many volumes each node takes.
func (b *bench) nodes(ctx context.Context, c Case) error {
	n := c.nodeCount(b.o.Size)
	return b.each(ctx, "nodes", n, func(ctx context.Context, i int) error {
		node := newNode(i)
		if c.node != nil {
			c.node(i, n, node)
		}
		// Nothing is reserved for the system.
		node.Status.Capacity = node.Status.Allocatable
		if _, err := b.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil || c.attach == 0 {
			return err
		}
		_, err := b.client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, Annotations: map[string]string{v1.MigratedPluginsAnnotationKey: migrated}},
			Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: csiDriver, NodeID: node.Name, Allocatable: &storagev1.VolumeNodeResources{Count: new(c.attach)}}}},
		}, metav1.CreateOptions{})
		return err
	})
}

// newNode returns the i-th node as scheduler_perf has it: ready, in one of three zones.
func newNode(i int) *v1.Node {
	n := &v1.Node{}
	n.Name = nodeName(i)
	n.Labels = map[string]string{v1.LabelHostname: n.Name, v1.LabelTopologyZone: fmt.Sprint("zone-", i%3)}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110")}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

// reset deletes what the last run created. Finalizers of held pods are taken off before, those of volumes
// and claims after the deletion: nobody else would do so.
// It also clears what an interrupted run has left.
func (b *bench) reset(ctx context.Context) error {
	if err := b.letGo(ctx); err != nil {
		return err
	}
	core, all := b.client.CoreV1(), metav1.ListOptions{}
	deletions := []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		core.PersistentVolumeClaims(measured).DeleteCollection, core.PersistentVolumes().DeleteCollection,
		b.client.StorageV1().CSINodes().DeleteCollection, core.Nodes().DeleteCollection,
	}
	for ns := range namespaces() {
		deletions = append(deletions, core.Pods(ns).DeleteCollection, b.client.EventsV1().Events(ns).DeleteCollection)
	}
	for _, del := range deletions {
		// Pods go at once: there is no kubelet that would confirm it.
		if err := del(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, all); err != nil {
			return fmt.Errorf("clearing: %w", err)
		}
	}
	if err := b.dropProtection(ctx); err != nil {
		return err
	}
	if err := b.clearDevices(ctx); err != nil {
		return err
	}
	if err := b.clearGroups(ctx); err != nil {
		return err
	}
	services, err := core.Services(measured).List(ctx, all)
	if err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	for i := range services.Items {
		if err := core.Services(measured).Delete(ctx, services.Items[i].Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("clearing: %w", err)
		}
	}
	return nil
}

// noFinalizers is a patch.
var noFinalizers = []byte(`{"metadata":{"finalizers":null}}`)

// letGo takes the finalizers off the pods that they hold.
// Otherwise the deletion of these pods would never end.
func (b *bench) letGo(ctx context.Context) error {
	pods, err := api.Pods(ctx, b.client, beforehand, "")
	if err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	return api.Each(ctx, len(pods), func(ctx context.Context, i int) error {
		if len(pods[i].Finalizers) == 0 {
			return nil
		}
		_, err := b.client.CoreV1().Pods(beforehand).Patch(ctx, pods[i].Name, types.MergePatchType, noFinalizers, metav1.PatchOptions{})
		return err
	})
}

// dropProtection takes the finalizers off deleted volumes and claims: the controllers that would
// do so don't run.
func (b *bench) dropProtection(ctx context.Context) error {
	claims, err := b.client.CoreV1().PersistentVolumeClaims(measured).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	volumes, err := b.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	if err := api.Each(ctx, len(claims.Items), func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().PersistentVolumeClaims(measured).Patch(ctx, claims.Items[i].Name, types.MergePatchType, noFinalizers, metav1.PatchOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	return api.Each(ctx, len(volumes.Items), func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().PersistentVolumes().Patch(ctx, volumes.Items[i].Name, types.MergePatchType, noFinalizers, metav1.PatchOptions{})
		return err
	})
}
