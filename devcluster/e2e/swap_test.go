package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/kubelets"
	"github.com/berthproject/berth/devcluster/storm/checker"
)

// This file changes who schedules and scales while a cluster is under load, as docs/migration.md
// says. kube-scheduler is the real one. Cluster Autoscaler can't be had as a module; another
// Berth that only scales plays it, by Cluster Autoscaler's Lease, and with all rights.

// groupOf is the label of the simulated provider's nodes that names their group.
const groupOf = "berth.dev/node-group"

// swapGroups are node groups: pods for nodes of the first take a node each.
const swapGroups = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- {name: whole, max: 10, template: {allocatable: {cpu: "2", memory: 8Gi, pods: "10"}, taints: [{key: whole, effect: NoSchedule}]}}
- {name: shared, max: 10, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`

// scaleSoon are flags by which nodes are bought and removed within seconds.
var scaleSoon = []string{"--scan-interval=1s", "--scale-down-unneeded-time=3s", "--scale-down-delay-after-add=0s",
	"--scale-down-delay-after-failure=1s", "--node-delete-delay-after-taint=1s", "--unremovable-node-recheck-timeout=1s"}

// holds returns a condition: that a Lease is held.
func holds(client kubernetes.Interface, lease string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		l, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, lease, metav1.GetOptions{})
		return err == nil && ptr.Deref(l.Spec.HolderIdentity, "") != ""
	}
}

// swapped is a cluster that is served by one pair of programs after the other, and what the checker sees of it.
type swapped struct {
	t       *testing.T
	cluster *controlplane.Cluster
	client  kubernetes.Interface
	groups  []string // flags by which a program has the node groups
	watch   *checker.Watcher
	mu      sync.Mutex
	waves   int                     // of pods that took a node each and are all placed; guarded by mu
	placed  map[types.UID]time.Time // when the API server took each pod's binding, in whole seconds; guarded by mu
}

// startSwapped has kube-scheduler and another autoscaler serve a cluster with two nodes and node groups of a file. The
// checker watches until the test ends.
func startSwapped(t *testing.T, c *controlplane.Cluster, client kubernetes.Interface, groups string) (s *swapped, scheduler, foreign *controlplane.Process) {
	t.Helper()
	makeNode(t, client, "n1", "8Gi")
	makeNode(t, client, "n2", "8Gi")
	s = &swapped{t: t, cluster: c, client: client, groups: nodeGroups(t, c, groups), placed: map[types.UID]time.Time{},
		watch: checker.NewWatcher(client, checker.Config{GroupLabel: groupOf, WholeNode: func(g string) bool { return g == "whole" }, Patience: time.Minute})}
	s.runs(s.watch.Run)
	s.runs(s.times)
	scheduler, foreign = s.scheduler(), s.foreign()
	within(t, "both Leases to be held", time.Minute, func(ctx context.Context) bool {
		return holds(client, "kube-scheduler")(ctx) && holds(client, "cluster-autoscaler")(ctx)
	})
	return s, scheduler, foreign
}

// scheduler starts kube-scheduler.
func (s *swapped) scheduler() *controlplane.Process {
	return startScheduler(s.t, s.cluster, schedulerConfig(s.t, s.cluster, schedulerDefaults))
}

// foreign starts the other autoscaler.
func (s *swapped) foreign() *controlplane.Process { return startForeign(s.t, s.cluster, s.groups...) }

// standBy starts Berth with more flags, with the rights that the chart gives for the values of docs/migration.md, and
// waits until it stands by. It returns Berth and the path of its log.
func (s *swapped) standBy(more ...string) (berth *controlplane.Process, log string) {
	berth, log = startBerth(s.t, s.cluster, slices.Concat(s.groups, scaleSoon, more)...)
	within(s.t, "Berth to stand by", time.Minute, logs(log, "standing by: another instance is the leader"))
	return berth, log
}

// times records when pods are placed, until the context ends.
func (s *swapped) times(ctx context.Context) {
	record := func(o any) {
		p, ok := o.(*v1.Pod)
		if !ok || p.Spec.NodeName == "" {
			return
		}
		for _, c := range p.Status.Conditions {
			if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
				s.mu.Lock()
				s.placed[p.UID] = c.LastTransitionTime.Time
				s.mu.Unlock()
			}
		}
	}
	pods := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(v1.NamespaceDefault)).Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: record, UpdateFunc: func(_, o any) { record(o) }}); err != nil {
		s.t.Error(err)
	}
	pods.RunWithContext(ctx)
}

// paused fails the test when since a time there was no pod placed for longer than a Lease lasts: that long its holder may be
// gone before another one takes it. Small pods come several times a second. The times are the API server's.
func (s *swapped) paused(since time.Time, lease string) {
	s.t.Helper()
	l, err := s.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(s.t.Context(), lease, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	lasts := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	s.mu.Lock()
	times := slices.SortedFunc(maps.Values(s.placed), time.Time.Compare)
	s.mu.Unlock()
	var longest time.Duration
	for i := 1; i < len(times); i++ {
		if times[i].After(since) {
			longest = max(longest, times[i].Sub(times[i-1]))
		}
	}
	s.t.Logf("for %s no pod was placed; the Lease lasts %s", longest, lasts)
	if longest == 0 || longest > lasts {
		s.t.Errorf("for %s no pod was placed, want something, and at most the %s of the Lease %s", longest, lasts, lease)
	}
}

// runs runs f until stop is called or the test ends, which waits for it.
func (s *swapped) runs(f func(context.Context)) (stop func()) {
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(s.t.Context())
	running.Go(func() { f(ctx) })
	s.t.Cleanup(func() { cancel(); running.Wait() })
	return cancel
}

// load has pods come and go until calm is called.
func (s *swapped) load() (calm func()) { return s.runs(s.comeAndGo) }

// comeAndGo has pods come and go until the context ends: small ones for the fixed nodes, and waves
// of such as take a node each.
func (s *swapped) comeAndGo(ctx context.Context) {
	r := rand.New(rand.NewPCG(1, 1))
	begun := false // whether there is a wave that isn't all placed
	for n := 0; ctx.Err() == nil; n++ {
		small := pod(fmt.Sprint("small-", n), "50m")
		small.Annotations = map[string]string{kubelets.RunFor: fmt.Sprintf("%ds", 1+r.IntN(4))}
		small.Spec.NodeSelector = map[string]string{v1.LabelHostname: []string{"n1", "n2"}[r.IntN(2)]}
		s.create(ctx, small)
		var placed, empty bool
		s.watch.Do(func(h *checker.History) { placed, empty = h.Wave("whole") })
		switch {
		case empty && !begun:
			begun = true
			for i := range 2 + r.IntN(3) {
				p := pod(fmt.Sprintf("whole-%d-%d", n, i), "1500m")
				p.Labels = map[string]string{groupOf: "whole"}
				p.Spec.NodeSelector = map[string]string{groupOf: "whole"}
				p.Spec.Tolerations = []v1.Toleration{{Key: "whole", Operator: v1.TolerationOpExists}}
				s.create(ctx, p)
			}
		case placed:
			if begun {
				s.mu.Lock()
				s.waves++
				s.mu.Unlock()
			}
			begun = false
			_ = s.client.CoreV1().Pods(v1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: groupOf + "=whole"}) // the next try comes soon
		}
		_ = s.client.CoreV1().Pods(v1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"}) // here, too
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (s *swapped) create(ctx context.Context, p *v1.Pod) {
	if _, err := s.client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
		s.t.Error(err)
	}
}

// served waits until waves that have begun now get their nodes and small pods theirs: whoever
// schedules and whoever scales does so.
func (s *swapped) served(by string) {
	s.t.Helper()
	waves := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.waves }
	binds := func() (n int) { s.watch.Do(func(h *checker.History) { n = h.Binds() }); return n }
	begun, bound, at := waves(), binds(), time.Now()
	within(s.t, "two waves of pods to be served by "+by, 3*time.Minute, func(context.Context) bool { return waves() >= begun+2 && binds() >= bound+20 })
	s.t.Logf("served by %s: %d waves and %d binds in %s", by, waves()-begun, binds()-bound, time.Since(at).Round(time.Second))
}

// TestSwap has kube-scheduler and another autoscaler serve a cluster under load, then Berth in
// place of both, by kube-scheduler's Lease, and then them again. No pod is bound twice or lost,
// no node bought twice, and none is left.
func TestSwap(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	s, scheduler, foreign := startSwapped(t, c, client, swapGroups)
	calm := s.load()
	s.calmly(func() { s.served("kube-scheduler and the other autoscaler") })

	// Berth waits for kube-scheduler's Lease. The other autoscaler goes first: with the Lease Berth scales, too.
	ours, log := s.standBy("--leader-elect-resource-name=kube-scheduler")
	foreign.Stop(10 * time.Second)
	stopped := time.Now()
	scheduler.Stop(10 * time.Second)
	within(t, "Berth to take over", time.Minute, logs(log, "taking over"))
	s.calmly(func() { s.served("Berth") })
	s.paused(stopped, "kube-scheduler")

	// And back.
	scheduler = s.scheduler()
	stopped = time.Now()
	ours.Stop(10 * time.Second)
	foreign = s.foreign()
	s.served("kube-scheduler and the other autoscaler, which are back")
	s.paused(stopped, "kube-scheduler")

	calm()
	s.ends()
	for _, p := range []*controlplane.Process{scheduler, foreign} {
		if p.Ended() {
			t.Error("one of those that came back has ended by itself")
		}
	}
}

// ends deletes all pods and waits until no node is left that was bought. It fails the test for all that the checker has
// found: pods bound twice or lost, nodes bought twice.
func (s *swapped) ends() {
	s.t.Helper()
	s.watch.Do(func(h *checker.History) { h.Calm(time.Now()) })
	if err := s.client.CoreV1().Pods(v1.NamespaceDefault).DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "all bought nodes to go", func(context.Context) (gone bool) {
		s.watch.Do(func(h *checker.History) { gone = h.Left() == 0 && h.Unrest(time.Now()) == "" })
		return gone
	})
	s.watch.Do(func(h *checker.History) {
		h.Rest(time.Now())
		for _, v := range h.Violations() {
			s.t.Error(v)
		}
	})
}

// TestSwapOfTheAutoscaler has Berth scale in place of another autoscaler under load, by Cluster Autoscaler's Lease, and the
// other again, while kube-scheduler places all pods: it never pauses, and no node is bought twice or left.
func TestSwapOfTheAutoscaler(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	s, _, foreign := startSwapped(t, c, client, swapGroups)
	began, calm := time.Now(), s.load()
	s.calmly(func() { s.served("kube-scheduler and the other autoscaler") })

	ours, _ := s.standBy("--mode=autoscaler")
	foreign.Stop(10 * time.Second)
	s.calmly(func() { s.served("kube-scheduler and Berth") })

	s.foreign()
	ours.Stop(10 * time.Second)
	s.calmly(func() { s.served("kube-scheduler and the other autoscaler, which is back") })
	s.paused(began, "kube-scheduler")

	calm()
	s.ends()
}

// calmly has the checker expect that nothing waits for long while f runs, and disturbs it afterwards.
func (s *swapped) calmly(f func()) {
	s.watch.Do(func(h *checker.History) { h.Calm(time.Now()) })
	f()
	s.watch.Do(func(h *checker.History) { h.Disturb() })
}

// TestGroupByGroup has Berth place all pods and scale one of two groups, beside another
// autoscaler that scales the other one: each buys and removes nodes of its own group, and Berth
// touches no node of the other even when nobody else does. A Berth that would have both groups, or
// write the other's status, is refused.
func TestGroupByGroup(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	provider := nodeGroups(t, c, swapGroups)
	foreign := startForeign(t, c, append(provider, "--nodes=0:10:whole")...)
	eventually(t, "the other autoscaler to say which groups it has", statusLists(client, "whole"))
	both := slices.Concat(provider, scaleSoon)
	if out, want := refused(t, c, both...), "both would resize the node groups whole."; !strings.Contains(out, want) {
		t.Errorf("a Berth with both groups says\n%s\nwant %q in it", out, want)
	}
	one := slices.Concat(both, []string{"--nodes=0:10:shared"})
	if out, want := refused(t, c, one...), "both would write the status ConfigMap kube-system/cluster-autoscaler-status"; !strings.Contains(out, want) {
		t.Errorf("a Berth with the other's status says\n%s\nwant %q in it", out, want)
	}
	mayWriteStatus(t, client, "external", "berth-status")
	startBerth(t, c, append(one, "--status-config-map-name=berth-status")...)
	for _, group := range []string{"whole", "shared"} {
		p := pod("for-"+group, "1500m")
		p.Spec.NodeSelector = map[string]string{groupOf: group}
		p.Spec.Tolerations = []v1.Toleration{{Key: "whole", Operator: v1.TolerationOpExists}}
		create(t, client, p)
	}
	of := func(ctx context.Context, group string) (out []*v1.Node) {
		nodes, err := api.Nodes(ctx, client)
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		return slices.DeleteFunc(nodes, func(n *v1.Node) bool { return n.Labels[groupOf] != group })
	}
	eventually(t, "a node of each group, and their pods on them", func(ctx context.Context) bool {
		return len(of(ctx, "whole")) == 1 && len(of(ctx, "shared")) == 1 &&
			get(ctx, client, "for-whole").Status.Phase == v1.PodRunning && get(ctx, client, "for-shared").Status.Phase == v1.PodRunning
	})

	// Without the other autoscaler nobody buys or removes nodes of its group.
	foreign.Stop(10 * time.Second)
	more := pod("more", "1500m")
	more.Spec.NodeSelector = map[string]string{groupOf: "whole"}
	more.Spec.Tolerations = []v1.Toleration{{Key: "whole", Operator: v1.TolerationOpExists}}
	create(t, client, more)
	for _, name := range []string{"for-whole", "for-shared"} {
		if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "Berth to remove the node of its group, and to bind a pod to the node of the other", func(ctx context.Context) bool {
		return len(of(ctx, "shared")) == 0 && get(ctx, client, "more").Spec.NodeName != ""
	})
	if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // of the group that is Berth's a node comes and goes meanwhile: it has looked at all nodes
		p := pod("another", "1500m")
		p.Spec.NodeSelector = map[string]string{groupOf: "shared"}
		create(t, client, p)
		eventually(t, "a node of Berth's group to come", func(ctx context.Context) bool { return get(ctx, client, "another").Status.Phase == v1.PodRunning })
		if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), "another", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "and to go", func(ctx context.Context) bool { return len(of(ctx, "shared")) == 0 })
	}
	left := of(t.Context(), "whole")
	if len(left) != 1 || left[0].Spec.Unschedulable || slices.ContainsFunc(left[0].Spec.Taints, func(x v1.Taint) bool {
		return x.Key == autoscaler.ToBeDeletedTaint || strings.HasPrefix(x.Key, "DeletionCandidate")
	}) {
		t.Errorf("of the group that isn't Berth's there is %+v, want one node as it was", left)
	}
	startForeign(t, c, append(provider, "--nodes=0:10:whole")...)
	eventually(t, "the other autoscaler to remove it", func(ctx context.Context) bool { return len(of(ctx, "whole")) == 0 })
}
