package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// instance is a Berth that runs against an API in memory, in which binding a pod
// shows nothing of it.
type instance struct {
	client    *fake.Clientset
	refusal   error       // of bindings
	bound     chan string // "pod to node", for each binding
	questions chan func(*core.Core)
	stop      context.CancelFunc
	ended     chan error
}

// newInstance returns one beside an API with a node and a pod that fits there.
func newInstance() *instance {
	i := &instance{
		client: fake.NewClientset(testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), testkit.Pod("p").Req("cpu", "1").Obj()),
		bound:  make(chan string, 10), questions: make(chan func(*core.Core)), ended: make(chan error, 1),
	}
	i.client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "binding" {
			return false, nil, nil
		}
		b := a.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		i.bound <- b.Name + " to " + b.Target.Name
		return true, b, i.refusal
	})
	return i
}

// start runs the instance with what the options say beside the API.
func (i *instance) start(t *testing.T, o Options) {
	t.Helper()
	o.Schema = cluster.NewSchema()
	scale, shadow := o.Core.Autoscale, o.Core.Shadow
	o.Core = core.DefaultConfig(plugins.Default(o.Schema, plugins.Options{}))
	o.Core.Autoscale, o.Core.Shadow = scale, shadow
	o.Questions, o.Host, o.Log = i.questions, "host", slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	i.stop = stop
	c := i.client
	go func() {
		i.ended <- run(ctx, o, &clients{watch: c, bind: c, report: c, nominate: c, node: c, evict: c, surge: c, preempt: c}, &load{})
	}()
}

// lists counts the lists that the API was asked for.
func (i *instance) lists() (n int) {
	for _, a := range i.client.Actions() {
		if a.GetVerb() == "list" {
			n++
		}
	}
	return n
}

// ask puts a question to the core.
func (i *instance) ask(question func(*core.Core)) {
	done := make(chan struct{})
	i.questions <- func(c *core.Core) {
		question(c)
		close(done)
	}
	<-done
}

// knows waits until the core has so many nodes and pods that wait.
func (i *instance) knows(nodes, waiting int) {
	for known := false; !known; {
		i.ask(func(c *core.Core) {
			n, _ := c.Size()
			q := c.Queue()
			known = n == nodes && q.Active+q.Backoff+q.Unschedulable == waiting
		})
	}
}

// TestAnInstanceStandsByTakesOverAndBinds follows one from its start to its end.
func TestAnInstanceStandsByTakesOverAndBinds(t *testing.T) {
	becomeLeader := make(chan struct{})
	var mu sync.Mutex
	var log []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(log, what) {
			log = append(log, what)
		}
	}
	i := newInstance()
	i.start(t, Options{
		BecomeLeader:   becomeLeader,
		OnBecomeLeader: func(context.Context) error { note("became leader"); return nil },
		State:          func(*core.Core) { note("state shown") },
		Hooks: []drive.Hook{drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
			for _, b := range r.Binds {
				note("step binds " + b.Name)
			}
		})},
	})
	i.knows(1, 1)
	if len(i.bound) > 0 || len(log) > 0 {
		t.Errorf("while it stands by it bound %d pods and did %v", len(i.bound), log)
	}
	close(becomeLeader)
	if got := <-i.bound; got != "p to n" {
		t.Errorf("bound %s, want p to n", got)
	}
	i.stop()
	if err := <-i.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if want := []string{"became leader", "state shown", "step binds p"}; !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
}

// TestOutcomesComeBack has the API server show nothing of a binding: what is reported
// of the pod follows from the outcome alone.
func TestOutcomesComeBack(t *testing.T) {
	for _, c := range []struct {
		answer error
		report string
	}{
		{nil, "event Scheduled"},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", nil), "condition SchedulerError"},
	} {
		i := newInstance()
		i.refusal = c.answer
		reports := make(chan string, 100)
		i.client.PrependReactor("create", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
			reports <- "event " + a.(clienttesting.CreateAction).GetObject().(*eventsv1.Event).Reason
			return true, &eventsv1.Event{}, nil
		})
		i.client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			patch := v1.Pod{}
			if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
				t.Error(err)
			}
			for _, x := range patch.Status.Conditions {
				reports <- "condition " + x.Reason
			}
			return true, &v1.Pod{}, nil
		})
		i.start(t, Options{})
		if got := <-reports; got != c.report {
			t.Errorf("after the bind was answered with %v there came %s, want %s", c.answer, got, c.report)
		}
		i.stop()
		if err := <-i.ended; err != nil {
			t.Error(err)
		}
	}
}

// TestAnIdleInstanceTellsItsCoreNothing until it becomes the leader: its caches are full before,
// so that it is a candidate like any other, and hooks are shown every input from the first on.
func TestAnIdleInstanceTellsItsCoreNothing(t *testing.T) {
	i, synced, becomeLeader := newInstance(), make(chan struct{}), make(chan struct{})
	shown := make(chan string, 10)
	i.start(t, Options{StandBy: Idle, Synced: func(func(context.Context) error) { close(synced) }, BecomeLeader: becomeLeader, Hooks: []drive.Hook{
		drive.HookFunc(func(_ time.Time, _ time.Duration, inputs []step.Input, _ *step.Ready) {
			for _, in := range inputs {
				if name := describe(in); name == "PodSet p" || name == "NodeSet n of " {
					shown <- name
				}
			}
		})}})
	<-synced
	lists := i.lists()
	close(becomeLeader)
	if got := <-i.bound; got != "p to n" {
		t.Errorf("bound %s, want p to n", got)
	}
	got := []string{<-shown, <-shown}
	slices.Sort(got)
	if want := []string{"NodeSet n of ", "PodSet p"}; !slices.Equal(got, want) {
		t.Errorf("hooks were shown %q, want %q", got, want)
	}
	if again := i.lists(); again != lists {
		t.Errorf("it made %d lists before it became the leader and %d more after, want none", lists, again-lists)
	}
	i.stop()
	if err := <-i.ended; err != nil {
		t.Error(err)
	}
}

// TestNoCandidateBeforeTheCachesAreFull refuses one list after the other, and allows it when the
// instance has said what it lacks. Only then may it become the leader.
func TestNoCandidateBeforeTheCachesAreFull(t *testing.T) {
	testkit.WithoutErrorBackoff(t)
	for _, name := range NewHealth(false).Caches() {
		if slices.Contains([]string{"deviceclasses", "resourceslices", "resourceclaims", "devicetaintrules", "podgroups"}, name) { // Berth can do without (whereServed)
			continue
		}
		for _, standBy := range []StandBy{Watching, Idle} {
			t.Run(fmt.Sprint(name, standBy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					i, health, allowed, synced := newInstance(), NewHealth(false), make(chan struct{}), make(chan struct{})
					i.client.PrependReactor("list", name, func(clienttesting.Action) (bool, runtime.Object, error) {
						select {
						case <-allowed:
							return false, nil, nil
						default:
							return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: name}, "", errors.New("no RBAC rule allows it"))
						}
					})
					i.start(t, Options{StandBy: standBy, Health: health, Synced: func(func(context.Context) error) { close(synced) }, BecomeLeader: make(chan struct{})})
					time.Sleep(time.Minute)
					select {
					case <-synced:
						t.Error("it is a candidate")
					default:
					}
					for _, cache := range health.Caches() {
						err := health.Cache(cache)
						if (err != nil) != (cache == name) {
							t.Errorf("the cache of %s: %v", cache, err)
						}
						if cache == name && (err == nil || !strings.Contains(err.Error(), "no RBAC rule allows it")) {
							t.Errorf("it says %v, want why", err)
						}
					}
					close(allowed)
					<-synced
					if err := health.Cache(name); err != nil {
						t.Errorf("with full caches it says %v", err)
					}
					i.stop()
					if err := <-i.ended; err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestALeaderThatCannotBeginEnds shows that nothing is decided then.
func TestALeaderThatCannotBeginEnds(t *testing.T) {
	refused := errors.New("refused")
	i := newInstance()
	i.start(t, Options{OnBecomeLeader: func(context.Context) error { return refused }})
	if err := <-i.ended; !errors.Is(err, refused) {
		t.Errorf("it ended with %v, want %v", err, refused)
	}
	if len(i.bound) > 0 {
		t.Errorf("it bound %s", <-i.bound)
	}
}
