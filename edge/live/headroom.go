package live

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/follow"
)

// This file watches what asks for headroom: CapacityBuffers and ProvisioningRequests, whose
// definitions a cluster may have or not; with the first of them PodTemplates, and of the
// kinds that buffers refer to by scalableRef those that one has referred to. In a cluster
// without the definitions nothing is watched: once in definitionsEvery it is asked whether
// they have come.
//
// What exists when Berth starts is delivered before it decides anything: it would give away
// the room that another process has kept.

// definitionsEvery is how often it is asked whether a definition has come.
const definitionsEvery = 30 * time.Second

// headroomKind is a kind of object that asks for headroom.
type headroomKind struct {
	resource schema.GroupVersionResource
	new      func() cluster.Object
}

var (
	capacityBuffers = headroomKind{schema.GroupVersionResource{Group: autoscalingapi.Group, Version: "v1beta1", Resource: "capacitybuffers"},
		func() cluster.Object { return &autoscalingapi.CapacityBuffer{} }}
	provisioningRequests = headroomKind{schema.GroupVersionResource{Group: autoscalingapi.Group, Version: "v1", Resource: "provisioningrequests"},
		func() cluster.Object { return &autoscalingapi.ProvisioningRequest{} }}
)

// headroomWatcher watches them. Its fields are guarded by mu, as reflectors call it.
type headroomWatcher struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	health  *Health
	in      *inbox
	log     *slog.Logger
	unknown bool // the API server hasn't answered the last question for definitions; of one goroutine at a time

	mu      sync.Mutex
	missing []headroomKind // whose definition isn't there
	watched map[string]bool
	kinds   []*kind
}

// watchHeadroom starts watching, and returns when what exists has been delivered: not before
// the API server has said which definitions there are.
func watchHeadroom(ctx context.Context, client kubernetes.Interface, dynamic dynamic.Interface, health *Health, in *inbox, log *slog.Logger) (*headroomWatcher, error) {
	h := &headroomWatcher{client: client, dynamic: dynamic, health: health, in: in, log: log,
		missing: []headroomKind{capacityBuffers, provisioningRequests}, watched: map[string]bool{}}
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		h.lookForDefinitions(ctx)
		return !h.unknown, nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the resources of the API server: %w", context.Cause(ctx))
	}
	for _, kind := range h.missing {
		log.Info("no CustomResourceDefinition of this kind; it will be watched once there is one", "resource", kind.resource.String())
	}
	// A buffer that is delivered may bring further kinds.
	for waited := 0; waited < len(h.started()); waited++ {
		if err := h.started()[waited].Wait(ctx); err != nil {
			return nil, err
		}
	}
	health.watched(headroomCache, func() bool { return true })
	return h, nil
}

// run goes on looking for definitions until all are there or the context ends.
func (h *headroomWatcher) run(ctx context.Context, wg *sync.WaitGroup) {
	if len(h.missing) == 0 {
		return
	}
	wg.Go(func() {
		tick := time.NewTicker(definitionsEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if h.lookForDefinitions(ctx) {
				return
			}
		}
	})
}

// started returns the kinds that are watched, in the order in which that began.
func (h *headroomWatcher) started() []*kind {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.kinds)
}

// lookForDefinitions starts watching the kinds whose definition has come, and reports whether
// none is missing any more.
func (h *headroomWatcher) lookForDefinitions(ctx context.Context) (all bool) {
	h.unknown = false
	var missing []headroomKind
	for _, kind := range h.missing {
		if !h.defined(kind) {
			missing = append(missing, kind)
			continue
		}
		h.watch(ctx, kind)
	}
	h.missing = missing
	return len(missing) == 0
}

// defined reports whether the API server serves a kind.
func (h *headroomWatcher) defined(kind headroomKind) bool {
	served, err := kindServed(h.client.Discovery(), kind.resource)
	if err != nil {
		h.log.Warn("could not find out whether the API server serves a kind; retrying", "resource", kind.resource.String(), "err", err)
		h.unknown = true
		h.health.failed(headroomCache, err)
	}
	return served
}

// watch starts watching a kind, and with the first PodTemplates.
func (h *headroomWatcher) watch(ctx context.Context, kind headroomKind) {
	h.log.Info("watching", "resource", kind.resource.String())
	start(ctx, h, kind.resource.Resource, &unstructured.Unstructured{}, h.dynamic.Resource(kind.resource), func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		o := kind.new()
		raw, err := json.Marshal(u.Object)
		if err == nil {
			err = door.Read(raw, o)
		}
		if err != nil {
			// It asks for nothing that can be made out, which its status then says.
			h.log.Warn("an object can't be decoded and is treated as one without a spec", "resource", kind.resource.String(), "object", u.GetNamespace()+"/"+u.GetName(), "err", err)
			o = kind.new()
			o.SetNamespace(u.GetNamespace())
			o.SetName(u.GetName())
			o.SetUID(u.GetUID())
		}
		if b, ok := o.(*autoscalingapi.CapacityBuffer); ok && b.Spec.ScalableRef != nil {
			h.watchScalable(ctx, b.Spec.ScalableRef.Kind)
		}
		return cluster.Trim(o), nil
	})
	start(ctx, h, "podtemplates", &v1.PodTemplate{}, h.client.CoreV1().PodTemplates(metav1.NamespaceAll), transformFor(false))
}

// watchScalable starts watching a kind that a buffer refers to. Other kinds than those are
// refused by the core.
func (h *headroomWatcher) watchScalable(ctx context.Context, kind string) {
	trim := func(obj any) (any, error) {
		door.Object(obj)
		if o, ok := obj.(runtime.Object); ok {
			if x := cluster.ScalableOf(o); x != nil {
				return x, nil
			}
		}
		return obj, nil
	}
	switch apps := h.client.AppsV1(); kind {
	case "Deployment":
		start(ctx, h, kind, &appsv1.Deployment{}, apps.Deployments(metav1.NamespaceAll), trim)
	case "StatefulSet":
		start(ctx, h, kind, &appsv1.StatefulSet{}, apps.StatefulSets(metav1.NamespaceAll), trim)
	case "ReplicaSet":
		start(ctx, h, kind, &appsv1.ReplicaSet{}, apps.ReplicaSets(metav1.NamespaceAll), trim)
	}
}

// start starts watching a kind under a name, unless it is watched already. Its objects become
// inputs as transform leaves them.
func start[L runtime.Object](ctx context.Context, h *headroomWatcher, name string, object runtime.Object, api follow.Lister[L], transform cache.TransformFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watched[name] {
		return
	}
	h.watched[name] = true
	k := &kind{follow.New(name, object, api, h.client, follow.Options{Transform: transform, Outcome: h.health.outcomesOf(headroomCache)}), objectSet, objectGone}
	k.tell(func(inputs func() []step.Input) { h.in.putTogether(inputs()...) }, objectSet, objectGone)
	h.kinds = append(h.kinds, k)
	go k.Run(ctx)
}
