package live

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/berthproject/berth/core/step"
)

// idle says that no binds, preemptions or nominations are queued.
func idle() bool { return false }

// TestManyEventsAreWrittenAtATimeUnlessBindsAreQueued has 1,000 events and an API server that takes
// a second for each. While binds are queued a few are written at a time, so that most of the
// limiter is left to conditions; when none is any more, all workers and helpers write; and when
// all is written no helper is left.
func TestManyEventsAreWrittenAtATimeUnlessBindsAreQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		var busy atomic.Bool
		client := &slowEvents{Interface: fake.NewClientset()}
		r := newRecorder(client, "host", busy.Load)
		r.run(ctx, &wg)
		busy.Store(true)
		for i := range 1000 {
			r.event(step.Event{Namespace: "ns", Name: fmt.Sprint("p", i)})
		}
		under := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if n := client.under.Load(); n != want {
				t.Errorf("%s: %d events are being written, want %d", when, n, want)
			}
		}
		time.Sleep(2500 * time.Millisecond)
		under("binds are queued", eventWorkers)
		busy.Store(false)
		time.Sleep(10 * time.Second)
		under("no bind is queued", eventWorkers+eventHelpers)
		busy.Store(true)
		time.Sleep(2 * time.Second)
		under("binds are queued again", eventWorkers)
		busy.Store(false)
		time.Sleep(time.Minute)
		under("all events are written", 0)
		if n := r.helpers.Load(); n != 0 || client.written.Load() != 1000 {
			t.Errorf("%d helpers are left and %d events are written, want 0 and 1000", n, client.written.Load())
		}
	})
}

// slowEvents is a client that takes a second to create an event, and counts those under way and
// those that are written.
type slowEvents struct {
	kubernetes.Interface
	under, written atomic.Int64
}

func (c *slowEvents) EventsV1() eventsclient.EventsV1Interface {
	return slowEventsV1{c.Interface.EventsV1(), c}
}

type slowEventsV1 struct {
	eventsclient.EventsV1Interface
	c *slowEvents
}

func (c slowEventsV1) Events(namespace string) eventsclient.EventInterface {
	return slowEvent{c.EventsV1Interface.Events(namespace), c.c}
}

type slowEvent struct {
	eventsclient.EventInterface
	c *slowEvents
}

func (c slowEvent) Create(ctx context.Context, e *eventsv1.Event, o metav1.CreateOptions) (*eventsv1.Event, error) {
	c.c.under.Add(1)
	defer c.c.under.Add(-1)
	time.Sleep(time.Second)
	c.c.written.Add(1)
	return c.EventInterface.Create(ctx, e, o)
}
