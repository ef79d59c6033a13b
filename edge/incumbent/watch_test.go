package incumbent

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/internal/test/peers"
)

// This file specifies when a Lease of another program counts as live. It lasts 15 s, and its holder
// renews it every 2 s.

func watchLease(client kubernetes.Interface) *watch {
	return &watch{client: client, namespace: metav1.NamespaceSystem, name: SchedulerLease, log: slog.New(slog.DiscardHandler)}
}

// TestALeaseIsLiveWhileItsHolderRenewsIt has Leases in several states, and holders whose clocks are
// wrong: a clock that is off by hours changes no answer.
func TestALeaseIsLiveWhileItsHolderRenewsIt(t *testing.T) {
	const soon, lease = 3 * time.Second, 16 * time.Second
	for _, x := range []struct {
		name   string
		begin  func(t *testing.T, c *fake.Clientset)
		live   bool
		within time.Duration
	}{
		{"there is no Lease", func(*testing.T, *fake.Clientset) {}, false, 0},
		{"its holder renews it", func(t *testing.T, c *fake.Clientset) { peers.HoldLease(t, c, SchedulerLease, "other", 0).Renew() }, true, soon},
		{"its holder renews it, by a clock that is 12 hours behind", func(t *testing.T, c *fake.Clientset) {
			peers.HoldLease(t, c, SchedulerLease, "other", -12*time.Hour).Renew()
		}, true, soon},
		{"its holder renews it, by a clock that is 12 hours ahead", func(t *testing.T, c *fake.Clientset) {
			peers.HoldLease(t, c, SchedulerLease, "other", 12*time.Hour).Renew()
		}, true, soon},
		{"its holder has just died", func(t *testing.T, c *fake.Clientset) { peers.HoldLease(t, c, SchedulerLease, "other", 0) }, false, lease},
		{"its holder has died, and its clock was 12 hours ahead", func(t *testing.T, c *fake.Clientset) {
			peers.HoldLease(t, c, SchedulerLease, "other", 12*time.Hour)
		}, false, lease},
		{"its holder died days ago", func(t *testing.T, c *fake.Clientset) { peers.HoldLease(t, c, SchedulerLease, "other", -48*time.Hour) }, false, 0},
		{"its holder has given it up", func(t *testing.T, c *fake.Clientset) { peers.HoldLease(t, c, SchedulerLease, "other", 0).GiveUp() }, false, 0},
		{"its holder gives it up meanwhile", func(t *testing.T, c *fake.Clientset) {
			l := peers.HoldLease(t, c, SchedulerLease, "other", 0)
			go func() {
				time.Sleep(time.Second)
				l.GiveUp()
			}()
		}, false, soon},
		{"another one takes it over", func(t *testing.T, c *fake.Clientset) {
			l := peers.HoldLease(t, c, SchedulerLease, "first", 0)
			go func() {
				time.Sleep(10 * time.Second)
				l.Change(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = ptr.To("other") })
			}()
		}, true, 11 * time.Second},
		{"somebody labels it, and its holder has died", func(t *testing.T, c *fake.Clientset) {
			l := peers.HoldLease(t, c, SchedulerLease, "other", 0)
			go func() {
				time.Sleep(time.Second)
				l.Change(func(lease *coordinationv1.Lease) { lease.Labels = map[string]string{"a": "b"} })
			}()
		}, false, lease},
		{"it has a holder and no times", func(t *testing.T, c *fake.Clientset) {
			peers.HoldLease(t, c, SchedulerLease, "other", 0).Change(func(lease *coordinationv1.Lease) {
				lease.Spec.RenewTime, lease.Spec.AcquireTime, lease.Spec.LeaseDurationSeconds = nil, nil, nil
			})
		}, false, lease},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				x.begin(t, client)
				began := time.Now()
				holder, err := watchLease(client).holder(t.Context())
				want := ""
				if x.live {
					want = "other"
				}
				if took := time.Since(began); err != nil || holder != want || took > x.within {
					t.Errorf("the holder is %q (%v) after %s, want %q within %s", holder, err, took, want, x.within)
				}
			})
		})
	}
}

// TestADeadLeaseIsWatchedOnce: the second answer comes at once, until the Lease has changed.
func TestADeadLeaseIsWatchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		l, w := peers.HoldLease(t, client, SchedulerLease, "other", 0), watchLease(client)
		for i, atMost := range []time.Duration{16 * time.Second, 0, 0} {
			began := time.Now()
			holder, err := w.holder(t.Context())
			if took := time.Since(began); err != nil || holder != "" || took > atMost {
				t.Errorf("answer %d: the holder is %q (%v) after %s, want nobody within %s", i, holder, err, took, atMost)
			}
			time.Sleep(time.Hour)
		}
		l.Renew()
		synctest.Wait()
		if holder, err := w.holder(t.Context()); err != nil || holder != "other" {
			t.Errorf("the holder is back: got %q, %v", holder, err)
		}
	})
}

// TestAnAPIServerThatFailsToSayWhoHoldsALease fails for a while or for good, and refuses.
func TestAnAPIServerThatFailsToSayWhoHoldsALease(t *testing.T) {
	away := apierrors.NewServiceUnavailable("away")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}, SchedulerLease, errors.New("no rule allows it"))
	for _, x := range []struct {
		name   string
		err    error
		fails  time.Duration // how long reading fails
		holder string
		want   error
		within time.Duration
	}{
		{"for a while", away, 10 * time.Second, "other", nil, 13 * time.Second},
		{"for good", away, time.Hour, "", away, 16 * time.Second},
		{"it isn't allowed", forbidden, time.Hour, "", forbidden, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				peers.HoldLease(t, client, SchedulerLease, "other", 0).Renew()
				asked, began := fake.NewClientset(), time.Now()
				asked.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					if time.Since(began) < x.fails {
						return true, nil, x.err
					}
					l, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), SchedulerLease, metav1.GetOptions{})
					return true, l, err
				})
				holder, err := watchLease(asked).holder(t.Context())
				if took := time.Since(began); holder != x.holder || !errors.Is(err, x.want) || took > x.within {
					t.Errorf("got %q and %v after %s, want %q and %v within %s", holder, err, took, x.holder, x.want, x.within)
				}
			})
		})
	}
}

// TestManyGroupsAreCounted in the message.
func TestManyGroupsAreCounted(t *testing.T) {
	if got, want := enumerate([]string{"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
