package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
)

// This file has nodes that a cloud is about to take, as termination handlers mark them.

// spotGroups is a node group whose nodes have room for one of the test's pods each.
const spotGroups = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- {name: spot, max: 4, launchDelay: {min: 2s, max: 2s}, startup: {min: 1s, max: 1s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`

// spot is a cluster of such nodes. It remembers by the API server's versions, which order all writes of all kinds, what came
// first.
type spot struct {
	t       *testing.T
	client  kubernetes.Interface
	mu      sync.Mutex
	ready   map[string]uint64 // by node: the version with which it first took pods; guarded by mu
	evicted map[string]uint64 // by pod: the version with which it was first asked to go; guarded by mu
}

// TestInterruptedNodesAreReplaced: for a node with the taint of a spot interruption, and for one with the condition of AKS, a
// node is bought and ready before the pod is evicted, its replacement runs there, and the old node is removed.
func TestInterruptedNodesAreReplaced(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	startBerth(t, c, append(nodeGroups(t, c, spotGroups), "--scan-interval=2s", "--node-delete-delay-after-taint=1s")...)
	s := &spot{t: t, client: client, ready: map[string]uint64{}, evicted: map[string]uint64{}}
	s.watch()
	s.deploy(2)
	for _, x := range []struct {
		what string
		mark func(ctx context.Context, node string) error
	}{
		{"the taint of a spot interruption", func(ctx context.Context, node string) error {
			n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "aws-node-termination-handler/spot-itn", Effect: v1.TaintEffectNoSchedule})
			_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			return err
		}},
		{"the condition of a preempted VM", func(ctx context.Context, node string) error {
			patch := fmt.Appendf(nil, `{"status": {"conditions": [{"type": "PreemptionScheduled", "status": "True", "reason": "PreemptScheduled", "message": "the VM is about to be evicted", "lastTransitionTime": %q}]}}`,
				metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
			_, err := client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		}},
	} {
		s.interrupts(x.what, x.mark)
	}
}

// deploy has so many pods run, each on a node of its own that is bought for it. They stop sooner than the shortest warning
// ends, so that there is time for a node.
func (s *spot) deploy(replicas int32) {
	s.t.Helper()
	labels, grace := map[string]string{"app": "web"}, int64(2)
	spec := pod("web", "3").Spec
	spec.TerminationGracePeriodSeconds = &grace
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
	if _, err := s.client.AppsV1().Deployments(v1.NamespaceDefault).Create(s.t.Context(), d, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "all pods to run", func(ctx context.Context) bool { return len(s.running(ctx)) == int(replicas) })
}

// interrupts marks the node of a pod, and checks what becomes of both.
func (s *spot) interrupts(what string, mark func(ctx context.Context, node string) error) {
	s.t.Helper()
	before := s.running(s.t.Context())
	names := make([]string, 0, len(before))
	for name := range before {
		names = append(names, name)
	}
	slices.Sort(names)
	leaves := names[0]
	node := before[leaves]
	eventually(s.t, "the node to get "+what, func(ctx context.Context) bool { return mark(ctx, node) == nil })
	eventually(s.t, "an event of the node with "+what, func(ctx context.Context) bool {
		list, err := s.client.EventsV1().Events(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "reason=NodeInterrupted"})
		if err != nil {
			return false
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == "Node" && e.Regarding.Name == node && e.Type == v1.EventTypeWarning {
				return true
			}
		}
		return false
	})
	var bought string
	eventually(s.t, "the replacement to run, and the node with "+what+" to be gone", func(ctx context.Context) bool {
		after, replaced := s.running(ctx), false
		for name, at := range after {
			if _, was := before[name]; !was {
				bought, replaced = at, true
			}
		}
		nodes, err := api.Nodes(ctx, s.client)
		return err == nil && replaced && len(after) == len(before) && !slices.ContainsFunc(nodes, func(n *v1.Node) bool { return n.Name == node })
	})
	for name, at := range before {
		if at == bought {
			s.t.Errorf("%s: the replacement runs on %s, which %s has had before; want a node that was bought", what, bought, name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ready, evicted := s.ready[bought], s.evicted[leaves]; ready == 0 || evicted == 0 || ready > evicted {
		s.t.Errorf("%s: node %s was ready at version %d, and pod %s was evicted at version %d; want the node before", what, bought, ready, leaves, evicted)
	}
}

// running returns the nodes of the pods that run and aren't being deleted, by the pods' names.
func (s *spot) running(ctx context.Context) map[string]string {
	out := map[string]string{}
	list, err := s.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil
	}
	for _, p := range list.Items {
		if p.Status.Phase == v1.PodRunning && p.DeletionTimestamp == nil {
			out[p.Name] = p.Spec.NodeName
		}
	}
	return out
}

// watch records when nodes first take pods and when pods are first asked to go, until the test ends.
func (s *spot) watch() {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods(v1.NamespaceDefault).Watch(s.t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(pods.Stop)
	nodes, err := s.client.CoreV1().Nodes().Watch(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nodes.Stop)
	go func() {
		for e := range pods.ResultChan() {
			p, ok := e.Object.(*v1.Pod)
			if ok && (p.DeletionTimestamp != nil || slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.DisruptionTarget })) {
				s.first(s.evicted, &p.ObjectMeta)
			}
		}
	}()
	go func() {
		for e := range nodes.ResultChan() {
			n, ok := e.Object.(*v1.Node)
			if ok && len(n.Spec.Taints) == 0 && slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue }) {
				s.first(s.ready, &n.ObjectMeta)
			}
		}
	}()
}

// first records the version of an object, unless there is one already.
func (s *spot) first(of map[string]uint64, o *metav1.ObjectMeta) {
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && of[o.Name] == 0 {
		of[o.Name] = version
	}
}
