package checker

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Watcher fills a History from an API server, and checks it once a second. An API server that
// is away is asked again until it is back.
// It isn't led through a proxy, so that misfortunes don't hide anything from it.
type Watcher struct {
	client  kubernetes.Interface
	mu      sync.Mutex
	history *History // guarded by mu
}

// NewWatcher returns a watcher that sees nothing before Run.
func NewWatcher(client kubernetes.Interface, c Config) *Watcher {
	return &Watcher{client: client, history: New(c)}
}

// Do calls f with the history, which f must not keep.
// Streams and checks take turns by it.
func (w *Watcher) Do(f func(*History)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.history)
}

// Run watches until the context ends. Each kind has a watch of its own, so their changes come in no
// common order: rules compare revisions, never the times at which changes came.
func (w *Watcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	core, resource := w.client.CoreV1(), w.client.ResourceV1()
	for _, s := range []*stream{
		{kind: "pods", keep: true, list: func(o metav1.ListOptions) (runtime.Object, error) { return core.Pods("").List(ctx, o) },
			watch: func(o metav1.ListOptions) (watch.Interface, error) { return core.Pods("").Watch(ctx, o) }},
		{kind: "nodes", keep: true, list: func(o metav1.ListOptions) (runtime.Object, error) { return core.Nodes().List(ctx, o) },
			watch: func(o metav1.ListOptions) (watch.Interface, error) { return core.Nodes().Watch(ctx, o) }},
		{kind: "events", list: func(o metav1.ListOptions) (runtime.Object, error) {
			return w.client.EventsV1().Events("").List(ctx, o)
		}, watch: func(o metav1.ListOptions) (watch.Interface, error) {
			return w.client.EventsV1().Events("").Watch(ctx, o)
		}},
		{kind: "claims", keep: true, list: func(o metav1.ListOptions) (runtime.Object, error) { return resource.ResourceClaims("").List(ctx, o) },
			watch: func(o metav1.ListOptions) (watch.Interface, error) { return resource.ResourceClaims("").Watch(ctx, o) }},
		{kind: "slices", keep: true, list: func(o metav1.ListOptions) (runtime.Object, error) { return resource.ResourceSlices().List(ctx, o) },
			watch: func(o metav1.ListOptions) (watch.Interface, error) { return resource.ResourceSlices().Watch(ctx, o) }},
	} {
		s.observe = func(c Change) { w.Do(func(h *History) { h.Observe(time.Now(), c) }) }
		s.seen = func(revision int64) {
			switch s.kind {
			case "pods":
				w.Do(func(h *History) { h.PodsSeen(revision) })
			case "nodes":
				w.Do(func(h *History) { h.NodesSeen(revision) })
			case "claims":
				w.Do(func(h *History) { h.ClaimsSeen(time.Now(), revision) })
			}
		}
		wg.Go(func() { s.run(ctx) })
	}
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.Do(func(h *History) { h.Check(time.Now()) })
			}
		}
	})
	wg.Wait()
}

// stream is the watch of one kind of object. One goroutine has it.
type stream struct {
	kind    string
	keep    bool // remembers the objects, to find those that were deleted in a gap
	list    func(metav1.ListOptions) (runtime.Object, error)
	watch   func(metav1.ListOptions) (watch.Interface, error)
	observe func(Change)
	seen    func(revision int64)

	at      string // resource version to resume at, "" to list
	upTo    int64  // all changes up to this revision have been observed
	objects map[types.UID]metav1.Object
}

// again is how long a stream waits after a failure.
const again = 100 * time.Millisecond

// run lists and watches until the context ends.
func (s *stream) run(ctx context.Context) {
	for ctx.Err() == nil {
		if s.at == "" {
			if err := s.relist(); err != nil {
				pause(ctx, again)
				continue
			}
		}
		if err := s.follow(ctx); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			s.at = ""
			continue
		}
		pause(ctx, again)
	}
}

// relist observes how everything is now, after a gap. What became of an object meanwhile lies between
// upTo and the list's revision: After and By of the changes say so.
func (s *stream) relist() error {
	list, err := s.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	listed, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	by := revision(listed)
	before := s.objects
	s.objects = map[types.UID]metav1.Object{}
	for _, item := range items {
		o, err := meta.Accessor(item)
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.kind, err)
		}
		if s.keep {
			s.objects[o.GetUID()] = o
		}
		if old := before[o.GetUID()]; old == nil || old.GetResourceVersion() != o.GetResourceVersion() {
			s.observe(Change{Object: o, After: s.upTo, By: revision(o)})
		}
	}
	for uid, o := range before {
		if s.objects[uid] == nil {
			s.observe(Change{Object: o, Deleted: true, After: s.upTo, By: by})
		}
	}
	s.at, s.upTo = listed.GetResourceVersion(), by
	s.seen(by)
	return nil
}

// follow watches from where the stream is, until the watch ends. The error is the one that
// ended it, nil when it ended without.
func (s *stream) follow(ctx context.Context) error {
	w, err := s.watch(metav1.ListOptions{ResourceVersion: s.at, AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if e.Type == watch.Error {
				return apierrors.FromObject(e.Object)
			}
			o, err := meta.Accessor(e.Object)
			if err != nil {
				return err
			}
			s.next(e.Type, o)
		}
	}
}

// next observes one event of a watch.
// Bookmarks move the revision without a change: what is older than that has been seen.
func (s *stream) next(t watch.EventType, o metav1.Object) {
	r := revision(o)
	s.at, s.upTo = o.GetResourceVersion(), max(s.upTo, r)
	if t == watch.Bookmark {
		s.seen(r)
		return
	}
	if s.keep && t == watch.Deleted {
		delete(s.objects, o.GetUID())
	} else if s.keep {
		s.objects[o.GetUID()] = o
	}
	// A watch tells the revision of each change, so After and By enclose that one alone.
	s.observe(Change{Object: o, Deleted: t == watch.Deleted, After: r - 1, By: r})
	s.seen(r)
}

// pause sleeps until the context ends at the latest.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
