package follow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// story is an API server with one kind of objects, and a cache of it. The versions of its changes
// are known before.
type story struct {
	changes []int // versions of the kind's own changes
	at      int   // version of the store: other kinds change, too
	oldest  int   // a watch from an older version has expired
	plain   bool  // no bookmarks
	cuts    int   // how many watches are cut at once

	cache func(since time.Duration) int // how far the cache is, so long after the start
	start time.Time
}

func (s *story) kind() followed {
	return followed{
		name: "things",
		seen: func() string { return strconv.Itoa(s.cache(time.Since(s.start))) },
		api:  &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch},
	}
}

func (s *story) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.Limit != 1 || o.ResourceVersion != "" {
		return nil, fmt.Errorf("a list by %+v: want one object as the store has it", o)
	}
	return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.at)}}, nil
}

// watch behaves as the API server's: what is after the version that is asked for comes at once, a
// bookmark two seconds before the end.
func (s *story) watch(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	from, err := strconv.Atoi(o.ResourceVersion)
	if err != nil || !o.AllowWatchBookmarks {
		return nil, fmt.Errorf("a watch by %+v", o)
	}
	w := apiwatch.NewFakeWithChanSize(100, false)
	if s.cuts > 0 {
		s.cuts--
		w.Stop()
		return w, nil
	}
	if from < s.oldest {
		status := apierrors.NewResourceExpired("too old").Status()
		w.Error(&status)
		w.Stop()
		return w, nil
	}
	for _, x := range s.changes {
		if x > from {
			w.Modify(podAt(x))
		}
	}
	end := time.Duration(*o.TimeoutSeconds) * time.Second
	go func() {
		time.Sleep(end - 2*time.Second)
		if !s.plain && !w.IsStopped() {
			w.Action(apiwatch.Bookmark, podAt(s.at))
		}
		time.Sleep(2 * time.Second)
		w.Stop()
	}()
	return w, nil
}

func podAt(version int) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: strconv.Itoa(version)}}
}

// since returns a cache that is at a version from some time on, and at another one before.
func since(d time.Duration, then, before int) func(time.Duration) int {
	return func(t time.Duration) int {
		if t >= d {
			return then
		}
		return before
	}
}

// TestCachesCatchUp: it takes as long as the cache takes, and no longer than it takes to know that
// nothing has happened.
func TestCachesCatchUp(t *testing.T) {
	for _, x := range []struct {
		name  string
		story story
		want  time.Duration
	}{
		{"the cache is new", story{at: 9, changes: []int{9}, cache: since(0, 9, 0)}, 0},
		{"newer than the call", story{at: 9, cache: since(0, 12, 0)}, 0},
		{"nothing of the kind has happened", story{at: 9, changes: []int{4}, cache: since(0, 4, 0)}, time.Second},
		{"and the server sends no bookmarks", story{at: 9, changes: []int{4}, plain: true, cache: since(0, 4, 0)}, 3 * time.Second},
		{"a change is on its way", story{at: 9, changes: []int{4, 9}, cache: since(500*time.Millisecond, 9, 4)}, 500 * time.Millisecond},
		{"changes are on their way, and none is the last of the store", story{at: 9, changes: []int{4, 6, 7}, cache: since(2*time.Second, 7, 4)}, 2 * time.Second},
		{"the cache's watch brings what is newer", story{at: 9, changes: []int{4}, cache: since(300*time.Millisecond, 11, 4)}, 300 * time.Millisecond},
		{"the cache lists anew", story{at: 9, oldest: 6, changes: []int{4, 8}, cache: since(700*time.Millisecond, 9, 4)}, 700 * time.Millisecond},
		{"watches are cut", story{at: 9, cuts: 5, changes: []int{4}, cache: since(0, 4, 0)}, 1100 * time.Millisecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x.story.start = time.Now()
				if err := catchUp(t.Context(), []followed{x.story.kind()}); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(x.story.start); got < x.want || got > x.want+2*catchUpEvery {
					t.Errorf("it took %s, want %s", got, x.want)
				}
				time.Sleep(time.Minute) // the watches end
			})
		})
	}
}

// TestCachesThatDoNotCatchUp: an error says which, and why.
func TestCachesThatDoNotCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := story{start: time.Now(), at: 9, changes: []int{4, 7}, cache: since(0, 4, 0)}
		new := story{start: time.Now(), at: 9, cache: since(0, 9, 0)}
		ctx, stop := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("too late"))
		defer stop()
		err := catchUp(ctx, []followed{stuck.kind(), new.kind()})
		if want := "the cache of things is stuck at version 4: too late"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		refusing := stuck.kind()
		refusing.api = &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, apierrors.NewForbidden(v1.Resource("pods"), "", nil)
		}}
		if err := catchUp(t.Context(), []followed{refusing}); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("got %v, want that the list is forbidden", err)
		}
		time.Sleep(time.Minute)
	})
}
