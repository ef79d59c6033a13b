package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berthproject/berth/config"
)

// This file elects the one Berth that decides. What must hold: only the holder of the
// Lease writes to the cluster, and it has stopped writing before it gives the Lease up.

// election is this process as a candidate for a Lease.
type election struct {
	client   kubernetes.Interface
	lease    config.LeaderElection // Enabled isn't read
	identity string                // holderIdentity of the Lease
	log      *slog.Logger
}

// run calls work, which stands by until becomeLeader is closed, and decides from then on.
// run returns when work does, when ctx is done, or with an error when the Lease is lost:
// another Berth may be deciding then.
func (e *election) run(ctx context.Context, work func(ctx context.Context, becomeLeader <-chan struct{}) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	becomeLeader := make(chan struct{})
	var leads atomic.Bool
	elector, err := e.elector(func() {
		leads.Store(true)
		close(becomeLeader)
	})
	if err != nil {
		return err
	}
	// work gets a context of its own, which ends first. That of the elector doesn't end
	// with ctx: the Lease is renewed until work has returned, and then given up.
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	holding, giveUpLease := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUpLease()
	ended := make(chan error, 1)
	go func() {
		err := work(working, becomeLeader)
		ended <- err
		giveUpLease()
	}()
	elector.Run(holding)
	lost := working.Err() == nil && holding.Err() == nil && leads.Load()
	stopWork()
	if err := <-ended; err != nil {
		return err
	}
	if lost {
		return fmt.Errorf("the lease %s/%s was lost; another Berth may be leading", e.lease.Namespace, e.lease.Name)
	}
	return nil
}

// elector returns client-go's elector for the Lease. It calls onLeading once, when this
// process has become the holder.
func (e *election) elector(onLeading func()) (*leaderelection.LeaderElector, error) {
	name := e.lease.Namespace + "/" + e.lease.Name
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.lease.Name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.lease.Namespace, Name: e.lease.Name},
			Client:     e.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.identity},
		},
		LeaseDuration: e.lease.LeaseDuration, RenewDeadline: e.lease.RenewDeadline, RetryPeriod: e.lease.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				e.log.Info("leading", "lease", name)
				onLeading()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				if leader != e.identity {
					e.log.Info("standing by: another Berth leads", "leader", leader, "lease", name)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up leader election: %w", err)
	}
	return elector, nil
}
