package leader

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

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berthproject/berth/config"
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
	*Election
	*leaseInMemory
	ended  atomic.Bool // the work has ended
	caches CatchUp     // nil for caches that are new
}

func newCandidacy(t *testing.T) *candidacy {
	c := &candidacy{Election: NewElection(fake.NewClientset(), config.Default().LeaderElection, "me", NewFence(), slog.New(slog.DiscardHandler))}
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

// lead has the candidate become the leader, and its work be f.
func (c *candidacy) lead(t *testing.T, f func()) {
	t.Helper()
	err := c.Run(t.Context(), func(_ context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error {
		synced(c.caches)
		<-becomeLeader
		f()
		c.ended.Store(true)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
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
				err := c.Run(ctx, func(ctx context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error {
					synced(nil)
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
		err := c.Run(t.Context(), func(_ context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error {
			time.Sleep(time.Hour)
			if got := c.holder(); got != "no Lease" {
				t.Errorf("before the caches are full, the Lease is held by %q, want no Lease", got)
			}
			synced(nil)
			<-becomeLeader
			c.ended.Store(true)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestNothingIsWrittenPastTheDeadline has an API server that doesn't answer for a minute, each call
// for the five seconds after which the client gives it up: the fence closes ten seconds after the
// last renewal, while the Lease would go on for five. When the API server is back the Lease is as
// it was, unless somebody has taken it: then this process goes on, with all that it knows.
func TestNothingIsWrittenPastTheDeadline(t *testing.T) {
	for _, x := range []struct {
		name   string
		happen func(c *candidacy)
		want   string // error, "" for leading on
	}{
		{"nobody has taken the Lease", func(*candidacy) {}, ""},
		{"another Berth has taken the Lease", func(c *candidacy) { c.set(heldBy("other")) }, `the Lease kube-system/berth was lost: it is now held by "other"`},
		{"another Berth had it and gave it up", func(c *candidacy) { c.set(heldBy("")) }, `the Lease kube-system/berth was lost: it is now held by ""`},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCandidacy(t)
				var hangs atomic.Bool
				var renewed atomic.Int64 // nanoseconds
				c.call = func(ctx context.Context, _ string) error {
					if hangs.Load() {
						ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
						defer cancel()
						<-ctx.Done()
						return ctx.Err()
					}
					renewed.Store(time.Now().UnixNano())
					return nil
				}
				since := func() time.Duration { return time.Since(time.Unix(0, renewed.Load())) }
				err := c.Run(t.Context(), func(ctx context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error {
					synced(nil)
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
					time.Sleep(time.Minute)
					if c.fence.Open() || ctx.Err() != nil {
						t.Errorf("nobody answers: it may write: %t, work is told to stop: %v; want neither", c.fence.Open(), ctx.Err())
					}
					if err := c.Renewing(); err != nil {
						t.Errorf("nobody answers, and it isn't alive: %v", err)
					}
					x.happen(c)
					hangs.Store(false)
					select { // work stops when it is told to, as it must
					case <-ctx.Done():
					case <-time.After(8 * time.Second): // a call that hangs still, and a retry period
					}
					if leads := x.want == ""; c.fence.Open() != leads || ctx.Err() == nil != leads {
						t.Errorf("within 8s after the API server is back it may write: %t, work is told to stop: %v; want the leader: %t", c.fence.Open(), ctx.Err(), leads)
					}
					return nil
				})
				if got := errorText(err); x.want == "" && err != nil || !strings.Contains(got, x.want) {
					t.Errorf("it ended with %v, want %q", err, x.want)
				}
			})
		})
	}
}

// TestAnElectionThatIsStuckIsntAlive has a call about the Lease never end.
func TestAnElectionThatIsStuckIsntAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCandidacy(t)
		var hangs atomic.Bool
		goOn := make(chan struct{})
		c.call = func(context.Context, string) error {
			if hangs.Load() {
				<-goOn
			}
			return nil
		}
		if err := c.Renewing(); err != nil {
			t.Errorf("it isn't alive before it is a candidate: %v", err)
		}
		c.lead(t, func() {
			hangs.Store(true)
			time.Sleep(35 * time.Second)
			if err := c.Renewing(); err != nil {
				t.Errorf("it isn't alive after 35s: %v", err)
			}
			time.Sleep(3 * time.Second)
			if err := c.Renewing(); err == nil || !strings.Contains(err.Error(), "the last call about the Lease kube-system/berth ended 3") {
				t.Errorf("it is alive: %v", err)
			}
			hangs.Store(false)
			close(goOn)
		})
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
		{"another Berth has taken the Lease", func(c *candidacy) { c.set(heldBy("other")) }, `it is now held by "other"`},
		{"another Berth had it and gave it up", func(c *candidacy) { c.set(heldBy("")) }, `it is now held by ""`},
		{"it was deleted", func(c *candidacy) { c.set(nil) }, "it was deleted"},
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
				err := c.Run(t.Context(), func(ctx context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error {
					synced(nil)
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
		err := c.Run(t.Context(), func(ctx context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error {
			synced(nil)
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
	e := NewElection(fake.NewClientset(), lease, "me", NewFence(), slog.New(slog.DiscardHandler))
	err := e.Run(t.Context(), func(context.Context, func(CatchUp), <-chan struct{}) error {
		t.Error("work runs without an election")
		return nil
	})
	if want := "setting up leader election: leaseDuration must be greater than renewDeadline"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
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
	t.Setenv(podName, "")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 100 {
		id, err := Identity()
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

// TestThePodsNameIsInTheIdentity where the environment gives it, as in pods that have their node's hostname; one that
// would leave no room for the rest isn't taken.
func TestThePodsNameIsInTheIdentity(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": host, "berth-7d9f-x2x4z": "berth-7d9f-x2x4z", strings.Repeat("n", 64): host} {
		t.Setenv(podName, name)
		if id, err := Identity(); err != nil || !strings.HasPrefix(id, want+"_") {
			t.Errorf("with the pod's name %q the identity is %q (%v), want one that begins with %s_", name, id, err, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
