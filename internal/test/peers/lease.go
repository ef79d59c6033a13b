// Package peers plays the other programs that Berth meets in tests: one that holds a Lease
// (lease.go), and a server that chooses node groups (expander.go).
package peers

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// Lease is a Lease that another program holds in the API. A change that fails ends nothing, but is
// an error of the test.
type Lease struct {
	t      *testing.T
	client *fake.Clientset
	name   string
	// clock is how far the holder's clock is ahead of this process's.
	clock time.Duration
}

// HoldLease creates a Lease that holder holds, and that isn't renewed yet.
func HoldLease(t *testing.T, client *fake.Clientset, name, holder string, clock time.Duration) *Lease {
	l := &Lease{t: t, client: client, name: name, clock: clock}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: l.now(), AcquireTime: l.now()}
	if _, err := client.CoordinationV1().Leases(lease.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return l
}

// now returns the time by the holder's clock, which Berth must not compare with its own.
func (l *Lease) now() *metav1.MicroTime {
	return &metav1.MicroTime{Time: time.Now().Add(l.clock)}
}

// Change changes the Lease as its holder or somebody else would.
func (l *Lease) Change(f func(*coordinationv1.Lease)) {
	leases := l.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := leases.Get(context.Background(), l.name, metav1.GetOptions{})
	if err == nil {
		f(lease)
		_, err = leases.Update(context.Background(), lease, metav1.UpdateOptions{})
	}
	if err != nil {
		l.t.Error(err)
	}
}

// Renew makes the holder renew the Lease every two seconds until the test ends.
func (l *Lease) Renew() {
	go func() {
		for l.t.Context().Err() == nil {
			l.Change(func(lease *coordinationv1.Lease) { lease.Spec.RenewTime = l.now() })
			select {
			case <-l.t.Context().Done():
			case <-time.After(2 * time.Second):
			}
		}
	}()
}

// GiveUp ends the holder as client-go's elector does.
func (l *Lease) GiveUp() {
	l.Change(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = ptr.To("") })
}
