package bench

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file is what contenders are measured with: the cluster, which all cases share, and
// the workload of each case.

// Namespaces of a run. Only pods in measured are counted.
const (
	measured = "bench"
	standing = "bench-standing" // pods that exist before the run
	churning = "bench-churn"    // pods that are created during the run
)

// Case is a workload. The shapes are those of kube-scheduler's own benchmark,
// scheduler_perf: nodes of 4 CPUs, 32 GiB and 110 pods, pods of 100m and 500 MiB.
type Case struct {
	Name, About string
	// standing returns how many pods are on nodes before the run; nil for none.
	standing func(s Size) int
	// pods returns how many pods are measured; nil means Size.Pods.
	pods func(s Size) int
	// shape returns the i-th measured pod.
	shape func(i int) *v1.Pod
	// services are the names of Services, each selecting pods by its name as label app.
	services []string
	// churn is how many pods that fit nowhere are created a second during the run.
	churn int
}

// Size is how many nodes and measured pods a case has.
type Size struct{ Nodes, Pods int }

// Cases are all cases, in the order in which they run.
var Cases = []Case{
	{Name: "basic", About: "plain pods of one shape", shape: plain},
	{Name: "node-affinity", About: "required node affinity to two of three zones", shape: func(i int) *v1.Pod { return zoned(plain(i)) }},
	{Name: "anti-affinity", About: "required anti-affinity by hostname: at most two pods for five nodes",
		pods:  func(s Size) int { return min(s.Pods, max(1, s.Nodes*2/5)) },
		shape: func(i int) *v1.Pod { return apart(plain(i), "green") }},
	{Name: "zone-spread", About: "hard spread over three zones, at most 5 apart", shape: func(i int) *v1.Pod {
		p := plain(i)
		p.Labels = map[string]string{"color": "blue"}
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		return p
	}},
	{Name: "service-spread", About: "pods that a Service selects: spread by default",
		services: []string{"app-0"}, shape: func(i int) *v1.Pod { return app(plain(i), "app-0") }},
	{Name: "preemption", About: "every node is full of four pods of low priority; each pod takes the place of three; timed from the scheduler's start",
		standing: func(s Size) int { return 4 * s.Nodes },
		pods:     func(s Size) int { return min(s.Pods, s.Nodes) },
		shape: func(i int) *v1.Pod {
			p := plain(i)
			p.Spec.PriorityClassName = highPriority
			p.Spec.Containers[0].Resources = requests("3", "500Mi")
			return p
		}},
	{Name: "unschedulable", About: "plain pods, while pods of high priority come that fit nowhere", churn: 5, shape: plain},
	{Name: "mixed", About: "all of these in turn, of eight apps behind Services",
		services: apps(8), shape: mixed},
}

const highPriority = "bench-high"

// requests returns the resources of a container.
func requests(cpu, memory string) v1.ResourceRequirements {
	return v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}}
}

// plain returns the i-th pod of scheduler_perf's basic workload.
func plain(i int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%06d", i)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10.1", Resources: requests("100m", "500Mi")}}},
	}
}

func app(p *v1.Pod, name string) *v1.Pod {
	p.Labels = map[string]string{"app": name}
	return p
}

func apps(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("app-", i))
	}
	return out
}

func zoned(p *v1.Pod) *v1.Pod {
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{
			Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{"zone-0", "zone-1"}}}}}}}}
	return p
}

func apart(p *v1.Pod, color string) *v1.Pod {
	p.Labels = map[string]string{"color": color}
	p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: v1.LabelHostname}}}}
	return p
}

// mixed returns pods of eight apps in turn, each app with a shape of its own.
func mixed(i int) *v1.Pod {
	p := app(plain(i), fmt.Sprint("app-", i%8))
	selector := &metav1.LabelSelector{MatchLabels: p.Labels}
	switch i % 8 {
	case 1:
		p = zoned(p)
	case 2: // one pod in forty: with more there would be too few nodes
		if i%40 == 2 {
			p = apart(p, "red")
		}
	case 3:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selector}}
	case 4:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{
			Weight: 10, PodAffinityTerm: v1.PodAffinityTerm{LabelSelector: selector, TopologyKey: v1.LabelTopologyZone}}}}}
	case 5:
		p.Spec.Containers[0].Resources = requests("250m", "1Gi")
	case 6:
		p.Spec.PriorityClassName = highPriority
	}
	return p
}

// size returns how many pods are measured.
func (c Case) size(s Size) int {
	if c.pods != nil {
		return c.pods(s)
	}
	return s.Pods
}

// prepare creates what a case needs beside its measured pods.
func (b *bench) prepare(ctx context.Context, c Case) error {
	for _, name := range c.services {
		s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ServiceSpec{
			ClusterIP: v1.ClusterIPNone, Selector: map[string]string{"app": name}}}
		if _, err := b.client.CoreV1().Services(measured).Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a Service: %w", err)
		}
	}
	if c.standing == nil {
		return nil
	}
	return b.each(ctx, "pods that are there before", c.standing(b.o.Size), func(ctx context.Context, i int) error {
		p := plain(i)
		p.Spec.TerminationGracePeriodSeconds = new(int64)
		p.Spec.Containers[0].Resources = requests("900m", "500Mi")
		p.Spec.NodeName = nodeName(i % b.o.Nodes)
		_, err := b.client.CoreV1().Pods(standing).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
}

// churn creates pods that fit nowhere until the context ends.
func (b *bench) churn(ctx context.Context, rate int) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		p := plain(i)
		p.Spec.PriorityClassName = highPriority
		p.Spec.Containers[0].Resources = requests("9", "500Mi")
		if _, err := b.client.CoreV1().Pods(churning).Create(ctx, p, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
			return fmt.Errorf("creating a pod that fits nowhere: %w", err)
		}
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// nodes creates the nodes, in three zones.
func (b *bench) nodes(ctx context.Context) error {
	return b.each(ctx, "nodes", b.o.Nodes, func(ctx context.Context, i int) error {
		n := &v1.Node{}
		n.Name = nodeName(i)
		n.Labels = map[string]string{v1.LabelHostname: n.Name, v1.LabelTopologyZone: fmt.Sprint("zone-", i%3)}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110")}
		n.Status.Capacity = n.Status.Allocatable
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		_, err := b.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	})
}

// createCluster creates the nodes, the namespaces and the priority class.
func (b *bench) createCluster(ctx context.Context) error {
	for _, name := range []string{measured, standing, churning} {
		if _, err := b.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a namespace: %w", err)
		}
	}
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: highPriority}, Value: 10}
	if _, err := b.client.SchedulingV1().PriorityClasses().Create(ctx, high, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a priority class: %w", err)
	}
	return b.nodes(ctx)
}

// reset deletes what the last run created, so that each run begins in the same state.
func (b *bench) reset(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, ns := range []string{measured, standing, churning} {
		for _, collection := range []interface {
			DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, list metav1.ListOptions) error
		}{b.client.CoreV1().Pods(ns), b.client.EventsV1().Events(ns)} {
			if err := collection.DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
				return fmt.Errorf("clearing %s: %w", ns, err)
			}
		}
		services, err := b.client.CoreV1().Services(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("clearing %s: %w", ns, err)
		}
		for i := range services.Items {
			if err := b.client.CoreV1().Services(ns).Delete(ctx, services.Items[i].Name, now); err != nil {
				return fmt.Errorf("clearing %s: %w", ns, err)
			}
		}
	}
	return nil
}
