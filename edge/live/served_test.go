package live

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/edge/follow"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAKindThatIsServedLater follows an API server that serves no device classes, is upgraded after a
// minute, and then has one: the cache is full at once, and has the class when it is asked again.
func TestAKindThatIsServedLater(t *testing.T) {
	kind := schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}
	forbidden := apierrors.NewForbidden(kind, "", errors.New("no rule"))
	t.Run("not served", func(t *testing.T) { servedLater(t, apierrors.NewNotFound(kind, ""), false, nil, 0) })
	t.Run("not allowed", func(t *testing.T) { servedLater(t, forbidden, true, nil, 1) })
	t.Run("not served, nor allowed", func(t *testing.T) { servedLater(t, forbidden, false, nil, 0) })
	t.Run("not allowed, and it can't be found out whether it is served", func(t *testing.T) { servedLater(t, forbidden, false, errors.New("no"), 0) })
}

// servedLater has the API server answer with an error for a minute, which is warned of so often. served and unknown are
// what is found out meanwhile about whether it serves the kind.
func servedLater(t *testing.T, missing error, served bool, unknown error, warnings int) {
	testkit.WithoutErrorBackoff(t)
	synctest.Test(t, func(t *testing.T) {
		log := bytes.Buffer{}
		client, began := fake.NewClientset(testkit.DeviceClass("gpus", "example.com/gpu")), time.Now()
		var asked atomic.Int32
		unserved := func(clienttesting.Action) bool { asked.Add(1); return time.Since(began) < time.Minute }
		client.PrependReactor("list", "deviceclasses", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return unserved(a), nil, missing
		})
		client.PrependWatchReactor("deviceclasses", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
			return unserved(a), nil, missing
		})
		api := &whereServed[*resourcev1.DeviceClassList]{api: client.ResourceV1().DeviceClasses(), empty: &resourcev1.DeviceClassList{},
			served: func() (bool, error) { return served, unknown }, log: slog.New(slog.NewTextHandler(&log, nil))}
		c := follow.New("deviceclasses", &resourcev1.DeviceClass{}, api, client, follow.Options{})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		if err := c.Wait(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("the cache is full after %s, %v; want at once", time.Since(began), err)
		}
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		if got := c.Objects().ListKeys(); len(got) != 0 || asked.Load() > 6 {
			t.Errorf("while the kind isn't served there are %q, and the API was asked %d times, want at most 3 lists and as many watches", got, asked.Load())
		}
		time.Sleep(definitionsEvery + 2*time.Second)
		synctest.Wait()
		if got := c.Objects().ListKeys(); !slices.Equal(got, []string{"gpus"}) {
			t.Errorf("once the kind is served there are %q, want gpus", got)
		}
		stop()
		wg.Wait()
		if n := strings.Count(log.String(), "level=WARN"); n != warnings {
			t.Errorf("%d warnings, want %d:\n%s", n, warnings, log.String())
		}
	})
}

// TestAKindThatIsRefusedForAMoment follows an API server that starts again, and forbids everything until it has read
// who may do what: what was read stays. When it is refused for long it is gone.
func TestAKindThatIsRefusedForAMoment(t *testing.T) {
	testkit.WithoutErrorBackoff(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(testkit.DeviceClass("gpus", "example.com/gpu"))
		var refused atomic.Bool
		watches := make(chan *apiwatch.FakeWatcher, 100)
		forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}, "", errors.New("no rule"))
		client.PrependReactor("list", "deviceclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refused.Load(), nil, forbidden
		})
		client.PrependWatchReactor("deviceclasses", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
			if refused.Load() {
				return true, nil, forbidden
			}
			w := apiwatch.NewFake()
			watches <- w
			return true, w, nil
		})
		api := &whereServed[*resourcev1.DeviceClassList]{api: client.ResourceV1().DeviceClasses(), empty: &resourcev1.DeviceClassList{},
			served: func() (bool, error) { return true, nil }, log: slog.New(slog.DiscardHandler)}
		c := follow.New("deviceclasses", &resourcev1.DeviceClass{}, listsFirst[*resourcev1.DeviceClassList]{api}, client, follow.Options{})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		if err := c.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		// has restarts the API server, which refuses for a time, and reports whether the class is there at all times.
		has := func(refuses time.Duration) bool {
			refused.Store(true)
			for len(watches) > 0 {
				(<-watches).Stop()
			}
			there := true
			for end := time.Now().Add(refuses); time.Now().Before(end); time.Sleep(time.Second) {
				synctest.Wait()
				there = there && len(c.Objects().ListKeys()) == 1
			}
			refused.Store(false)
			time.Sleep(definitionsEvery + time.Minute)
			synctest.Wait()
			return there && len(c.Objects().ListKeys()) == 1
		}
		if !has(absentAfter / 2) {
			t.Error("the class is gone when it is forbidden for a moment")
		}
		if has(2 * absentAfter) {
			t.Error("the class is there though it is forbidden for long")
		}
		stop()
		wg.Wait()
	})
}

// listsFirst refuses watches that are to begin with what exists, as an API server does that can't.
type listsFirst[L runtime.Object] struct{ follow.Lister[L] }

// Watch implements follow.Lister.
func (l listsFirst[L]) Watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("not supported")
	}
	return l.Lister.Watch(ctx, o)
}
