package leader

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/config"
)

// This file specifies the calls about the Lease: how often they are made, how long they may take, and
// who may make them. What an election makes of them is in leader_test.go, with its candidacy.

// TestADeadHoldersLeaseIsTakenSoon has another Berth renew its Lease every two seconds until it dies
// at some time after a renewal. The candidate takes the Lease no sooner than 15 s after the last
// renewal, and at most 1.1 s later: it sees that one, and then that the Lease is over, each at most
// 2.2 times its period of 0.25 s late (looksPerRetry).
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
			c.lead(t, func() {
				var last time.Time
				for last = range renewals {
				}
				if late := time.Since(last) - 15*time.Second; late < 0 || late > 1100*time.Millisecond {
					t.Errorf("the Lease was taken %s after it was over, want at most 1.1s", late)
				}
			})
		})
	}
}

// TestCachesCatchUpBeforeALeaseIsTaken has another Berth end as its Lease, and the candidate's
// caches take a second and a half to catch up.
func TestCachesCatchUpBeforeALeaseIsTaken(t *testing.T) {
	given := heldBy("")
	given.LeaseDurationSeconds = 1
	const within = 1100 * time.Millisecond // TestADeadHoldersLeaseIsTakenSoon
	for _, x := range []struct {
		name   string
		before func(c *candidacy)                                    // how the Lease comes to be as it is
		fail   func(try int) error                                   // how catching up ends; may be nil
		during func(c *candidacy, try int)                           // what happens meanwhile; may be nil
		tries  int                                                   // how often the caches catch up
		begin  time.Duration                                         // from when on they do, the last time
		taken  func(d time.Duration) (atLeast, atMost time.Duration) // d: begin
	}{
		{"the holder has died", func(c *candidacy) { c.set(heldBy("other")) }, nil, nil, 1, 12500 * time.Millisecond,
			func(time.Duration) (time.Duration, time.Duration) { return 15 * time.Second, 15*time.Second + within }},
		{"the Lease is given up", func(c *candidacy) { c.set(given) }, nil, nil, 1, 0,
			func(d time.Duration) (time.Duration, time.Duration) {
				return d + 1500*time.Millisecond, d + 1500*time.Millisecond
			}},
		{"there was none", func(*candidacy) {}, nil, nil, 0, 0,
			func(time.Duration) (time.Duration, time.Duration) { return 0, within }},
		{"caches that don't catch up at once", func(c *candidacy) { c.set(given) }, func(try int) error {
			if try < 3 {
				return errors.New("the watch hangs")
			}
			return nil
		}, nil, 3, 6 * time.Second, // two seconds after each failure
			func(d time.Duration) (time.Duration, time.Duration) {
				return d + 1500*time.Millisecond, d + 1500*time.Millisecond + within
			}},
		{"somebody else leads for a while", func(c *candidacy) { c.set(given) }, nil, func(c *candidacy, try int) {
			if try == 1 {
				c.set(heldBy("third"))
			}
		}, 2, 13500 * time.Millisecond,
			func(time.Duration) (time.Duration, time.Duration) { return 16 * time.Second, 16*time.Second + 2*within }},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCandidacy(t)
				c.call = nil
				x.before(c)
				start, begun, tries := time.Now(), time.Duration(0), 0
				c.caches = func(ctx context.Context) error {
					tries++
					begun = time.Since(start)
					time.Sleep(time.Second)
					if x.during != nil {
						x.during(c, tries)
					}
					time.Sleep(time.Second / 2)
					if x.fail != nil {
						return x.fail(tries)
					}
					return nil
				}
				c.lead(t, func() {
					took := time.Since(start)
					if tries != x.tries || begun < x.begin || begun > x.begin+3*within/2 {
						t.Errorf("the caches caught up %d times, the last time from %s on; want %d and %s", tries, begun, x.tries, x.begin)
					}
					if least, most := x.taken(begun); took < least || took > most {
						t.Errorf("the Lease was taken after %s, want %s to %s", took, least, most)
					}
				})
			})
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
		c.lead(t, func() {
			before, reads := updates.Load(), others.Load()
			time.Sleep(time.Minute + time.Second)
			if n, more := updates.Load()-before, others.Load()-reads; n != 30 || more != 0 {
				t.Errorf("%d updates and %d other calls in 61s, want 30 and none", n, more)
			}
		})
	})
}

// TestAnAPIServerThatFailsIsCalledAsOftenAsConfigured counts the calls of a candidate, and of a
// holder whose Lease is over, that can't read the Lease.
func TestAnAPIServerThatFailsIsCalledAsOftenAsConfigured(t *testing.T) {
	for _, leads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCandidacy(t)
			var calls atomic.Int32
			var away atomic.Bool
			away.Store(!leads)
			c.call = func(context.Context, string) error {
				calls.Add(1)
				if away.Load() {
					return apierrors.NewServiceUnavailable("away")
				}
				return nil
			}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			var over int32
			err := c.Run(ctx, func(ctx context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error {
				synced(nil)
				if leads {
					<-becomeLeader
					away.Store(true)
				}
				time.Sleep(time.Minute)
				over = calls.Load()
				<-ctx.Done()
				over = calls.Load() - over
				away.Store(false)
				return nil
			})
			if err != nil || over < 28 || over > 31 {
				t.Errorf("%d calls in a minute (%v), want one every two seconds; the Lease is its own: %t", over, err, leads)
			}
		})
	}
}

// TestACallAboutTheLeaseEndsBeforeTheDeadline has an API server that never answers.
func TestACallAboutTheLeaseEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := config.Default().LeaderElection
		client, err := NewClient(&rest.Config{Host: "http://api", Transport: silent{}}, lease)
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
		{"reading is refused", true, "", func(c *fake.Clientset) { c.PrependReactor("get", "leases", forbidden("get")) }, "not authorized to get it"},
		{"reading is not allowed", true, "get", nil, "not authorized to get it"},
		{"renewing is not allowed", true, "update", nil, "not authorized to update it"},
		{"creating is not allowed, and there is a Lease", true, "create", nil, ""},
		{"creating is not allowed, and there is no Lease", false, "create", nil, "not authorized to create it"},
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
			err := MayLead(t.Context(), client, lease)
			if got := errorText(err); (x.want == "") != (err == nil) || !strings.Contains(got, x.want) || err != nil && (!strings.Contains(got, "the Lease kube-system/mine") || !strings.Contains(got, "leaderElection of --config")) {
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
				return apierrors.NewForbidden(leases, "berth", errors.New("no RBAC rule allows it"))
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		err := c.Run(ctx, func(ctx context.Context, synced func(CatchUp), _ <-chan struct{}) error {
			synced(nil)
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

// TestTheHolderSaysWhereItServes has a Berth take a Lease that another held before: the labels are
// its own, and may be labels.
func TestTheHolderSaysWhereItServes(t *testing.T) {
	client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "berth",
		Labels: map[string]string{"app": "berth", NamespaceLabel: "elsewhere", PortLabel: "1", CertificateLabel: "ab"}}})
	l := newLock(client, config.Default().LeaderElection, "me_1", NewFence())
	l.serveAt("berth", 10300, []byte("a certificate"))
	record, _, err := l.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Update(t.Context(), *record); err != nil {
		t.Fatal(err)
	}
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "berth", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{"app": "berth", NamespaceLabel: "berth", PortLabel: "10300", CertificateLabel: Fingerprint([]byte("a certificate"))} {
		if got := lease.Labels[label]; got != want || len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	l.serveAt("", 0, nil)
	if got := l.lease.Labels; got[NamespaceLabel] != "" || got[PortLabel] != "0" || got[CertificateLabel] != "" || len(got) != 3 {
		t.Errorf("of one that serves nowhere the labels are %v", got)
	}
}
