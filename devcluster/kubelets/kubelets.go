// Package kubelets plays the kubelet of every node: it keeps leases, reports
// nodes ready, runs pods that are bound, completes those whose annotation says
// how long they run, and ends those that are deleted within their grace period.
package kubelets

import (
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/devcluster/api"
)

// Annotations on pods.
const (
	RunFor    = "berth.dev/run-for"    // duration after which the pod succeeds
	StopAfter = "berth.dev/stop-after" // how long it takes to stop, at most its grace period; default 1s
)

// Options of the kubelets.
type Options struct {
	LeaseInterval time.Duration // between renewals of a node's lease
	StartDelay    time.Duration // from bound to running
	Workers       int
}

// Command returns the component's command.
func Command() *cobra.Command {
	var kubeconfig string
	o := Options{}
	cmd := &cobra.Command{
		Use: "kubelets", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			client, err := api.Dial(kubeconfig)
			if err != nil {
				return err
			}
			return Run(ctx, client, o)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "")
	cmd.Flags().DurationVar(&o.LeaseInterval, "lease-interval", 60*time.Second, "")
	cmd.Flags().DurationVar(&o.StartDelay, "start-delay", 500*time.Millisecond, "")
	cmd.Flags().IntVar(&o.Workers, "workers", 16, "")
	return cmd
}

// Run plays kubelet until the context ends.
func Run(ctx context.Context, client kubernetes.Interface, o Options) error {
	k := &kubelets{client: client, o: o, wake: make(chan struct{}, 1), pods: map[types.UID]*podState{}, nodes: map[string]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(obj any) (any, error) {
		if m, ok := obj.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		return obj, nil
	}))
	pods := factory.InformerFor(&v1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		tweak := func(l *metav1.ListOptions) {
			l.FieldSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
		}
		return cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(c.CoreV1().RESTClient(), "pods", "", tweak), &v1.Pod{}, resync, cache.Indexers{})
	})
	onPod := func(obj any) { k.podChanged(obj.(*v1.Pod)) }
	onNode := func(obj any) { k.nodeChanged(obj.(*v1.Node)) }
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: onPod, UpdateFunc: func(_, obj any) { onPod(obj) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			k.podGone(obj.(*v1.Pod).UID)
		},
	}); err != nil {
		return err
	}
	if _, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: onNode, UpdateFunc: func(_, obj any) { onNode(obj) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			k.nodeGone(obj.(*v1.Node).Name)
		},
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	var wg sync.WaitGroup
	jobs := make(chan func(context.Context), 1024)
	for range o.Workers {
		wg.Go(func() {
			for job := range jobs {
				job(ctx)
			}
		})
	}
	k.loop(ctx, jobs)
	close(jobs)
	wg.Wait()
	return nil
}

type kubelets struct {
	client kubernetes.Interface
	o      Options
	mu     sync.Mutex
	due    timetable
	wake   chan struct{}
	pods   map[types.UID]*podState
	nodes  map[string]bool
}

// podState is how far a pod has come, so that each step is taken once.
type podState struct {
	started, finishing, stopping bool
}

// at plans a call.
func (k *kubelets) at(when time.Time, job func(context.Context)) {
	k.mu.Lock()
	heap.Push(&k.due, appointment{when, job})
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *kubelets) loop(ctx context.Context, jobs chan<- func(context.Context)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		k.mu.Lock()
		var next func(context.Context)
		wait := time.Hour
		if len(k.due) > 0 {
			if wait = time.Until(k.due[0].when); wait <= 0 {
				next = heap.Pop(&k.due).(appointment).job
			}
		}
		k.mu.Unlock()
		if next != nil {
			select {
			case jobs <- next:
			case <-ctx.Done():
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
	}
}

func (k *kubelets) podChanged(p *v1.Pod) {
	k.mu.Lock()
	s := k.pods[p.UID]
	if s == nil {
		s = &podState{}
		k.pods[p.UID] = s
	}
	start := !s.started && p.DeletionTimestamp == nil && p.Status.Phase == v1.PodPending
	stop := !s.stopping && p.DeletionTimestamp != nil
	finish := !s.finishing && p.Status.Phase == v1.PodRunning && p.Annotations[RunFor] != ""
	s.started = s.started || start
	s.stopping = s.stopping || stop
	s.finishing = s.finishing || finish
	k.mu.Unlock()
	now := time.Now()
	if start {
		k.at(now.Add(k.o.StartDelay), func(ctx context.Context) { k.startPod(ctx, p) })
	}
	if finish {
		run, err := time.ParseDuration(p.Annotations[RunFor])
		if err != nil {
			fmt.Fprintf(os.Stderr, "pod %s/%s: annotation %s is %q; it must be a duration such as 30s\n", p.Namespace, p.Name, RunFor, p.Annotations[RunFor])
		} else {
			k.at(started(p, now).Add(run), func(ctx context.Context) { k.finishPod(ctx, p) })
		}
	}
	if stop {
		k.at(now.Add(stopTime(p)), func(ctx context.Context) { k.removePod(ctx, p) })
	}
}

func started(p *v1.Pod, now time.Time) time.Time {
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return now
}

func stopTime(p *v1.Pod) time.Duration {
	d := time.Second
	if v, err := time.ParseDuration(p.Annotations[StopAfter]); err == nil {
		d = v
	}
	if g := p.DeletionGracePeriodSeconds; g != nil {
		d = min(d, time.Duration(*g)*time.Second)
	}
	return d
}

func (k *kubelets) podGone(uid types.UID) {
	k.mu.Lock()
	delete(k.pods, uid)
	k.mu.Unlock()
}

func (k *kubelets) startPod(ctx context.Context, p *v1.Pod) {
	now := metav1.Now()
	yes := v1.ConditionTrue
	status := v1.PodStatus{Phase: v1.PodRunning, StartTime: &now, Conditions: []v1.PodCondition{
		{Type: v1.PodInitialized, Status: yes, LastTransitionTime: now}, {Type: v1.ContainersReady, Status: yes, LastTransitionTime: now},
		{Type: v1.PodReady, Status: yes, LastTransitionTime: now},
	}}
	up := true
	for i := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: p.Spec.Containers[i].Name, Image: p.Spec.Containers[i].Image, Ready: true, Started: &up,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	k.patchPod(ctx, p, status)
}

func (k *kubelets) finishPod(ctx context.Context, p *v1.Pod) {
	now := metav1.Now()
	done := v1.ConditionFalse
	status := v1.PodStatus{Phase: v1.PodSucceeded, Conditions: []v1.PodCondition{
		{Type: v1.ContainersReady, Status: done, Reason: "PodCompleted", LastTransitionTime: now},
		{Type: v1.PodReady, Status: done, Reason: "PodCompleted", LastTransitionTime: now},
	}}
	for i := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: p.Spec.Containers[i].Name, Image: p.Spec.Containers[i].Image,
			State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: metav1.NewTime(started(p, now.Time)), FinishedAt: now}},
		})
	}
	k.patchPod(ctx, p, status)
}

func (k *kubelets) patchPod(ctx context.Context, p *v1.Pod, status v1.PodStatus) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return
	}
	_, err = k.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	k.again(err, func(ctx context.Context) { k.patchPod(ctx, p, status) })
}

// removePod is the kubelet's last word on a deleted pod.
func (k *kubelets) removePod(ctx context.Context, p *v1.Pod) {
	opts := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.UID}}
	err := k.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, opts)
	k.again(err, func(ctx context.Context) { k.removePod(ctx, p) })
}

// again repeats a call whose failure may pass.
func (k *kubelets) again(err error, job func(context.Context)) {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return
	}
	k.at(time.Now().Add(time.Second), job)
}

func (k *kubelets) nodeChanged(n *v1.Node) {
	k.mu.Lock()
	known := k.nodes[n.Name]
	k.nodes[n.Name] = true
	k.mu.Unlock()
	if !known {
		// Spread the renewals of nodes that come together.
		k.at(time.Now(), func(ctx context.Context) { k.renew(ctx, n.Name, n.UID) })
	}
	if needsReady(n) {
		k.at(time.Now(), func(ctx context.Context) { k.reportReady(ctx, n) })
	}
}

// needsReady tells whether nobody else has said how the node is. A node whose
// provider says that it is starting is left to the provider.
func needsReady(n *v1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionUnknown
		}
	}
	return true
}

func (k *kubelets) nodeGone(name string) {
	k.mu.Lock()
	delete(k.nodes, name)
	k.mu.Unlock()
}

func (k *kubelets) reportReady(ctx context.Context, n *v1.Node) {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated kubelet is ready",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	k.again(err, func(ctx context.Context) { k.reportReady(ctx, n) })
}

// renew keeps the node's lease; the lease goes with its node.
func (k *kubelets) renew(ctx context.Context, name string, uid types.UID) {
	k.mu.Lock()
	known := k.nodes[name]
	k.mu.Unlock()
	if !known {
		return
	}
	leases := k.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	now := metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(3 * k.o.LeaseInterval / time.Second)), RenewTime: &now}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return
	}
	_, err = leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}},
		}, Spec: spec}, metav1.CreateOptions{})
	}
	next := k.o.LeaseInterval
	if err != nil {
		next = 5 * time.Second
	}
	k.at(time.Now().Add(next), func(ctx context.Context) { k.renew(ctx, name, uid) })
}

// timetable is a heap of appointments, soonest first.
type timetable []appointment

type appointment struct {
	when time.Time
	job  func(context.Context)
}

func (t timetable) Len() int           { return len(t) }
func (t timetable) Less(i, j int) bool { return t[i].when.Before(t[j].when) }
func (t timetable) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timetable) Push(x any)        { *t = append(*t, x.(appointment)) }
func (t *timetable) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}
