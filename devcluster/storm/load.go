package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/kubelets"
	"github.com/berthproject/berth/devcluster/storm/checker"
)

// This file is the load. What it sizes so that it holds: every pod of the trickle fits on the
// base pool, so that silence is Berth's; every pod of a group fits on a node of the group,
// and all together within the group's maximum; pods of high priority fit where those of low
// priority are.

const namespace = v1.NamespaceDefault

// load creates pods through a client of its own. A call that fails, since the API server is
// away, isn't made again: the next one comes soon. Each part draws from a generator of its own, so that
// a part that is late draws what it would have drawn.
type load struct {
	client  kubernetes.Interface
	seed    uint64
	watch   *checker.Watcher
	devices bool // pods claim some
	gangs   bool // there are pod groups
}

// start creates what stays during the storm: priority classes, services of several pods and
// the pods that fill the full pool.
func (l *load) start(ctx context.Context) error {
	for name, value := range map[string]int32{"storm-low": 10, "storm-middle": 100, "storm-high": 1000} {
		c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := l.client.SchedulingV1().PriorityClasses().Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a priority class: %w", err)
		}
	}
	for i, cpu := range []string{"250m", "500m", "1"} {
		d := deployment(fmt.Sprint("service-", i), 6, cpu, "storm-middle", groupLabel, general)
		if i == 1 {
			d.Spec.Template.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
				MaxSkew: 2, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: d.Spec.Selector}}
		}
		if err := l.create(ctx, d); err != nil {
			return err
		}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: d.Name},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: d.Spec.Selector, MaxUnavailable: new(intstr.FromInt32(2))}}
		if _, err := l.client.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a budget: %w", err)
		}
	}
	if l.devices {
		if err := l.startClaims(ctx); err != nil {
			return err
		}
	}
	return l.create(ctx, deployment("filler", 20, "500m", "storm-low", poolLabel, fullPool)) // 16 of them fit
}

func (l *load) create(ctx context.Context, d *appsv1.Deployment) error {
	if _, err := l.client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a Deployment: %w", err)
	}
	return nil
}

// loadPart is something that the load does again and again.
type loadPart struct {
	every time.Duration
	next  func(context.Context, *rand.Rand, int)
}

// run makes pods come and go until the context ends. Every call has five seconds: one that hangs in a
// server that is down mustn't hold up its part for longer.
func (l *load) run(ctx context.Context) {
	parts := []loadPart{
		{150 * time.Millisecond, l.trickle}, {3 * time.Second, l.preempt}, {10 * time.Second, l.resize},
		{2 * time.Second, l.wave}, {time.Second, l.sweep}, {time.Second, l.gang},
	}
	if l.devices {
		parts = append(parts, l.claimParts()...)
	}
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(l.seed, uint64(i)))
			tick := time.NewTicker(part.every)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					call, cancel := context.WithTimeout(ctx, 5*time.Second)
					part.next(call, r, n)
					cancel()
				}
			}
		})
	}
	wg.Wait()
}

// trickle creates a small pod that runs for seconds.
func (l *load) trickle(ctx context.Context, r *rand.Rand, n int) {
	p := bare(fmt.Sprint("trickle-", n), fmt.Sprintf("%dm", 20+r.IntN(80)), []string{"storm-low", "storm-middle", "storm-high"}[r.IntN(3)])
	p.Annotations[kubelets.RunFor] = fmt.Sprintf("%ds", 2+r.IntN(8))
	p.Spec.NodeSelector = map[string]string{poolLabel: basePool}
	l.pod(ctx, p)
}

// preempt creates a pod of high priority for the full pool.
func (l *load) preempt(ctx context.Context, r *rand.Rand, n int) {
	p := bare(fmt.Sprint("urgent-", n), []string{"500m", "1", "1500m"}[r.IntN(3)], "storm-high")
	p.Annotations[kubelets.RunFor] = "4s"
	p.Spec.NodeSelector = map[string]string{poolLabel: fullPool}
	l.pod(ctx, p)
}

// resize gives a service another number of pods: up to 21 CPUs in all, on nodes of 4.
func (l *load) resize(ctx context.Context, r *rand.Rand, _ int) {
	name := fmt.Sprint("service-", r.IntN(3))
	replicas := int32(r.IntN(13))
	if s, err := l.client.AppsV1().Deployments(namespace).GetScale(ctx, name, metav1.GetOptions{}); err == nil {
		s.Spec.Replicas = replicas
		_, _ = l.client.AppsV1().Deployments(namespace).UpdateScale(ctx, name, s, metav1.UpdateOptions{}) // the next comes soon
	}
}

// wave begins and ends waves of pods that take a node each: a group that is empty gets some,
// and one whose pods are all placed loses them.
func (l *load) wave(ctx context.Context, r *rand.Rand, n int) {
	id := wholeGroups[n%len(wholeGroups)]
	var placed, empty bool
	l.watch.Do(func(h *checker.History) { placed, empty = h.Wave(id) })
	switch {
	case empty:
		for i := range 2 + r.IntN(4) {
			p := bare(fmt.Sprintf("%s-%d-%d", id, n, i), "1500m", "storm-middle")
			p.Spec.NodeSelector = map[string]string{groupLabel: id}
			p.Spec.Tolerations = []v1.Toleration{{Key: "storm/whole", Operator: v1.TolerationOpExists}}
			p.Labels = map[string]string{groupLabel: id}
			l.pod(ctx, p)
		}
	case placed:
		l.delete(ctx, metav1.ListOptions{LabelSelector: groupLabel + "=" + id})
	}
}

// sweep deletes pods that have ended.
func (l *load) sweep(ctx context.Context, _ *rand.Rand, _ int) {
	l.delete(ctx, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"})
}

// clear deletes everything that the load has created, until the context ends or all is gone.
func (l *load) clear(ctx context.Context) error {
	for {
		err := l.client.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err == nil {
			l.delete(ctx, metav1.ListOptions{})
			if l.devices {
				l.deleteClaims(ctx)
			}
			var pods int
			l.watch.Do(func(h *checker.History) { pods, _, _ = h.Counts() })
			if pods == 0 {
				l.dropGroups(ctx, metav1.ListOptions{})
				return nil
			}
		}
		pause(ctx, time.Second)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// pod creates a pod. A failure isn't made up for.
func (l *load) pod(ctx context.Context, p *v1.Pod) {
	_, _ = l.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}) // the next comes soon
}

// delete deletes pods. A failure isn't made up for.
func (l *load) delete(ctx context.Context, which metav1.ListOptions) {
	_ = l.client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, which) // the next try comes soon
}

// bare returns a pod without a controller.
func bare(name, cpu, priority string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{}}}
	p.Spec = podSpec(cpu, priority)
	return p
}

// planted is a secret in each pod. No Berth logs it.
const planted = "hunter2-planted"

func podSpec(cpu, priority string) v1.PodSpec {
	return v1.PodSpec{
		PriorityClassName: priority, TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []v1.Container{{Name: "c", Image: "none", Env: []v1.EnvVar{{Name: "PASSWORD", Value: planted}}, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}},
	}
}

// deployment returns a Deployment of equal pods for the nodes of a label.
func deployment(name string, replicas int32, cpu, priority, label, value string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(cpu, priority)}
	d.Spec.Template.Spec.NodeSelector = map[string]string{label: value}
	return d
}
