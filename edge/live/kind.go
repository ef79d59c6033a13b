package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/step"
)

// This file is the cache of one kind of objects, from what client-go's reflector lists and watches
// to the core's inputs. There is nothing between: when the reflector says at which version it is,
// all up to there is in the inbox. A shared informer has a queue and a goroutine of each reader
// there, tells nobody how far they are, and after several broken watches waits for up to a minute
// before it lists again.

// kind is a cache. Its reflector calls it by the methods of cache.ReflectorStore.
type kind struct {
	name      string
	api       cache.ListerWatcherWithContext
	reflector *cache.Reflector
	transform cache.TransformFunc
	objects   cache.Indexer // for listers; written by the reflector's goroutine only, with mu held
	full      chan struct{} // closed when the first list is in
	fill      sync.Once     // closes full

	mu sync.Mutex
	// set makes the input of an object that came or changed, gone that of one which was deleted.
	// Guarded by mu.
	set, gone func(object any) step.Input
	// put puts inputs into an inbox, in the order of its calls; nil while the core is told nothing.
	// Guarded by mu.
	put func(inputs func() []step.Input)
}

var _ cache.TransformingStore = (*kind)(nil)

// relist is how long a reflector waits after a list or a watch that has failed. The wait begins
// anew when two minutes went without one. An API server that can't be reached is waited for
// elsewhere (patient).
func relist() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: 3 * time.Second, Steps: 5}
}

// listed is a kind of API object with how it is listed and watched.
type listed[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// newKind returns the cache of one kind. match, when not nil, has lists and watches be of some of
// its objects; failed is told why a list or a watch could not be made. client is what api is of.
func newKind[L runtime.Object](name string, object runtime.Object, api listed[L], client any, match func(*metav1.ListOptions),
	transform cache.TransformFunc, failed func(error), set, gone func(object any) step.Input) *kind {
	k := &kind{name: name, transform: transform, set: set, gone: gone, full: make(chan struct{}),
		objects: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	note := func(ctx context.Context, err error) {
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if match != nil {
				match(&o)
			}
			list, err := api.List(ctx, o)
			note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			if match != nil {
				match(&o)
			}
			w, err := api.Watch(ctx, o)
			note(ctx, err)
			return w, err
		},
	}
	k.api = lists
	k.reflector = cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lists, client), object, k, cache.ReflectorOptions{Name: name, Backoff: relist()})
	return k
}

// tell has an inbox told of all that the cache has, and of what changes from then on, in place of
// the one that was told before.
func (k *kind) tell(put func(inputs func() []step.Input), set, gone func(object any) step.Input) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put, k.set, k.gone = put, set, gone
	keys := k.objects.ListKeys()
	slices.Sort(keys)
	for _, key := range keys {
		if object, ok, err := k.objects.GetByKey(key); ok && err == nil {
			k.say(func() []step.Input { return []step.Input{k.set(object)} })
		}
	}
}

// say puts inputs into the inbox. The caller holds mu.
func (k *kind) say(inputs func() []step.Input) {
	if k.put != nil {
		k.put(inputs)
	}
}

// Add implements cache.ReflectorStore.
func (k *kind) Add(object any) error { return k.Update(object) }

// Update implements cache.ReflectorStore.
func (k *kind) Update(object any) error {
	object, err := k.transform(object)
	if err != nil {
		return fmt.Errorf("trimming: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old, known, err := k.objects.Get(object)
	if err != nil {
		return fmt.Errorf("looking up: %w", err)
	}
	if err := k.objects.Update(object); err != nil {
		return fmt.Errorf("keeping: %w", err)
	}
	if known {
		k.changed(old, object)
	} else {
		k.say(func() []step.Input { return []step.Input{k.set(object)} })
	}
	return nil
}

// changed tells of an object that is in the place of another one. Lists and watches that follow a
// broken watch may show an object that was deleted and created anew under its name: to the core it
// is another object (step.Input), whatever its kind. The old one is gone before the new one is
// set, and no Step sees one of the two inputs alone. The caller holds mu.
func (k *kind) changed(old, object any) {
	k.say(func() []step.Input {
		if uidOf(old) != uidOf(object) {
			return []step.Input{k.gone(old), k.set(object)}
		}
		return []step.Input{k.set(object)}
	})
}

// uidOf returns the UID of an object that a reflector delivers.
func uidOf(object any) types.UID { return object.(metav1.Object).GetUID() }

// Delete implements cache.ReflectorStore. The core is told that the object which it was told of is
// gone; a deletion of one that it wasn't told of is none.
func (k *kind) Delete(object any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, known, err := k.objects.Get(object)
	if err != nil {
		return fmt.Errorf("looking up: %w", err)
	}
	if !known {
		return nil
	}
	if err := k.objects.Delete(old); err != nil {
		return fmt.Errorf("forgetting: %w", err)
	}
	k.say(func() []step.Input { return []step.Input{k.gone(old)} })
	return nil
}

// Replace implements cache.ReflectorStore: a list, the first or one after a watch that can't be
// continued. What isn't in it is gone; what is as before isn't told again.
func (k *kind) Replace(list []any, version string) error {
	here := make(map[string]bool, len(list))
	for i, object := range list {
		var err error
		if list[i], err = k.transform(object); err != nil {
			return fmt.Errorf("trimming: %w", err)
		}
		key, err := cache.MetaNamespaceKeyFunc(list[i])
		if err != nil {
			return fmt.Errorf("naming: %w", err)
		}
		here[key] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before := map[string]any{}
	keys := k.objects.ListKeys()
	slices.Sort(keys)
	for _, key := range keys {
		old, _, err := k.objects.GetByKey(key)
		if err != nil {
			return fmt.Errorf("looking up: %w", err)
		}
		before[key] = old
	}
	if err := k.objects.Replace(slices.Clone(list), version); err != nil {
		return fmt.Errorf("keeping: %w", err)
	}
	for _, key := range keys {
		if !here[key] {
			k.say(func() []step.Input { return []step.Input{k.gone(before[key])} })
		}
	}
	for _, object := range list {
		key, _ := cache.MetaNamespaceKeyFunc(object) // it has one, as above
		switch old, known := before[key]; {
		case !known:
			k.say(func() []step.Input { return []step.Input{k.set(object)} })
		case !same(old, object):
			k.changed(old, object)
		}
	}
	k.fill.Do(func() { close(k.full) })
	return nil
}

// same tells whether two objects are one in one version. An object without a version, as no API
// server gives one, is like no other.
func same(a, b any) bool {
	x, y := a.(metav1.Object), b.(metav1.Object)
	return x.GetUID() == y.GetUID() && x.GetResourceVersion() == y.GetResourceVersion() && x.GetResourceVersion() != ""
}

// Resync implements cache.ReflectorStore: the core keeps what it was told, and looks again by
// itself.
func (k *kind) Resync() error { return nil }

// Transformer implements cache.TransformingStore: what a first list brings is trimmed as it comes.
func (k *kind) Transformer() cache.TransformFunc { return k.transform }

// isFull tells whether the first list is in.
func (k *kind) isFull() bool {
	select {
	case <-k.full:
		return true
	default:
		return false
	}
}

// wait returns nil when the first list is in. An error says that the context ended before.
func (k *kind) wait(ctx context.Context) error {
	select {
	case <-k.full:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first list of %s: %w", k.name, context.Cause(ctx))
	}
}
