package live

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"

	"github.com/berthproject/berth/edge/follow"
)

// whereServed is a kind that an API server may not serve, or that Berth may not read: authorization
// comes first, and a role of before the kind was read lacks it, as kube-scheduler's own does where the
// kind is behind a feature gate. Then there is no object of it, and once in definitionsEvery it is asked
// whether that has changed.
//
// An API server that has just started forbids everything until it has read who may do what. So a kind that was
// read counts as there, with all that was read, until it has been refused for absentAfter: to lose all claims for a
// moment is to give their devices away twice.
type whereServed[L runtime.Object] struct {
	api    follow.Lister[L]
	empty  L                    // a list without objects
	served func() (bool, error) // reports whether the API server serves the kind
	log    *slog.Logger
	told   atomic.Bool // that the kind may not be read

	mu      sync.Mutex
	read    bool      // it was, and isn't known to be absent since; guarded by mu
	refused time.Time // since when it is, zero when the last answer was none; guarded by mu
}

// absentAfter is for how long a kind that was read is refused before it counts as absent.
const absentAfter = 30 * time.Second

// absent reports whether an error says that there is nothing to read. That it may not be read is
// logged once, unless the API server doesn't serve the kind: then no role would help.
func (s *whereServed[L]) absent(err error) bool {
	if !s.refusedForGood(err) {
		return false
	}
	if !apierrors.IsForbidden(err) || s.told.Load() {
		return true
	}
	switch served, unknown := s.served(); {
	case unknown != nil: // it is asked again with the next try
		s.log.Debug("could not find out whether the API server serves a kind that may not be read", "err", unknown)
	case served && !s.told.Swap(true):
		s.log.Warn("a kind may not be read, and Berth goes on as if there was no object of it; allow list and watch with a ClusterRole (the chart does)", "err", err)
	}
	return true
}

// refusedForGood records an answer, and reports whether it says that there is nothing to read.
func (s *whereServed[L]) refusedForGood(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.read, s.refused = true, time.Time{}
		return false
	case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return false
	case s.refused.IsZero():
		s.refused = time.Now()
	}
	s.read = s.read && time.Since(s.refused) < absentAfter
	return !s.read
}

// kindServed reports whether an API server serves a kind. An error is the API's, and says nothing about the kind.
func kindServed(client discovery.ServerResourcesInterface, kind schema.GroupVersionResource) (bool, error) {
	list, err := client.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource }), nil
}

// List implements follow.Lister.
func (s *whereServed[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	list, err := s.api.List(ctx, o)
	if s.absent(err) {
		return s.empty.DeepCopyObject().(L), nil
	}
	return list, err
}

// Watch implements follow.Lister. A watch that is to begin with what exists fails where the kind isn't
// served, and is followed by a list. One that follows such a list tells nothing, and ends as one whose
// version is too old does: then the kind is listed again.
func (s *whereServed[L]) Watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	w, err := s.api.Watch(ctx, o)
	if !s.absent(err) || o.SendInitialEvents != nil {
		return w, err
	}
	events := make(chan apiwatch.Event)
	idle := apiwatch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		select {
		case <-ctx.Done():
			return
		case <-idle.StopChan():
			return
		case <-time.After(definitionsEvery):
		}
		expired := apierrors.NewResourceExpired("the kind was not served").Status()
		select {
		case <-ctx.Done():
		case <-idle.StopChan():
		case events <- apiwatch.Event{Type: apiwatch.Error, Object: &expired}:
		}
	}()
	return idle, nil
}

var _ follow.Lister[*v1.PodList] = &whereServed[*v1.PodList]{}
