// Package controllers runs those of kube-controller-manager's controllers that a demo has work for.
// kube-controller-manager itself links the kubelet, cAdvisor and kube-scheduler, which nearly
// doubles what is compiled beside kube-apiserver; its controllers don't, but for the garbage
// collector of pods, of which orphans.go is a small one.
package controllers

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"

	"github.com/berthproject/berth/devcluster/api"
)

// options are the flags of kube-controller-manager that matter here. Others are accepted and mean
// nothing.
type options struct {
	kubeconfig, rootCA string
	grace              time.Duration // without a renewal of its Lease until a node isn't ready
}

// Command returns the component kube-controller-manager of a demo. It takes the flags of
// kube-controller-manager, so that a cluster starts the one or the other.
// Unknown flags are ignored, for the same reason. It ends on SIGTERM, after its
// controllers.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "kube-controller-manager", Args: cobra.NoArgs, SilenceUsage: true, FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx)
		},
	}
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "")
	cmd.Flags().StringVar(&o.rootCA, "root-ca-file", "", "")
	cmd.Flags().DurationVar(&o.grace, "node-monitor-grace-period", 50*time.Second, "")
	return cmd
}

// shared is what controllers share: clients and caches.
// One cache of each kind serves all controllers.
type shared struct {
	ctx       context.Context
	config    *rest.Config
	client    kubernetes.Interface
	mapper    meta.ResettableRESTMapper
	informers informers.SharedInformerFactory
	started   chan struct{} // closed when the informers are
}

// run runs the controllers until the context ends.
func (o *options) run(ctx context.Context) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	rootCA, err := os.ReadFile(o.rootCA)
	if err != nil {
		return fmt.Errorf("--root-ca-file: %w", err)
	}
	client, err := api.New(cfg)
	if err != nil {
		return err
	}
	s := &shared{ctx: ctx, config: api.Config(cfg), client: client, started: make(chan struct{}),
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		informers: informers.NewSharedInformerFactoryWithOptions(client, 12*time.Hour, informers.WithTransform(withoutManagedFields))}
	// Kinds may be added while it runs, as by CustomResourceDefinitions.
	go wait.Until(s.mapper.Reset, 30*time.Second, ctx.Done())
	var controllers []func()
	// Controllers register with the informers before these start, so that they miss
	// nothing.
	for _, make := range []func(*shared) (func(), error){jobs, replicaSets, deployments, statefulSets, budgets, accounts,
		func(s *shared) (func(), error) { return rootCAs(s, rootCA) }, func(s *shared) (func(), error) { return nodes(s, o.grace) },
		taints, orphans, garbage} {
		run, err := make(s)
		if err != nil {
			return err
		}
		controllers = append(controllers, run)
	}
	s.informers.Start(ctx.Done())
	// The garbage collector waits for it.
	close(s.started)
	var running sync.WaitGroup
	for _, run := range controllers {
		running.Go(run)
	}
	running.Wait()
	return nil
}

// withoutManagedFields leaves out of caches what is large and what no controller reads.
func withoutManagedFields(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// workers is how many objects each controller of workloads works on at a time.
// kube-controller-manager has 5 for most; demos come in bursts.
const workers = 10

// jobs returns the controller of Jobs.
func jobs(s *shared) (func(), error) {
	c, err := job.NewController(s.ctx, s.client, s.informers.Core().V1().Pods(), s.informers.Batch().V1().Jobs(), nil, nil)
	return func() { c.Run(s.ctx, workers) }, err
}

// replicaSets returns the controller of ReplicaSets.
func replicaSets(s *shared) (func(), error) {
	c := replicaset.NewReplicaSetController(s.ctx, s.informers.Apps().V1().ReplicaSets(), s.informers.Core().V1().Pods(), s.client, replicaset.BurstReplicas)
	return func() { c.Run(s.ctx, workers) }, nil
}

// deployments returns the controller of Deployments, which makes ReplicaSets.
func deployments(s *shared) (func(), error) {
	apps := s.informers.Apps().V1()
	c, err := deployment.NewDeploymentController(s.ctx, apps.Deployments(), apps.ReplicaSets(), s.informers.Core().V1().Pods(), s.client)
	return func() { c.Run(s.ctx, workers) }, err
}

// statefulSets returns the controller of StatefulSets.
func statefulSets(s *shared) (func(), error) {
	core, apps := s.informers.Core().V1(), s.informers.Apps().V1()
	c := statefulset.NewStatefulSetController(s.ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), s.client)
	return func() { c.Run(s.ctx, workers) }, nil
}

// budgets returns the controller that says of each disruption budget how many evictions it
// allows. It finds the scale of controllers of any kind, hence the mapper.
func budgets(s *shared) (func(), error) {
	scales, err := scale.NewForConfig(s.config, s.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(s.client.Discovery()))
	if err != nil {
		return nil, err
	}
	core, apps := s.informers.Core().V1(), s.informers.Apps().V1()
	c := disruption.NewDisruptionController(s.ctx, core.Pods(), s.informers.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), s.client, s.mapper, scales, s.client.Discovery())
	return func() { c.Run(s.ctx, workers) }, nil
}

// accounts returns the controller that makes the account "default" in new namespaces,
// without which no pod can be created there.
func accounts(s *shared) (func(), error) {
	core := s.informers.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(s.ctx), core.ServiceAccounts(), core.Namespaces(), s.client, serviceaccount.DefaultServiceAccountsControllerOptions())
	return func() { c.Run(s.ctx, 1) }, err
}

// rootCAs returns the controller that puts the API server's certificate into each
// namespace.
func rootCAs(s *shared, certificate []byte) (func(), error) {
	core := s.informers.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), s.client, certificate)
	return func() { c.Run(s.ctx, 1) }, err
}

// nodes returns the controller of nodes' health, with the defaults of kube-controller-manager.
func nodes(s *shared, grace time.Duration) (func(), error) {
	const period, startupGrace = 5 * time.Second, time.Minute
	const rate, secondRate, large, unhealthy = 0.1, 0.01, 50, 0.55
	core := s.informers.Core().V1()
	c, err := nodelifecycle.NewNodeLifecycleController(s.ctx, s.informers.Coordination().V1().Leases(), core.Pods(), core.Nodes(), s.informers.Apps().V1().DaemonSets(), s.client,
		period, startupGrace, grace, rate, secondRate, large, unhealthy)
	return func() { c.Run(s.ctx) }, err
}

// taints returns the controller that deletes pods from nodes whose taints they don't
// tolerate.
func taints(s *shared) (func(), error) {
	c, err := tainteviction.New(s.ctx, s.client, s.informers.Core().V1().Pods(), s.informers.Core().V1().Nodes(), "taint-eviction-controller")
	return func() { c.Run(s.ctx) }, err
}

// garbage returns the controller that deletes what has lost its owner.
// Events aren't followed: they have no owners, and are many.
func garbage(s *shared) (func(), error) {
	const period = 30 * time.Second
	client, err := metadata.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	all := metadatainformer.NewSharedInformerFactoryWithOptions(client, 12*time.Hour, metadatainformer.WithTransform(withoutManagedFields))
	graph := garbagecollector.NewDependencyGraphBuilder(s.ctx, client, s.mapper, map[schema.GroupResource]struct{}{{Resource: "events"}: {}, {Group: "events.k8s.io", Resource: "events"}: {}},
		informerfactory.NewInformerFactory(s.informers, all), s.started)
	c, err := garbagecollector.NewComposedGarbageCollector(s.ctx, s.client, client, s.mapper, graph)
	if err != nil {
		return nil, err
	}
	var resources discovery.ServerResourcesInterface = s.client.Discovery()
	return func() {
		var both sync.WaitGroup
		both.Go(func() { c.Run(s.ctx, workers, period) })
		both.Go(func() { c.Sync(s.ctx, resources, period) })
		both.Wait()
	}, nil
}
