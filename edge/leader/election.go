// Package leader elects the one Berth that decides and writes, by a Lease, and holds the fence that
// keeps every other process from writing:
//
//	work fills its caches ─▶ candidate ─▶ leader ─▶ work ends, or the Lease is lost ─▶ fence closed ─▶ Lease given up
//
// A leader that can't renew the Lease in time writes nothing, and has lost it only when it finds that
// somebody else has had it. After an outage of the API server that nobody could use to take the
// Lease, it goes on with all that it knows, which is sooner than anybody else could begin.
//
// What must hold: a Berth that can't decide yet is no candidate; who takes the Lease knows what the
// holder before has written; only the holder of the Lease writes to the cluster (Fence says
// how that is known); and it has stopped writing before it gives the Lease up.
package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/berthproject/berth/config"
)

// Election is this process as a candidate for a Lease.
type Election struct {
	lease    config.LeaderElection // Enabled isn't read
	identity string                // holderIdentity of the Lease
	fence    *Fence                // what this process writes passes it
	log      *slog.Logger

	lock   *lock
	leader atomic.Pointer[string] // identity of the holder that was last seen, nil for none
}

// Leader returns the identity of the holder of the Lease that was last seen, "" for none.
func (e *Election) Leader() string {
	if leader := e.leader.Load(); leader != nil {
		return *leader
	}
	return ""
}

// ServeAt makes the Lease say where this process serves, once it is the holder: the namespace of its
// pod, the port, and the certificate in DER, which is nil for one from a file. It must be called
// before the work calls synced.
func (e *Election) ServeAt(namespace string, port int, certificate []byte) {
	e.lock.serveAt(namespace, port, certificate)
}

// Usable returns nil unless the API server refuses this process the Lease.
func (e *Election) Usable() error { return e.lock.usable() }

// stuckAfter is how long beyond the duration of a Lease no call about it may have ended before the
// election counts as stuck; kube-scheduler's.
const stuckAfter = 20 * time.Second

// NewElection returns a candidate that hasn't run yet. The client's calls have a time-out below
// the renew deadline, and don't pass the fence.
func NewElection(client kubernetes.Interface, lease config.LeaderElection, identity string, fence *Fence, log *slog.Logger) *Election {
	return &Election{lease: lease, identity: identity, fence: fence, log: log,
		lock: newLock(client, lease, identity, fence),
	}
}

// Renewing returns nil unless this process is a candidate and has stopped calling about the Lease. That
// the calls fail is nothing that a new process could do better.
func (e *Election) Renewing() error {
	last := e.lock.called.Load()
	if last == nil || time.Since(*last) <= e.lease.LeaseDuration+stuckAfter {
		return nil
	}
	return fmt.Errorf("the last call about the Lease %s ended %s ago", e.lock.Describe(), time.Since(*last).Round(time.Second))
}

// CatchUp returns nil when the work knows all that the leader before has written before the call.
type CatchUp func(context.Context) error

// Work is what the leader does. It calls synced once, when it could begin to decide, and decides
// from when becomeLeader is closed until ctx is done.
type Work func(ctx context.Context, synced func(CatchUp), becomeLeader <-chan struct{}) error

var errEnded = errors.New("the work has ended")

// Run calls do, and returns when do does, when ctx is done, or with an error when the Lease is
// lost: another Berth may be deciding then. If do doesn't return soon, run doesn't wait for it: the
// process is to end.
func (e *Election) Run(ctx context.Context, do Work) error {
	// do gets a context of its own, which ends first. That of the candidate doesn't end with
	// ctx: the Lease is renewed until do has returned.
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	candidate, withdraw := context.WithCancelCause(context.WithoutCancel(ctx))
	defer withdraw(nil)
	e.lock.lost = withdraw
	synced, becomeLeader := make(chan CatchUp, 1), make(chan struct{})
	elector, err := e.elector(sync.OnceFunc(func() { close(becomeLeader) }))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- do(working, func(f CatchUp) { synced <- f }, becomeLeader)
		withdraw(errEnded)
	}()
	select {
	case e.lock.catchUp = <-synced:
		e.campaign(candidate, elector)
	case <-candidate.Done():
	}
	lost := e.whyLost(ctx, candidate)
	e.fence.Close()
	stopWork()
	var late <-chan time.Time // never, when nobody else can hold the Lease
	if lost != nil {
		late = time.After(e.lease.LeaseDuration - e.lease.RenewDeadline)
	}
	select {
	case err := <-ended:
		e.giveUp()
		return errors.Join(lost, err)
	case <-late:
		return fmt.Errorf("%w; its work did not stop in time", lost)
	}
}

// campaign takes the Lease and renews it until the candidate withdraws or has lost it. client-go's
// elector ends when a renewal doesn't succeed in time; run again, it looks at the Lease first.
func (e *Election) campaign(candidate context.Context, elector *leaderelection.LeaderElector) {
	for {
		elector.Run(candidate)
		if candidate.Err() != nil {
			return
		}
		e.log.Warn("the Lease was not renewed in time; nothing is written until it is, unless another instance has acquired it", "lease", e.lock.Describe())
	}
}

// whyLost returns why the candidate is none any more, nil when it has withdrawn.
func (e *Election) whyLost(ctx, candidate context.Context) error {
	why := context.Cause(candidate)
	if errors.Is(why, errEnded) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the Lease %s was lost: %w", e.lock.Describe(), why)
}

// giveUp lets others take the Lease at once, if this process still holds it. It comes when
// nothing is written any more.
func (e *Election) giveUp() {
	ctx, cancel := context.WithTimeout(context.Background(), e.lease.RenewDeadline)
	defer cancel()
	if err := e.lock.giveUp(ctx); err != nil {
		e.log.Warn("could not release the Lease; other instances wait until it expires", "lease", e.lock.Describe(), "err", err)
	}
}

// looksPerRetry is how often a candidate looks at the Lease in each retry period. client-go's
// elector takes a Lease that is over when it has seen no change of it for as long as it lasts, and
// looks again after once to 2.2 times its period, at random. It may see the last renewal late and
// then the end of the Lease, by 4.4 periods in all: were the period the whole of
// --leader-elect-retry-period, 2 s, that would be 8.8 s beside a Lease of 15.
const looksPerRetry = 8

// elector returns client-go's elector for the Lease. It calls onLeading when this process has become
// the holder, and when it has renewed the Lease after having been unable to. It doesn't give the
// Lease up: it would do so before the work has stopped when it couldn't renew.
func (e *Election) elector(onLeading func()) (*leaderelection.LeaderElector, error) {
	name := e.lock.Describe()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.lease.Name, Lock: e.lock,
		LeaseDuration: e.lease.LeaseDuration, RenewDeadline: e.lease.RenewDeadline, RetryPeriod: e.lease.RetryPeriod / looksPerRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				e.log.Info("leading", "lease", name)
				onLeading()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				e.leader.Store(&leader)
				if leader != e.identity {
					e.log.Info("standing by: another instance is the leader", "leader", leader, "lease", name)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up leader election: %w", err)
	}
	return elector, nil
}
