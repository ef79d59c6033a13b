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
	t.Run("not served", func(t *testing.T) { servedLater(t, apierrors.NewNotFound(kind, ""), 0) })
	t.Run("not allowed", func(t *testing.T) { servedLater(t, apierrors.NewForbidden(kind, "", errors.New("no rule")), 1) })
}

// servedLater has the API server answer with an error for a minute, which is warned of so often.
func servedLater(t *testing.T, missing error, warnings int) {
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
		api := &whereServed[*resourcev1.DeviceClassList]{api: client.ResourceV1().DeviceClasses(), empty: &resourcev1.DeviceClassList{}, log: slog.New(slog.NewTextHandler(&log, nil))}
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
