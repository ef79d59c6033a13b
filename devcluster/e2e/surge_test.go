package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// serving counts the ready pods of services, of one watch, so that it misses no moment that
// the API had.
type serving struct {
	mu    sync.Mutex
	ready map[string]map[string]string // by app: the node of each ready pod
	gap   map[string]bool              // had ready pods, and at some moment after that none
}

// watchServing watches the pods with a label "app" until the test ends.
func watchServing(t *testing.T, client kubernetes.Interface) *serving {
	t.Helper()
	s := &serving{ready: map[string]map[string]string{}, gap: map[string]bool{}}
	w, err := client.CoreV1().Pods(v1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{LabelSelector: "app"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			p, ok := e.Object.(*v1.Pod)
			if !ok {
				continue
			}
			s.mu.Lock()
			app := p.Labels["app"]
			if s.ready[app] == nil {
				s.ready[app] = map[string]string{}
			}
			before := len(s.ready[app])
			delete(s.ready[app], p.Name)
			if e.Type != "DELETED" && p.DeletionTimestamp == nil && isReady(p) {
				s.ready[app][p.Name] = p.Spec.NodeName
			}
			s.gap[app] = s.gap[app] || before > 0 && len(s.ready[app]) == 0
			s.mu.Unlock()
		}
	}()
	return s
}

func isReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// only returns the node of an app's ready pod, "" unless it has exactly one.
func (s *serving) only(app string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready[app]) == 1 {
		for _, node := range s.ready[app] {
			return node
		}
	}
	return ""
}

func (s *serving) hadGap(app string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gap[app]
}

// single creates a Deployment of one pod that requests some CPUs and is a member of a pod group, "" for none.
func single(t *testing.T, client kubernetes.Interface, name, cpu, group string, annotations map[string]string) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: pod(name, cpu).Spec}
	if group != "" {
		d.Spec.Template.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
	}
	if _, err := client.AppsV1().Deployments(v1.NamespaceDefault).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestNoGapWithASuccessorFirst drains a node with the only pods of two Deployments. The one
// that asks for it has a ready pod at every moment, and a budget that allows no eviction; the
// other has a gap, which shows that the watch would have seen one.
func TestNoGapWithASuccessorFirst(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	startBerth(t, c, append(nodeGroups(t, c, oneGroup), "--surge", "--scan-interval=2s",
		"--scale-down-unneeded-time=10s", "--scale-down-delay-after-add=1s", "--scale-down-utilization-threshold=0.9")...)
	s := watchServing(t, client)

	// Two pods of no controller keep their node, which they fill; the Deployments get another.
	create(t, client, pod("anchor", "1"), pod("ballast", "3"))
	for _, name := range []string{"anchor", "ballast"} {
		eventually(t, name+" to run", func(ctx context.Context) bool { return get(ctx, client, name).Status.Phase == v1.PodRunning })
	}
	stays := get(t.Context(), client, "anchor").Spec.NodeName
	createBudget(t, client, "seamless", "app", "seamless", 1)
	single(t, client, "seamless", "1", "", map[string]string{cluster.SurgeAnnotation: "true"})
	single(t, client, "plain", "1", "", nil)
	eventually(t, "the Deployments' pods to be ready", func(context.Context) bool { return s.only("seamless") != "" && s.only("plain") != "" })
	goes := s.only("seamless")
	if goes == stays || s.only("plain") != goes {
		t.Fatalf("the pods are on %s and %s, want both on one node other than %s", goes, s.only("plain"), stays)
	}

	if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), "ballast", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployments' node to be removed, and their pods to be ready on the other", func(ctx context.Context) bool {
		nodes, err := api.Nodes(ctx, client)
		return err == nil && !slices.ContainsFunc(nodes, func(n *v1.Node) bool { return n.Name == goes }) && s.only("seamless") == stays && s.only("plain") == stays
	})
	if s.hadGap("seamless") {
		t.Error("the Deployment whose successor comes first had no ready pod for a moment")
	}
	if !s.hadGap("plain") {
		t.Error("the other Deployment had a ready pod all the time: the watch sees no gaps, or its pod wasn't evicted")
	}
	d, err := client.AppsV1().Deployments(v1.NamespaceDefault).Get(t.Context(), "seamless", metav1.GetOptions{})
	if err != nil || d.Spec.Template.Annotations[cluster.SurgedAtAnnotation] == "" {
		t.Errorf("the Deployment's pod template has the annotations %v (%v), want one more", d.Spec.Template.Annotations, err)
	}
}

// TestAPodGroupSurgesTogether has a group that is disrupted as a whole on two nodes, each member the only pod of a
// Deployment that asks for a successor first. When there is room for both elsewhere both nodes go, every member has a
// ready pod at every moment, and budgets that allow no eviction are no obstacle.
func TestAPodGroupSurgesTogether(t *testing.T) {
	t.Parallel()
	c, client := startGroupCluster(t)
	startBerth(t, c, append(nodeGroups(t, c, oneGroup), "--feature-gates="+controlplane.PodGroupFeatures, "--surge", "--scan-interval=2s",
		"--scale-down-unneeded-time=10s", "--scale-down-delay-after-add=1s", "--scale-down-utilization-threshold=0.9")...)
	s := watchServing(t, client)

	// Pods of no controller keep two nodes, which they fill: two of them one node, and then two another.
	stay := map[string]bool{}
	for _, names := range [][]string{{"anchor-1", "ballast-1"}, {"anchor-2", "ballast-2"}} {
		create(t, client, pod(names[0], "1"), pod(names[1], "3"))
		for _, name := range names {
			eventually(t, name+" to run", func(ctx context.Context) bool { return get(ctx, client, name).Status.Phase == v1.PodRunning })
			stay[get(t.Context(), client, name).Spec.NodeName] = true
		}
	}
	if len(stay) != 2 {
		t.Fatalf("the pods are on %v, want two nodes", stay)
	}
	pair := gang("pair", 2, "")
	pair.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	createGroup(t, client, pair)
	members := []string{"left", "right"}
	for _, name := range members {
		createBudget(t, client, name, "app", name, 1)
		single(t, client, name, "2500m", "pair", map[string]string{cluster.SurgeAnnotation: "true"})
	}
	eventually(t, "both members to be ready", func(context.Context) bool { return s.only("left") != "" && s.only("right") != "" })
	if left, right := s.only("left"), s.only("right"); left == right || stay[left] || stay[right] {
		t.Fatalf("the members are on %s and %s, want two nodes other than %v", left, right, stay)
	}

	for _, name := range []string{"ballast-1", "ballast-2"} {
		if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both nodes to be removed, and the members to be ready on the others", func(ctx context.Context) bool {
		nodes, err := api.Nodes(ctx, client)
		return err == nil && len(nodes) == 2 && stay[s.only("left")] && stay[s.only("right")]
	})
	for _, name := range members {
		if s.hadGap(name) {
			t.Errorf("member %s had no ready pod for a moment", name)
		}
		d, err := client.AppsV1().Deployments(v1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || d.Spec.Template.Annotations[cluster.SurgedAtAnnotation] == "" {
			t.Errorf("the pod template of Deployment %s has the annotations %v (%v), want one more", name, d.Spec.Template.Annotations, err)
		}
	}
}
