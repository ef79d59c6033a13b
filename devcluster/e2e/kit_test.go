package e2e

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/devcluster/api"
)

// This file has what tests say about a cluster, and how they wait for it.

// eventually polls until something holds. It waits long enough for a machine that stands
// still for a while, but less than the five minutes of the leftover sweep, which would
// hide a missed wake-up.
func eventually(t *testing.T, what string, ok func(context.Context) bool) {
	t.Helper()
	within(t, what, 3*time.Minute, ok)
}

// within polls until something holds, and fails the test when it doesn't within a time.
func within(t *testing.T, what string, limit time.Duration, ok func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s in vain for: %s", limit, what)
		case <-tick.C:
		}
	}
}

// create creates pods.
func create(t *testing.T, client kubernetes.Interface, pods ...*v1.Pod) {
	t.Helper()
	for _, p := range pods {
		if _, err := client.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// createBudget creates a disruption budget that wants at least so many pods with a label.
func createBudget(t *testing.T, client kubernetes.Interface, name, key, value string, least int32) {
	t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.MinAvailable = ptr.To(intstr.FromInt32(least))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	if _, err := client.PolicyV1().PodDisruptionBudgets(v1.NamespaceDefault).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// get returns a pod of the namespace default, an empty one if it can't be read.
func get(ctx context.Context, client kubernetes.Interface, name string) *v1.Pod {
	p, err := client.CoreV1().Pods(v1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return &v1.Pod{}
	}
	return p
}

// pod returns a pod of one container that requests so much CPU.
func pod(name, cpu string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: name, Annotations: map[string]string{v1.LastAppliedConfigAnnotation: planted}}}
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: list("cpu", cpu)},
		Args: []string{"--password=" + planted}, Env: []v1.EnvVar{{Name: "PASSWORD", Value: planted}}}}
	return p
}

// planted is a secret in each pod of pod, where people put some: it is looked for in the log of each
// Berth (startBerth), and in what one serves (TestObserve).
const planted = "hunter2-planted"

// makeNode creates a node of 4 CPUs and waits until it is ready.
func makeNode(t *testing.T, client kubernetes.Interface, name, memory string) {
	t.Helper()
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = list("cpu", "4", "memory", memory, "pods", "10")
	if _, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodesReady(t, client)
}

// nodesReady waits until no node has the taint not-ready any more, which each begins with.
func nodesReady(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	eventually(t, "the nodes to be ready", func(ctx context.Context) bool {
		nodes, err := api.Nodes(ctx, client)
		return err == nil && !slices.ContainsFunc(nodes, func(n *v1.Node) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeNotReady })
		})
	})
}

// refusal returns why a pod can't be placed, as its condition says.
func refusal(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// lines is a writer that writes to the test's log, line by line.
type lines struct {
	t   *testing.T
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	for {
		line, err := l.buf.ReadString('\n')
		if err != nil {
			l.buf.WriteString(line)
			return len(p), nil
		}
		l.t.Log(strings.TrimRight(line, "\n"))
	}
}
