package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/edge/live"
)

// This file specifies how a Berth holds its Lease: from when it could decide until after it has
// stopped. The Lease lasts 15 seconds, is renewed every 2, and has to be within 10.

var leases = schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}

// leaseInMemory is a Lease as the API server has it, for one process that reads and writes it.
type leaseInMemory struct {
	*resourcelock.LeaseLock // for its identity and its name
	// call, when not nil, is called first. Its error is that of the call.
	call func(ctx context.Context, verb string) error

	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord // nil when there is none; guarded by mu
	changed bool                               // since the process has seen it; guarded by mu
}

func (l *leaseInMemory) before(ctx context.Context, verb string) error {
	if l.call == nil {
		return nil
	}
	return l.call(ctx, verb)
}

func (l *leaseInMemory) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.before(ctx, "get"); err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = false
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(leases, "berth")
	}
	raw, err := json.Marshal(l.record)
	return new(*l.record), raw, err
}

func (l *leaseInMemory) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "create", record)
}

func (l *leaseInMemory) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "update", record)
}

func (l *leaseInMemory) write(ctx context.Context, verb string, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	switch {
	case (l.record == nil) != (verb == "create"):
		l.mu.Unlock()
		return apierrors.NewNotFound(leases, "berth")
	case l.changed:
		l.mu.Unlock()
		return apierrors.NewConflict(leases, "berth", errors.New("it was changed"))
	}
	l.record = &record
	l.mu.Unlock()
	return l.before(ctx, verb) // of the answer
}

// set has somebody else change the Lease; nil for deleting it.
func (l *leaseInMemory) set(record *resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record, l.changed = record, true
}

// heldBy is the Lease as held by somebody.
func heldBy(holder string) *resourcelock.LeaderElectionRecord {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: metav1.Now(), LeaderTransitions: 7}
}

// holder returns who holds the Lease.
func (l *leaseInMemory) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return "no Lease"
	}
	return l.record.HolderIdentity
}

// candidacy is an election of "me".
type candidacy struct {
	*election
	*leaseInMemory
	ended atomic.Bool // the work has ended
}

func newCandidacy(t *testing.T) *candidacy {
	c := &candidacy{election: newElection(fake.NewClientset(), config.Default().LeaderElection, "me", live.NewFence(), slog.New(slog.DiscardHandler))}
	c.leaseInMemory = &leaseInMemory{LeaseLock: c.lock.Interface.(*resourcelock.LeaseLock)}
	c.lock.Interface = c.leaseInMemory
	c.call = func(context.Context, string) error {
		if c.holder() == "" && !c.ended.Load() {
			t.Error("the Lease is given up while work runs")
		}
		return nil
	}
	return c
}

// TestTheLeaseIsHeldWhileWorkRuns ends work in the ways in which it can end, and watches the
// Lease.
func TestTheLeaseIsHeldWhileWorkRuns(t *testing.T) {
	failed := errors.New("failed")
	for _, x := range []struct {
		name string
		end  func(ctx context.Context, stop func()) error // the end of work, as the leader
		want error
	}{
		{"work ends", func(context.Context, func()) error { return nil }, nil},
		{"work fails", func(context.Context, func()) error { return failed }, failed},
		{"the program is stopped", func(ctx context.Context, stop func()) error {
			stop()
			<-ctx.Done()
			return nil
		}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCandidacy(t)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				err := c.run(ctx, func(ctx context.Context, synced func(), becomeLeader <-chan struct{}) error {
					synced()
					<-becomeLeader
					time.Sleep(time.Hour)
					if !c.fence.Open() {
						t.Error("the leader may not write")
					}
					err := x.end(ctx, stop)
					if got := c.holder(); got != "me" {
						t.Errorf("when work ends, the Lease is held by %q, want me", got)
					}
					c.ended.Store(true)
					return err
				})
				if !errors.Is(err, x.want) {
					t.Errorf("got %v, want %v", err, x.want)
				}
				if got := c.holder(); got != "" {
					t.Errorf("after the end the Lease is held by %q, want \"\"", got)
				}
				if c.fence.Open() {
					t.Error("after the end this process may still write")
				}
			})
		})
	}
}

// TestNoCandidateThatCannotDecideYet has work that can't list something for an hour.
func TestNoCandidateThatCannotDecideYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidacy(t)
		err := c.run(t.Context(), func(_ context.Context, synced func(), becomeLeader <-chan struct{}) error {
			time.Sleep(time.Hour)
			if got := c.holder(); got != "no Lease" {
				t.Errorf("before the caches are full, the Lease is held by %q, want no Lease", got)
			}
			synced()
			<-becomeLeader
			c.ended.Store(true)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestADeadHoldersLeaseIsTakenSoon has another Berth renew its Lease every two seconds until it dies
// at some time after a renewal. The candidate takes the Lease no sooner than 15 s after the last
// renewal, and at most 1.1 s later: it has seen that one, and sees that the Lease is over, at most
// 2.2 times its period late (looksPerRetry).
func TestADeadHoldersLeaseIsTakenSoon(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := newCandidacy(t)
			renewals := make(chan time.Time, 31)
			renew := func() {
				c.set(heldBy("other"))
				renewals <- time.Now()
			}
			renew()
			go func() {
				for range 30 {
					time.Sleep(2 * time.Second)
					renew()
				}
				close(renewals)
			}()
			err := c.run(t.Context(), func(_ context.Context, synced func(), becomeLeader <-chan struct{}) error {
				synced()
				<-becomeLeader
				var last time.Time
				for last = range renewals {
				}
				if late := time.Since(last) - 15*time.Second; late < 0 || late > 1100*time.Millisecond {
					t.Errorf("the Lease was taken %s after it was over, want at most 1.1s", late)
				}
				c.ended.Store(true)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTheLeaseIsRenewedAsOftenAsConfigured counts the calls of a holder within a minute.
func TestTheLeaseIsRenewedAsOftenAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidacy(t)
		var updates, others atomic.Int32
		c.call = func(_ context.Context, verb string) error {
			if verb == "update" {
				updates.Add(1)
			} else {
				others.Add(1)
			}
			return nil
		}
		err := c.run(t.Context(), func(_ context.Context, synced func(), becomeLeader <-chan struct{}) error {
			synced()
			<-becomeLeader
			before, reads := updates.Load(), others.Load()
			time.Sleep(time.Minute + time.Second)
			if n, more := updates.Load()-before, others.Load()-reads; n != 30 || more != 0 {
				t.Errorf("%d updates and %d other calls in 61s, want 30 and none", n, more)
			}
			c.ended.Store(true)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestAnAPIServerThatFailsIsCalledAsOftenAsConfigured counts the calls of a candidate that can't
// read the Lease.
func TestAnAPIServerThatFailsIsCalledAsOftenAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidacy(t)
		var calls atomic.Int32
		c.call = func(context.Context, string) error {
			calls.Add(1)
			return apierrors.NewServiceUnavailable("away")
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		err := c.run(ctx, func(ctx context.Context, synced func(), _ <-chan struct{}) error {
			synced()
			<-ctx.Done()
			return nil
		})
		if n := calls.Load(); err != nil || n < 30 || n > 31 {
			t.Errorf("%d calls in a minute (%v), want one every two seconds", n, err)
		}
	})
}

// TestNothingIsWrittenPastTheDeadline has an API server that doesn't answer any more, each call
// for the five seconds after which the client gives it up: the fence closes ten seconds after the
// last renewal, while the Lease would go on for five, and the Lease isn't given up before work
// has stopped.
func TestNothingIsWrittenPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidacy(t)
		var hangs atomic.Bool
		var renewed atomic.Int64 // nanoseconds
		look := c.call
		c.call = func(ctx context.Context, verb string) error {
			if hangs.Load() {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			renewed.Store(time.Now().UnixNano())
			return look(ctx, verb)
		}
		since := func() time.Duration { return time.Since(time.Unix(0, renewed.Load())) }
		err := c.run(t.Context(), func(ctx context.Context, synced func(), becomeLeader <-chan struct{}) error {
			synced()
			<-becomeLeader
			time.Sleep(time.Minute + time.Second)
			hangs.Store(true)
			time.Sleep(10*time.Second - since() - 1)
			if !c.fence.Open() {
				t.Error("it may not write any more before the deadline")
			}
			time.Sleep(time.Nanosecond)
			if c.fence.Open() {
				t.Error("it may still write at the deadline")
			}
			<-ctx.Done()
			if got := since(); got >= 15*time.Second {
				t.Errorf("work is told to stop %s after the last renewal; others take the Lease after 15s", got)
			}
			time.Sleep(time.Second) // work takes a while to stop
			if got := c.holder(); got != "me" {
				t.Errorf("before work has stopped, the Lease is held by %q, want me", got)
			}
			c.ended.Store(true)
			hangs.Store(false)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "the lease kube-system/berth was lost: it could not be renewed in time") {
			t.Errorf("got %v", err)
		}
		if got := c.holder(); got != "" {
			t.Errorf("after the end the Lease is held by %q, want \"\"", got)
		}
	})
}

// TestTheFirstThingAfterAStopIsToLook stops the process for a minute, in the middle of a
// renewal that has succeeded, while others do something with the Lease. When it goes on it may
// not write before it has looked, and never again if the Lease was anything but its own.
func TestTheFirstThingAfterAStopIsToLook(t *testing.T) {
	for _, x := range []struct {
		name   string
		happen func(c *candidacy)
		want   string // error, "" for leading on
	}{
		{"nothing", func(*candidacy) {}, ""},
		{"another Berth has taken the Lease", func(c *candidacy) { c.set(heldBy("other")) }, `it is held by "other" now`},
		{"another Berth had it and gave it up", func(c *candidacy) { c.set(heldBy("")) }, `it is held by "" now`},
		{"somebody has deleted it", func(c *candidacy) { c.set(nil) }, "somebody has deleted it"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCandidacy(t)
				var stops atomic.Bool
				stopped, holder := false, ""
				c.call = func(_ context.Context, verb string) error {
					if verb == "update" && stops.CompareAndSwap(true, false) {
						time.Sleep(time.Minute)
						if c.fence.Open() {
							t.Error("it may write after the stop, before it has looked")
						}
						x.happen(c)
						stopped, holder = true, c.holder()
					}
					return nil
				}
				err := c.run(t.Context(), func(ctx context.Context, synced func(), becomeLeader <-chan struct{}) error {
					synced()
					<-becomeLeader
					stops.Store(true)
					select {
					case <-time.After(time.Hour):
						if !c.fence.Open() {
							t.Error("it holds the Lease and may not write")
						}
					case <-ctx.Done():
						if c.fence.Open() {
							t.Error("it has lost the Lease and may write")
						}
					}
					return nil
				})
				if got := errorText(err); x.want == "" && err != nil || !strings.Contains(got, x.want) {
					t.Errorf("it ended with %v, want %q", err, x.want)
				}
				if !stopped {
					t.Error("the process wasn't stopped: the test shows nothing")
				}
				if got := c.holder(); x.want != "" && got != holder {
					t.Errorf("the Lease that was lost was held by %q, and by %q in the end", holder, got)
				}
			})
		})
	}
}

// TestWorkThatDoesNotStopIsNotWaitedFor any longer than the Lease lasts: the end of the process
// stops it.
func TestWorkThatDoesNotStopIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidacy(t)
		goOn := make(chan struct{})
		lost := make(chan time.Time, 1)
		err := c.run(t.Context(), func(ctx context.Context, synced func(), becomeLeader <-chan struct{}) error {
			synced()
			<-becomeLeader
			c.set(heldBy("other"))
			<-ctx.Done()
			lost <- time.Now()
			<-goOn
			c.ended.Store(true)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "its work did not stop in time") {
			t.Errorf("got %v", err)
		}
		if got := time.Since(<-lost); got > 5*time.Second {
			t.Errorf("it was waited for %s, want 5s at most", got)
		}
		close(goOn)
	})
}

func TestElectionRefusesTimesThatCantWork(t *testing.T) {
	lease := config.Default().LeaderElection
	lease.RenewDeadline = lease.LeaseDuration
	e := newElection(fake.NewClientset(), lease, "me", live.NewFence(), slog.New(slog.DiscardHandler))
	err := e.run(t.Context(), func(context.Context, func(), <-chan struct{}) error {
		t.Error("work runs without an election")
		return nil
	})
	if want := "setting up leader election: leaseDuration must be greater than renewDeadline"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestACallAboutTheLeaseEndsBeforeTheDeadline has an API server that never answers.
func TestACallAboutTheLeaseEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := config.Default().LeaderElection
		client, err := leaseClient(&rest.Config{Host: "http://api", Transport: silent{}}, lease)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err = client.CoordinationV1().Leases(lease.Namespace).Get(t.Context(), lease.Name, metav1.GetOptions{}); err == nil {
			t.Error("there is an answer")
		}
		if got := time.Since(began); got > lease.RenewDeadline/2 {
			t.Errorf("the call took %s, want no more than half of the deadline, %s", got, lease.RenewDeadline)
		}
	})
}

// silent is a connection to an API server that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestNoTwoProcessesHaveOneIdentity, though a container that is restarted has the host and the
// PID that it had before.
func TestNoTwoProcessesHaveOneIdentity(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 100 {
		id, err := processIdentity()
		if err != nil {
			t.Fatal(err)
		}
		// Events have at most 128 characters for who reports them.
		if !strings.HasPrefix(id, host+"_") || len(id) > 128 || seen[id] {
			t.Errorf("got %q; want one that begins with %s_, has at most 128 characters, and that there wasn't before", id, host)
		}
		seen[id] = true
	}
}

// TestWhoMayNotUseTheLeaseIsTold at the start, with what to do.
func TestWhoMayNotUseTheLeaseIsTold(t *testing.T) {
	forbidden := func(verb string) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(leases, "berth", errors.New("no rule allows to "+verb))
		}
	}
	for _, x := range []struct {
		name   string
		exists bool
		denied string // verb that the API server says it doesn't allow
		more   func(*fake.Clientset)
		want   string
	}{
		{"all is allowed", true, "", nil, ""},
		{"reading is refused", true, "", func(c *fake.Clientset) { c.PrependReactor("get", "leases", forbidden("get")) }, "does not allow to get it"},
		{"reading is not allowed", true, "get", nil, "does not allow to get it"},
		{"renewing is not allowed", true, "update", nil, "does not allow to update it"},
		{"creating is not allowed, and there is a Lease", true, "create", nil, ""},
		{"creating is not allowed, and there is no Lease", false, "create", nil, "does not allow to create it"},
		{"the API server doesn't say", false, "", func(c *fake.Clientset) {
			c.PrependReactor("create", "selfsubjectaccessreviews", forbidden("ask"))
		}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			lease := config.Default().LeaderElection
			lease.Name = "mine"
			client := fake.NewClientset()
			if x.exists {
				client = fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name}})
			}
			client.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				asked := r.Spec.ResourceAttributes
				if wantName := map[bool]string{false: "mine"}[asked.Verb == "create"]; asked.Resource != "leases" || asked.Group != "coordination.k8s.io" || asked.Namespace != "kube-system" || asked.Name != wantName {
					t.Errorf("asked for %+v", asked)
				}
				r.Status.Allowed = asked.Verb != x.denied
				return true, r, nil
			})
			if x.more != nil {
				x.more(client)
			}
			err := mayLead(t.Context(), client, lease)
			if got := errorText(err); (x.want == "") != (err == nil) || !strings.Contains(got, x.want) || err != nil && (!strings.Contains(got, "the lease kube-system/mine") || !strings.Contains(got, "leaderElection of --config")) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
}

// TestACandidateThatIsRefusedTheLeaseIsNotReady takes the right to read it from one that stands
// by, and gives it again.
func TestACandidateThatIsRefusedTheLeaseIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidacy(t)
		c.set(heldBy("other"))
		var denied atomic.Bool
		c.call = func(context.Context, string) error {
			if denied.Load() {
				return apierrors.NewForbidden(leases, "berth", errors.New("no rule allows it"))
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		err := c.run(ctx, func(ctx context.Context, synced func(), _ <-chan struct{}) error {
			synced()
			for _, want := range []bool{false, true, false} {
				denied.Store(want)
				time.Sleep(5 * time.Second) // longer than between two looks
				if got := c.lock.usable(); (got != nil) != want {
					t.Errorf("refused: %t; it says %v", want, got)
				}
			}
			stop()
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
