package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"

	"github.com/berthproject/berth/edge/follow"
)

// This file finds out which kinds and versions of Cluster API the management cluster has, and keeps
// a cache of each kind. What must hold: as long as a kind can't be listed or watched, the groups
// can't be read, since a group whose Machines aren't known would look empty.

const (
	// syncWithin is how long the first reading of the groups waits for the caches.
	syncWithin = 10 * time.Second
	// lookAgain is how often kinds are looked for that the API server didn't have.
	lookAgain = 30 * time.Second
)

// The resources that are watched. A cluster may be without the optional ones.
const (
	machineDeployments = "machinedeployments"
	machineSets        = "machinesets"
	machinePools       = "machinepools"
	machines           = "machines"
)

var (
	resources         = []string{machineDeployments, machineSets, machinePools, machines}
	optionalResources = []string{machineDeployments, machinePools}
	kindOf            = map[string]string{machineDeployments: machineDeployment, machineSets: machineSet, machinePools: machinePool}
)

// watching are the caches of all kinds.
// Its lock is held while caches fill in the first reading: whoever else reads has to wait,
// too.
type watching struct {
	namespace string // "" for all

	mu       sync.Mutex
	ctx      context.Context      // that the caches end with; nil before start; guarded by mu
	version  schema.GroupVersion  // guarded by mu; empty until it was found
	scales   scale.ScalesGetter   // for version; guarded by mu
	caches   map[string]*objCache // by resource; guarded by mu
	lookedAt time.Time            // when kinds were looked for last; guarded by mu
}

// objCache is the cache of one kind.
// It fills by itself, and stops with its context.
type objCache struct {
	objects *follow.Cache
	stop    context.CancelFunc

	mu  sync.Mutex
	err error // of the last list or watch, nil when it succeeded; guarded by mu
}

// start records until when caches live that are made from now on. Caches of an earlier start have
// ended with its context.
// It is called when this process becomes the leader: before that nobody reads the
// management cluster.
func (w *watching) start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.caches = ctx, map[string]*objCache{}
}

// sync makes sure that all kinds are watched that the API server has, and returns when their caches
// are full. The error says which kind can't be read, and why. It waits in the first reading only, and
// after Cluster API was upgraded; otherwise the caches are full already.
// Each reading of the groups calls it first.
func (p *Provider) sync(ctx context.Context) error {
	w := &p.watching
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil {
		return errors.New("the management cluster is not watched: this process is not the leader")
	}
	w.dropGone()
	if err := p.watchKinds(); err != nil {
		return err
	}
	// The whole of it has one deadline, not each kind.
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	for _, resource := range resources {
		if c := w.caches[resource]; c != nil {
			if err := c.ready(ctx); err != nil {
				return fmt.Errorf("reading %s.%s of the management cluster: %w", resource, w.version.Group, err)
			}
		}
	}
	return nil
}

// dropGone ends the watches of kinds that the API server no longer has in this version: Cluster API
// was upgraded. The caller holds mu. All caches go, since their objects are of the old version.
func (w *watching) dropGone() {
	for _, resource := range resources {
		// A resource that is gone answers so to every list.
		if c := w.caches[resource]; c != nil && apierrors.IsNotFound(c.lastErr()) {
			for _, c := range w.caches {
				c.stop()
			}
			w.caches, w.version, w.lookedAt = map[string]*objCache{}, schema.GroupVersion{}, time.Time{}
			return
		}
	}
}

// watchKinds begins to watch the kinds that weren't there before. The caller holds mu. Optional kinds
// that are missing are looked for again every lookAgain: they come with a feature gate or an upgrade.
// An API server is asked for its resources only when some are missing.
func (p *Provider) watchKinds() error {
	w := &p.watching
	if len(w.caches) == len(resources) || len(w.caches) > 0 && p.now().Sub(w.lookedAt) < lookAgain {
		return nil
	}
	version, served, err := p.find()
	if err != nil {
		return err
	}
	w.lookedAt = p.now()
	// Scales are per version, so a new one needs a new client.
	if version != w.version {
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
		for resource, kind := range kindOf {
			mapper.AddSpecific(version.WithKind(kind), version.WithResource(resource), version.WithResource(strings.TrimSuffix(resource, "s")), meta.RESTScopeNamespace)
		}
		scales, err := p.clients.scales(mapper)
		if err != nil {
			return fmt.Errorf("creating a client for the management cluster's scale subresources: %w", err)
		}
		w.version, w.scales = version, scales
		p.log.Info("watching Cluster API", "server", p.clients.host, "version", version.String(), "kinds", served, "namespace", w.namespace)
	}
	for _, resource := range served {
		if w.caches[resource] == nil {
			w.caches[resource] = newCache(w.ctx, p.clients.dynamic, version.WithResource(resource), w.namespace)
		}
	}
	return nil
}

// find returns the version that the API server serves, and which of the resources it has.
// A version that the configuration sets is taken as it is.
func (p *Provider) find() (schema.GroupVersion, []string, error) {
	version := schema.GroupVersion{Group: p.cfg.Group, Version: p.cfg.Version}
	if version.Version == "" {
		groups, err := p.clients.discovery.ServerGroups()
		if err != nil {
			return version, nil, fmt.Errorf("asking the management cluster at %s for its API groups: %w", p.clients.host, err)
		}
		i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == version.Group })
		if i < 0 {
			return version, nil, p.missing("no API group " + version.Group)
		}
		version.Version = groups.Groups[i].PreferredVersion.Version
	}
	list, err := p.clients.discovery.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return version, nil, p.missing("no " + version.String())
	}
	if err != nil {
		return version, nil, fmt.Errorf("asking the management cluster at %s for %s: %w", p.clients.host, version, err)
	}
	var served []string
	for _, resource := range resources {
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			served = append(served, resource)
		} else if !slices.Contains(optionalResources, resource) {
			return version, nil, p.missing("no " + resource + " in " + version.String())
		}
	}
	return version, served, nil
}

// missing words what the management cluster lacks, with what to do.
func (p *Provider) missing(what string) error {
	return fmt.Errorf("the management cluster at %s has %s; install Cluster API there, or set --cloud-config to the kubeconfig of another cluster", p.clients.host, what)
}

// newCache caches the objects of a resource until ctx is done or the cache is stopped. Objects are
// turned into their types as they come: what is never read isn't kept.
// It runs in a goroutine of its own.
func newCache(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string) *objCache {
	ctx, stop := context.WithCancel(ctx)
	c := &objCache{stop: stop}
	transform := func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		switch {
		case !ok: // it was transformed before, or says that an object is gone
			return obj, nil
		case resource.Resource == machines:
			return readMachine(u), nil
		}
		return readScalable(u), nil
	}
	c.objects = follow.New(resource.Resource, &unstructured.Unstructured{}, client.Resource(resource).Namespace(namespace), client,
		follow.Options{Transform: transform, Outcome: c.note})
	// What fails is noted, and said by who reads the groups: the reflector's own words go nowhere.
	go c.objects.Run(klog.NewContext(ctx, klog.Logger{}))
	return c
}

// note records the outcome of a list or a watch. What has expired is listed anew.
// Expired lists are the everyday of watches.
func (c *objCache) note(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// lastErr returns why the last list or watch failed, nil when it succeeded.
func (c *objCache) lastErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// ready returns when the cache is full. It returns an error when the objects can't be read now.
func (c *objCache) ready(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := c.lastErr(); err != nil {
			return err
		}
		if c.objects.Full() {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the API server has not answered yet")
		case <-tick.C:
		}
	}
}

// objectsOf returns the cached objects of a resource that are Ts, in no particular order; none when
// the resource isn't watched.
// Objects are shared and aren't changed.
func objectsOf[T any](w *watching, resource string) []T {
	w.mu.Lock()
	c := w.caches[resource]
	w.mu.Unlock()
	if c == nil {
		return nil
	}
	var out []T
	for _, obj := range c.objects.Objects().List() {
		if x, ok := obj.(T); ok {
			out = append(out, x)
		}
	}
	return out
}

// client returns the client for sizes, and the version of the resources.
func (w *watching) client() (scale.ScalesGetter, schema.GroupVersion, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scales == nil {
		return nil, w.version, errors.New("the management cluster has not been read yet")
	}
	return w.scales, w.version, nil
}
