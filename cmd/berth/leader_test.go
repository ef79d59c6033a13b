package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/config"
)

// This file specifies how a Berth holds its Lease: from before it decides until after it has
// stopped.

// TestTheLeaseIsHeldWhileWorkRuns ends work in the ways in which it can end, and watches the
// Lease.
func TestTheLeaseIsHeldWhileWorkRuns(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
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
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			e := &election{client: client, lease: config.Default().LeaderElection, identity: "me", log: slog.New(slog.DiscardHandler)}
			var ended atomic.Bool
			client.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
				lease := a.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
				if ptr.Deref(lease.Spec.HolderIdentity, "") == "" && !ended.Load() {
					t.Error("the Lease is given up while work runs")
				}
				return false, nil, nil
			})
			holder := func() string {
				lease, err := client.CoordinationV1().Leases(e.lease.Namespace).Get(context.Background(), e.lease.Name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				return ptr.Deref(lease.Spec.HolderIdentity, "")
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			err := e.run(ctx, func(ctx context.Context, becomeLeader <-chan struct{}) error {
				<-becomeLeader
				err := c.end(ctx, stop)
				if got := holder(); got != "me" {
					t.Errorf("when work ends, the Lease is held by %q, want me", got)
				}
				ended.Store(true)
				return err
			})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got := holder(); got != "" {
				t.Errorf("after the end the Lease is held by %q, want \"\"", got)
			}
		})
	}
}

func TestElectionRefusesTimesThatCantWork(t *testing.T) {
	e := &election{client: fake.NewClientset(), lease: config.Default().LeaderElection, identity: "me", log: slog.New(slog.DiscardHandler)}
	e.lease.RenewDeadline = e.lease.LeaseDuration
	err := e.run(t.Context(), func(context.Context, <-chan struct{}) error {
		t.Error("work runs without an election")
		return nil
	})
	if want := "setting up leader election: leaseDuration must be greater than renewDeadline"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
