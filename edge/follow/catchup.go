package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// This file has caches catch up with the API server before somebody decides by them. A cache may
// be old without anybody noticing: its watch hangs, or waits for an API server that is just back.
//
// What must hold when CatchUp returns nil: the caches' readers were told of whatever was written of
// these kinds before it was called.

// followed is a kind of objects and its cache.
type followed struct {
	name string
	seen func() string // the resource version that the cache is at
	api  cache.ListerWatcherWithContext
}

func (c *Cache) followed() followed {
	return followed{c.name, c.reflector.LastSyncResourceVersion, c.api}
}

// Reached reports whether the cache's reader was told of all up to a version.
func (c *Cache) Reached(version string) bool {
	k := c.followed()
	return !k.before(version)
}

const (
	// lookFor is how long the API server is asked what has happened since. It sends a bookmark,
	// which says that this was all, two seconds before the end of a watch.
	lookFor = 3 * time.Second
	// catchUpEvery is how often a cache is asked how far it is.
	catchUpEvery = 20 * time.Millisecond
)

// errCut is why a watch has ended that says nothing.
var errCut = errors.New("the watch was interrupted")

// CatchUp returns when all caches are as new as the call, or with an error when one isn't by the
// end of the context.
func CatchUp(ctx context.Context, caches ...*Cache) error {
	kinds := make([]followed, len(caches))
	for i, c := range caches {
		kinds[i] = c.followed()
	}
	return catchUp(ctx, kinds)
}

// catchUp asks about all kinds at a time, and returns the errors of those that are stuck, joined.
func catchUp(ctx context.Context, kinds []followed) error {
	ended := make(chan error, len(kinds))
	for _, k := range kinds {
		go func() {
			if err := k.catchUp(ctx); err != nil {
				ended <- fmt.Errorf("the cache of %s is stuck at version %s: %w", k.name, k.seen(), err)
				return
			}
			ended <- nil
		}()
	}
	var all error
	for range kinds {
		all = errors.Join(all, <-ended)
	}
	return all
}

// catchUp returns when the kind's cache is as new as the call.
func (k *followed) catchUp(ctx context.Context) error {
	goal, err := k.stored(ctx)
	for err == nil && k.before(goal) {
		var last string
		if last, err = k.happened(ctx, k.seen(), goal); err == nil {
			for goal = last; err == nil && k.before(goal); {
				err = pause(ctx, catchUpEvery)
			}
		} else if passes(err) {
			err = pause(ctx, catchUpEvery)
		}
	}
	return err
}

// before reports whether the cache is before a version. One that isn't comparable, which no API
// server of Kubernetes gives, is taken for reached.
func (k *followed) before(version string) bool {
	order, err := resourceversion.CompareResourceVersion(k.seen(), version)
	return err == nil && order < 0
}

// stored returns the version that the API server's store is at.
func (k *followed) stored(ctx context.Context) (string, error) {
	objects, err := k.api.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	list, err := meta.ListAccessor(objects)
	if err != nil {
		return "", err
	}
	return list.GetResourceVersion(), nil
}

// happened returns the version of the last change after from that the API server tells of, from
// itself when there is none up to goal. The cache is told of the same changes by its own watch, or
// lists anew.
func (k *followed) happened(ctx context.Context, from, goal string) (last string, err error) {
	began := time.Now()
	w, err := k.api.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(lookFor / time.Second))})
	if err != nil {
		return "", err
	}
	defer w.Stop()
	for last = from; ; {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case event, ok := <-w.ResultChan():
			switch {
			case ok && event.Type == apiwatch.Error:
				return "", apierrors.FromObject(event.Object)
			case !ok && time.Since(began) < lookFor-lookFor/10:
				return "", errCut
			case !ok: // a server that sends no bookmarks
				return last, nil
			}
			object, err := meta.Accessor(event.Object)
			if err != nil {
				return "", err
			}
			if event.Type != apiwatch.Bookmark {
				last = object.GetResourceVersion()
			}
			if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), goal); err != nil || order >= 0 {
				return last, nil
			}
		case <-time.After(catchUpEvery):
			if !k.before(goal) { // the cache's own watch has been faster
				return goal, nil
			}
		}
	}
}

// passes reports whether a watch may be asked for again: it was cut, or its start is so old that the
// cache lists anew.
func passes(err error) bool {
	return errors.Is(err, errCut) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// pause waits, and returns an error when the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
