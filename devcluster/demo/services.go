package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berthproject/berth/devcluster/kubelets"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file is the services that follow the night batch. Beside them a batch runs with one
// large pod on each node; when it is over, the services' pods are spread over nodes that are
// used to a third, and Berth drains the cluster to its size. What must hold from then on: no
// replacement of an evicted pod is ever told that there is no node for it, no service has
// fewer pods ready than its disruption budget says, and no placement that the checker sees
// breaks a rule. And at the end: there are few enough nodes, none with a taint of a removal or
// a cordon.

// shop is the namespace of the services.
const shop = "shop"

// Of each service, how many pods there are, how many of them its disruption budget lets be
// unavailable at a time, and how many nodes there are for it.
const (
	replicas        = 10
	maxUnavailable  = 3
	nodesPerService = 2
)

// serviceSizes are the requests of services' pods, CPU and memory.
var serviceSizes = [][2]string{{"100m", "256Mi"}, {"200m", "512Mi"}, {"300m", "1Gi"}, {"400m", "1Gi"}}

// serviceGroup is the node group of the services' nodes.
const serviceGroup = "small-cpu"

// restTime is how long nothing may be left to remove, until the cluster is at rest. Berth
// plans every second.
const restTime = 3 * time.Second

// services is the play of the services, in one goroutine; what informers see is in fleet and pods.
type services struct {
	bed                 *testbed
	count               int
	fleet               *fleet
	pods                *servicePods
	table               *progress
	checks              int // of placements, one every ten seconds
	checked, violations int
	before, after       nodeCounts // when the batch was over, and at the end
}

// playServices plays the services, so many of them; why returns what Berth waits for. Its error
// says what was expected and not met.
func playServices(ctx context.Context, bed *testbed, file *simulatedgroup.File, count int, why func(context.Context) string) error {
	s := &services{bed: bed, count: count, pods: newServicePods(replicas - maxUnavailable), table: newProgress(bed.out, why, time.Now())}
	var err error
	if s.fleet, err = newFleet(ctx, bed, file); err != nil {
		return err
	}
	if err := watchPods(ctx, bed, shop, s.pods.changed, s.pods.gone); err != nil {
		return err
	}
	large := job{name: "large", pods: count * nodesPerService, cpu: "2", memory: "2Gi"}
	fmt.Fprintf(bed.out, "\nnext, %d services of %d pods, of which %d may be disrupted at a time, beside a batch of %d large pods\n\n", count, replicas, maxUnavailable, large.pods)
	s.head()
	if err := s.submit(ctx, large); err != nil {
		return err
	}
	enough := func(podCounts, nodeCounts) bool { return s.fleet.count().ready >= large.pods }
	if err := s.until(ctx, "a node for each pod of the batch", enough); err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.until(ctx, "the services to run", func(podCounts, nodeCounts) bool { return s.pods.watch(count * replicas) }); err != nil {
		return err
	}
	fmt.Fprintln(bed.out, "the batch is over")
	if err := bed.client.BatchV1().Jobs(namespace).Delete(ctx, large.name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		return fmt.Errorf("ending the batch: %w", err)
	}
	s.before = s.fleet.count()
	limit := s.nodesAtMost(file)
	rest := fmt.Sprintf("the services to be at rest on at most %d of %d nodes", limit, s.before.all())
	if err := s.until(ctx, rest, s.rests(limit)); err != nil {
		return err
	}
	s.after = s.fleet.count()
	return s.summary(ctx)
}

// submit creates the batch: its pods take more than half of a node each, and aren't evicted.
func (s *services) submit(ctx context.Context, batch job) error {
	o := batch.object()
	o.Spec.Template.Spec.NodeSelector = map[string]string{simulatedgroup.GroupLabel: serviceGroup}
	delete(o.Spec.Template.Annotations, kubelets.RunFor)
	if _, err := s.bed.client.BatchV1().Jobs(namespace).Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("submitting the batch: %w", err)
	}
	return nil
}

// open creates the services with their budgets.
func (s *services) open(ctx context.Context) error {
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}
	if _, err := s.bed.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the namespace: %w", err)
	}
	spare := intstr.FromInt32(maxUnavailable)
	for i := range s.count {
		meta := metav1.ObjectMeta{Namespace: shop, Name: serviceName(i)}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{serviceLabel: meta.Name}}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &spare, Selector: selector}}
		if _, err := s.bed.client.PolicyV1().PodDisruptionBudgets(shop).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making the budget of service %s: %w", meta.Name, err)
		}
		pod := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: v1.PodSpec{
			NodeSelector: map[string]string{simulatedgroup.GroupLabel: serviceGroup},
			Containers:   []v1.Container{{Name: "serve", Image: "shop/" + meta.Name, Resources: v1.ResourceRequirements{Requests: serviceRequests(i)}}},
		}}
		var err error
		if stateful(i) {
			_, err = s.bed.client.AppsV1().StatefulSets(shop).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
				Replicas: new(int32(replicas)), Selector: selector, Template: pod, PodManagementPolicy: appsv1.ParallelPodManagement,
			}}, metav1.CreateOptions{})
		} else {
			_, err = s.bed.client.AppsV1().Deployments(shop).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(replicas)), Selector: selector, Template: pod,
			}}, metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("making service %s: %w", meta.Name, err)
		}
	}
	return nil
}

// serviceName returns the name of a service's objects.
func serviceName(i int) string { return fmt.Sprintf("service-%02d", i) }

// stateful reports whether a service is a StatefulSet; the others are Deployments.
func stateful(i int) bool { return i%7 == 6 }

// serviceRequests returns what each pod of a service requests.
func serviceRequests(i int) v1.ResourceList {
	size := serviceSizes[i%len(serviceSizes)]
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(size[0]), v1.ResourceMemory: resource.MustParse(size[1])}
}

// nodesAtMost returns how many nodes may be left at the end: what first-fit-decreasing
// takes to pack the pods on empty nodes, and a quarter more, since pods that aren't moved stay
// where they are, and a node that is used to more than a half isn't drained.
func (s *services) nodesAtMost(file *simulatedgroup.File) int {
	i := slices.IndexFunc(file.Groups, func(g simulatedgroup.GroupConfig) bool { return g.Name == serviceGroup })
	node := amounts(file.Groups[i].Template.Allocatable)
	var pods [][2]float64
	for i := range s.count {
		for range replicas {
			pods = append(pods, amounts(serviceRequests(i)))
		}
	}
	packed := firstFitDecreasing(pods, node)
	return packed + (packed+3)/4
}

// firstFitDecreasing returns how many nodes the pods take that are packed by decreasing CPU,
// each on the first node with room for its CPU and memory.
func firstFitDecreasing(pods [][2]float64, node [2]float64) int {
	slices.SortFunc(pods, func(a, b [2]float64) int {
		if a[0] > b[0] {
			return -1
		}
		return 1
	})
	var free [][2]float64
	for _, p := range pods {
		i := slices.IndexFunc(free, func(f [2]float64) bool { return f[0] >= p[0] && f[1] >= p[1] })
		if i < 0 {
			i, free = len(free), append(free, node)
		}
		free[i][0], free[i][1] = free[i][0]-p[0], free[i][1]-p[1]
	}
	return len(free)
}

// rests returns a condition that is true when no more nodes are left than so many, none is on
// its way out or could go, and all pods are ready, for restTime.
func (s *services) rests(limit int) func(podCounts, nodeCounts) bool {
	var since time.Time
	return func(p podCounts, n nodeCounts) bool {
		if n.all() > limit || n.draining+n.cordoned+n.candidates+n.starting > 0 || p.ready < s.count*replicas {
			since = time.Time{}
			return false
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= restTime
	}
}

// until adds rows to the table until something holds, and checks placements every ten seconds.
// goal says what should hold.
func (s *services) until(ctx context.Context, goal string, holds func(podCounts, nodeCounts) bool) error {
	sample := time.NewTicker(250 * time.Millisecond)
	defer sample.Stop()
	for {
		p, n, now := s.pods.count(), s.fleet.count(), time.Now()
		if s.table.due(now) {
			if err := s.table.row(ctx, now, s.cells(ctx, p, n), goal); err != nil {
				return err
			}
		}
		if at := int(now.Sub(s.table.start).Seconds()) / 10; at > s.checks {
			s.checks = at
			if err := s.check(ctx); err != nil {
				return err
			}
		}
		if holds(p, n) {
			return nil
		}
		if err := s.bed.failed(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting for %s: %d of %d pods ready; %d nodes, %d of them draining, %d cordoned, %d that could go",
				context.Cause(ctx), goal, p.ready, p.all, n.all(), n.draining, n.cordoned, n.candidates)
		case <-sample.C:
		}
	}
}

// head prints the head of the table.
func (s *services) head() {
	fmt.Fprintf(s.bed.out, "%6s │ %7s %6s %8s %6s %8s │ %9s %8s %6s %8s │ %8s\n", "", "pods", "", "", "", "", "nodes", "", "", "", "")
	fmt.Fprintf(s.bed.out, "%6s │ %7s %6s %8s %6s %8s │ %9s %8s %6s %8s │ %8s\n", "time", "pending", "ready", "evicted", "moved", "homeless", "launching", "starting", "ready", "draining", "$/h")
}

// cells returns the counts as a row of the table.
func (s *services) cells(ctx context.Context, p podCounts, n nodeCounts) string {
	return fmt.Sprintf("%7d %6d %8d %6d %8d │ %9d %8d %6d %8d │ %8.2f",
		p.pending, p.ready, p.evicted, p.moved, p.homeless, s.bed.ordered(ctx), n.starting, n.ready, n.draining, n.hourly)
}

// check has the checker look at the placements of now.
func (s *services) check(ctx context.Context) error {
	checked, violations, err := s.bed.check(ctx, shop)
	s.checked += checked
	s.violations += violations
	return err
}

// summary prints what became of the services, and returns an error for each expectation that isn't
// met.
func (s *services) summary(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	var errs []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("expected "+format, args...))
		}
	}
	p := s.pods.count()
	expect(p.evicted > 0, "pods to be evicted")
	expect(p.moved == p.evicted, "a replacement on a node for each of %d evicted pods, got %d", p.evicted, p.moved)
	expect(p.homeless == 0, "no replacement to be told that there is no node for it, got %d", p.homeless)
	expect(len(p.overrun) == 0, "no budget to be overrun, got %v", p.overrun)
	expect(s.checked > 0, "the checker to have seen running pods")
	expect(s.violations == 0, "no placement that breaks a rule, got %d", s.violations)
	out := s.bed.out
	fmt.Fprintf(out, "\n%-26s %d to %d\n", "nodes", s.before.all(), s.after.all())
	fmt.Fprintf(out, "%-26s $%.2f to $%.2f an hour\n", "bill", s.before.hourly, s.after.hourly)
	fmt.Fprintf(out, "%-26s %d evicted, %d moved, %d without a home\n", "pods", p.evicted, p.moved, p.homeless)
	fmt.Fprintf(out, "%-26s %d, overrun %d times; the fewest ready pods of a service were %d of %d\n", "budgets", s.count, len(p.overrun), p.fewest, replicas)
	fmt.Fprintf(out, "%-26s %d placements checked, %d violations\n", "checker", s.checked, s.violations)
	return errors.Join(errs...)
}
