package live

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/berthproject/berth/edge/follow"
)

// whereServed is a kind that an API server may not serve, or that Berth may not read: authorization
// comes first, and a role of before the kind was read lacks it, as kube-scheduler's own does where the
// kind is behind a feature gate. Then there is no object of it, and once in definitionsEvery it is asked
// whether that has changed.
type whereServed[L runtime.Object] struct {
	api   follow.Lister[L]
	empty L // a list without objects
	log   *slog.Logger
	told  atomic.Bool // that the kind may not be read
}

// absent reports whether an error says that there is nothing to read. That it may not be read is
// logged once.
func (s *whereServed[L]) absent(err error) bool {
	if apierrors.IsForbidden(err) {
		if !s.told.Swap(true) {
			s.log.Warn("a kind may not be read, and Berth goes on as if there was no object of it; allow list and watch with a ClusterRole (the chart does)", "err", err)
		}
		return true
	}
	return apierrors.IsNotFound(err)
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
