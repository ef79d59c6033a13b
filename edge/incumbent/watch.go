package incumbent

import (
	"context"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// This file finds out whether somebody renews a Lease of another program.
//
// A Lease is live when it is seen to change, and dead when it has not changed for its whole
// duration. That is how candidates judge it in client-go's leader election: the holder's clock
// and this one's may differ by more than the 15 s that a Lease lasts, so its renewTime alone
// proves nothing. The cost is small in both cases: a live kube-scheduler renews its Lease every
// 2 s, and the answer for a dead one is remembered until the Lease changes.

const (
	// lookEvery is the time between two looks at a Lease that is watched.
	lookEvery = 500 * time.Millisecond
	// lookFor is how long reading a Lease may fail before its error is returned.
	lookFor = 15 * time.Second
	// abandoned is the age of a renewTime from which on a Lease is dead without being watched.
	// Clocks that are off by a time zone, which are the worst among those that nobody notices,
	// differ by less.
	abandoned = 24 * time.Hour
	// defaultLeaseDuration is that of kube-scheduler and of Cluster Autoscaler, for a Lease that
	// has none.
	defaultLeaseDuration = 15 * time.Second
)

// watch watches a Lease that this process never writes.
type watch struct {
	client          kubernetes.Interface
	namespace, name string
	log             *slog.Logger

	dead leaseState // the state that was last found not to be renewed, zero for none
}

// leaseState is what a renewal or another holder changes of a Lease. Labels and annotations, which
// anybody may change, are not in it.
type leaseState struct {
	holder            string // "" for a Lease that was given up, and for none
	renewed, acquired int64  // in microseconds, 0 for a time that the Lease doesn't have
	transitions       int32
	duration          time.Duration
}

// String returns the Lease as NAMESPACE/NAME.
func (w *watch) String() string { return w.namespace + "/" + w.name }

// holder returns who holds the Lease and renews it, "" for nobody. It returns within the time
// between two renewals when somebody does, and within the duration of the Lease otherwise. The
// error is that of the API server; it is Forbidden when the right to get the Lease is missing.
func (w *watch) holder(ctx context.Context) (string, error) {
	var first leaseState // as the Lease was when it was read first
	var since time.Time  // when that was
	read := time.Now()   // when the Lease was read last
	for {
		s, err := w.read(ctx)
		now := time.Now()
		switch {
		case apierrors.IsForbidden(err) || err != nil && now.Sub(read) >= lookFor:
			return "", err
		case err != nil: // the next look may succeed
		case s.holder == "" || s == w.dead || s.renewed != 0 && now.Sub(time.UnixMicro(s.renewed)) > abandoned:
			return "", nil
		case first == leaseState{}:
			first, since = s, now
			w.log.Info("watching whether a Lease is renewed", "lease", w.String(), "holder", s.holder, "forAtMost", s.duration)
		case s != first:
			return s.holder, nil
		case now.Sub(since) >= s.duration:
			w.dead = s
			return "", nil
		}
		if err == nil {
			read = now
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// read returns the state of the Lease, the zero state when there is none.
func (w *watch) read(ctx context.Context) (leaseState, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor/3)
	defer cancel()
	l, err := w.client.CoordinationV1().Leases(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return leaseState{}, nil
	}
	if err != nil {
		return leaseState{}, err
	}
	return stateOf(&l.Spec), nil
}

// stateOf returns what a renewal changes. A Lease without a duration has
// defaultLeaseDuration.
func stateOf(l *coordinationv1.LeaseSpec) leaseState {
	s := leaseState{holder: ptr.Deref(l.HolderIdentity, ""), transitions: ptr.Deref(l.LeaseTransitions, 0),
		duration: time.Duration(ptr.Deref(l.LeaseDurationSeconds, 0)) * time.Second}
	if s.duration <= 0 {
		s.duration = defaultLeaseDuration
	}
	if l.RenewTime != nil {
		s.renewed = l.RenewTime.UnixMicro()
	}
	if l.AcquireTime != nil {
		s.acquired = l.AcquireTime.UnixMicro()
	}
	return s
}
