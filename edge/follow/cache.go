// Package follow keeps caches of the objects of an API server, one of each kind, and tells readers
// what changes. Between client-go's reflector, which lists and watches, and the reader there is
// nothing: when the reflector says at which version it is, the reader was told of all up to there.
// A shared informer has a queue and a goroutine of each reader there, tells nobody how far they are,
// and after several broken watches waits for up to a minute before it lists again.
package follow

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
)

// Cache is the cache of one kind.
type Cache struct {
	name      string
	api       cache.ListerWatcherWithContext
	reflector *cache.Reflector
	transform cache.TransformFunc
	objects   cache.Indexer // written by the reflector's goroutine only, with mu held
	full      chan struct{} // closed when the first list is in
	fill      sync.Once     // closes full

	mu     sync.Mutex
	reader Reader // guarded by mu
}

// Reader is told what changes, one call after the other. Its functions must not call the cache;
// those that are nil aren't called.
type Reader struct {
	// Set is told an object that came or changed, Gone one that was deleted, as it was last.
	Set, Gone func(object any)
	// Replaced is told that another object has the name of one that is gone: lists and watches that
	// follow a broken watch don't tell the two apart. When it is nil, Gone and Set are told.
	Replaced func(old, object any)
}

// Lister is a kind of API object with how it is listed and watched.
type Lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// Options are what a cache may have, each nil for nothing.
type Options struct {
	Match     func(*metav1.ListOptions) // has lists and watches be of some of the objects
	Transform cache.TransformFunc       // what is kept of an object; what it returns is a metav1.Object, which it may get again
	Outcome   func(error)               // is told how each attempt to list or to watch ended, unless the cache's context has
}

// relist is how long a reflector waits after a list or a watch that has failed: 2.25 s at most, as
// placements are to resume within 5 s of the API server's return. The wait begins
// anew when two minutes went without one.
func relist() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: 1500 * time.Millisecond, Steps: 4}
}

// New returns the empty cache of a kind of objects such as object. client is what api is of. It
// follows nothing until Run.
func New[L runtime.Object](name string, object runtime.Object, api Lister[L], client any, o Options) *Cache {
	c := &Cache{name: name, transform: o.Transform, full: make(chan struct{}), objects: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	if c.transform == nil {
		c.transform = func(object any) (any, error) { return object, nil }
	}
	note := func(ctx context.Context, err error) {
		if o.Outcome != nil && ctx.Err() == nil {
			o.Outcome(err)
		}
	}
	match := func(l *metav1.ListOptions) {
		if o.Match != nil {
			o.Match(l)
		}
	}
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, l metav1.ListOptions) (runtime.Object, error) {
			match(&l)
			list, err := api.List(ctx, l)
			note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, l metav1.ListOptions) (apiwatch.Interface, error) {
			match(&l)
			w, err := api.Watch(ctx, l)
			note(ctx, err)
			return w, err
		},
	}
	c.api = lists
	c.reflector = cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lists, client), object, (*store)(c), cache.ReflectorOptions{Name: name, TypeDescription: name, Backoff: relist()})
	return c
}

// Run lists and watches until the context ends. It is called once.
func (c *Cache) Run(ctx context.Context) { c.reflector.RunWithContext(ctx) }

// Tell tells a reader of all that the cache has, in the order of the names, and of what changes
// from then on, in the place of the reader before.
func (c *Cache) Tell(r Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reader = r
	for _, key := range c.keys() {
		if object, ok, err := c.objects.GetByKey(key); ok && err == nil {
			c.set(object)
		}
	}
}

// Objects are those that the cache has, to be read only.
func (c *Cache) Objects() cache.Indexer { return c.objects }

// Full reports whether the first list is in.
func (c *Cache) Full() bool {
	select {
	case <-c.full:
		return true
	default:
		return false
	}
}

// Wait returns nil when the first list is in. An error says that the context ended before.
func (c *Cache) Wait(ctx context.Context) error {
	select {
	case <-c.full:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first list of %s: %w", c.name, context.Cause(ctx))
	}
}

// keys returns the keys of all objects, sorted, so that readers are told in the same order each time.
func (c *Cache) keys() []string {
	keys := c.objects.ListKeys()
	slices.Sort(keys)
	return keys
}

// set, gone and changed tell the reader. The caller holds mu.
func (c *Cache) set(object any) {
	if c.reader.Set != nil {
		c.reader.Set(object)
	}
}

func (c *Cache) gone(object any) {
	if c.reader.Gone != nil {
		c.reader.Gone(object)
	}
}

// changed tells the reader of a new version of an object. Under the same name it may be another object,
// whose predecessor was never shown to be gone: a reader that needs to know has Replaced, others are told
// both.
func (c *Cache) changed(old, object any) {
	switch {
	case uidOf(old) == uidOf(object):
		c.set(object)
	case c.reader.Replaced != nil:
		c.reader.Replaced(old, object)
	default:
		c.gone(old)
		c.set(object)
	}
}

// uidOf returns the UID of an object that a reflector delivers.
func uidOf(object any) types.UID { return object.(metav1.Object).GetUID() }

// same reports whether two objects are one in one version. An object without a version, as no API
// server gives one, is like no other.
func same(a, b any) bool {
	x, y := a.(metav1.Object), b.(metav1.Object)
	return x.GetUID() == y.GetUID() && x.GetResourceVersion() == y.GetResourceVersion() && x.GetResourceVersion() != ""
}

// store is how a reflector writes a Cache.
type store Cache

var _ cache.TransformingStore = (*store)(nil)

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error {
	c := (*Cache)(s)
	object, err := c.transform(object)
	if err != nil {
		return fmt.Errorf("trimming: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known, err := c.objects.Get(object)
	if err != nil {
		return fmt.Errorf("looking up: %w", err)
	}
	if err := c.objects.Update(object); err != nil {
		return fmt.Errorf("keeping: %w", err)
	}
	if known {
		c.changed(old, object)
	} else {
		c.set(object)
	}
	return nil
}

// Delete implements cache.ReflectorStore. The reader is told that the object which it was told of
// is gone; a deletion of one that it wasn't told of is none.
func (s *store) Delete(object any) error {
	c := (*Cache)(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known, err := c.objects.Get(object)
	if err != nil {
		return fmt.Errorf("looking up: %w", err)
	}
	if !known {
		return nil
	}
	if err := c.objects.Delete(old); err != nil {
		return fmt.Errorf("forgetting: %w", err)
	}
	c.gone(old)
	return nil
}

// Replace implements cache.ReflectorStore: a list, the first or one after a watch that can't be
// continued. What isn't in it is gone; what is as before isn't told again.
func (s *store) Replace(list []any, version string) error {
	c := (*Cache)(s)
	here := make(map[string]bool, len(list))
	for i, object := range list {
		var err error
		if list[i], err = c.transform(object); err != nil {
			return fmt.Errorf("trimming: %w", err)
		}
		key, err := cache.MetaNamespaceKeyFunc(list[i])
		if err != nil {
			return fmt.Errorf("naming: %w", err)
		}
		here[key] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := map[string]any{}
	keys := c.keys()
	for _, key := range keys {
		old, _, err := c.objects.GetByKey(key)
		if err != nil {
			return fmt.Errorf("looking up: %w", err)
		}
		before[key] = old
	}
	if err := c.objects.Replace(slices.Clone(list), version); err != nil {
		return fmt.Errorf("keeping: %w", err)
	}
	for _, key := range keys {
		if !here[key] {
			c.gone(before[key])
		}
	}
	for _, object := range list {
		key, _ := cache.MetaNamespaceKeyFunc(object) // it has one, as above
		switch old, known := before[key]; {
		case !known:
			c.set(object)
		case !same(old, object):
			c.changed(old, object)
		}
	}
	c.fill.Do(func() { close(c.full) })
	return nil
}

// Resync implements cache.ReflectorStore: readers keep what they were told.
func (s *store) Resync() error { return nil }

// Transformer implements cache.TransformingStore: what a first list brings is trimmed as it comes.
func (s *store) Transformer() cache.TransformFunc { return s.transform }
