package leader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berthproject/berth/config"
)

// This file is the Lease: what client-go's elector reads and writes of it, what the fence
// learns from that, and whether this process may use it at all.

// NewClient returns the client for the Lease. A call that hangs is given up in time for
// another one before the renew deadline, as kube-scheduler does.
func NewClient(base *rest.Config, lease config.LeaderElection) (kubernetes.Interface, error) {
	rc := rest.CopyConfig(base)
	rc.Timeout = lease.RenewDeadline / 2
	rc.QPS, rc.Burst = 0, 0 // client-go's defaults, and a limiter of its own
	return kubernetes.NewForConfig(rc)
}

// lock is the Lease as client-go's elector uses it. Each renewal that succeeds lets this
// process write for a while. When this process has held the Lease and finds that it isn't
// named there any more, the Lease is lost for good, though nobody may hold it now: somebody
// else may have decided meanwhile. The elector would take it again and go on.
type lock struct {
	resourcelock.Interface
	lease *resourcelock.LeaseLock // the same
	fence *Fence
	valid time.Duration // how long a renewal lets this process write
	every time.Duration // the holder renews the Lease as often as this, however often it is asked to
	lost  context.CancelCauseFunc
	// held and renewed are of the elector's goroutine: this process has held the Lease, and the last
	// call that named it as the holder began then.
	held    bool
	renewed time.Time
	failed  time.Time // when the last call did, zero when it didn't; of the elector's goroutine

	// catchUp comes before this process takes the Lease from another holder; nil for nothing. It
	// begins when the holder writes no more, though its Lease isn't over yet: quiet after the last
	// renewal. What it finds counts while the Lease stays as it was.
	catchUp CatchUp
	quiet   time.Duration
	seen    []byte    // the Lease as it was read last, of another holder; of the elector's goroutine
	since   time.Time // from when on it was that; of the elector's goroutine
	check   *check    // the last one for it, nil for none yet; of the elector's goroutine

	called atomic.Pointer[time.Time] // when the last call ended, nil for none yet
	// denied is why the API server last refused this process the Lease, nil when it didn't.
	denied atomic.Pointer[error]
}

func newLock(client kubernetes.Interface, lease config.LeaderElection, identity string, fence *Fence) *lock {
	l := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	return &lock{fence: fence, valid: lease.RenewDeadline, every: lease.RetryPeriod, quiet: (lease.RenewDeadline + lease.LeaseDuration) / 2, Interface: l, lease: l}
}

// Labels of the Lease, by which kubectl berth finds its holder (edge/reach). Each holder sets
// them all: a value may be from another one otherwise.
const (
	NamespaceLabel   = "berth.dev/namespace"   // of the holder's pod, "" when it isn't known
	PortLabel        = "berth.dev/port"        // where it serves, "0" for nowhere
	CertificateLabel = "berth.dev/certificate" // fingerprint of what it serves with, "" for a certificate from a file, which may be renewed
)

// serveAt makes the Lease say where this process serves, from when it becomes the holder. It is to
// be called before the election.
func (l *lock) serveAt(namespace string, port int, certificate []byte) {
	l.lease.Labels = map[string]string{NamespaceLabel: namespace, PortLabel: strconv.Itoa(port), CertificateLabel: ""}
	if certificate != nil {
		l.lease.Labels[CertificateLabel] = Fingerprint(certificate)
	}
}

// Fingerprint identifies a certificate, given in DER, in so few letters that it may be a label.
func Fingerprint(der []byte) string {
	sum := sha256.Sum224(der)
	return hex.EncodeToString(sum[:])
}

var errLeaseLost = errors.New("the Lease was lost")

// Get implements resourcelock.Interface. The holder looks at once when a renewal has failed, while it
// may still write.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if !l.held || !l.fence.Open() {
		l.rest(ctx)
	}
	record, raw, err := l.Interface.Get(ctx)
	l.note(err)
	if err == nil && l.held && record.HolderIdentity != l.Identity() {
		l.lose(fmt.Errorf("it is now held by %q", record.HolderIdentity))
		return nil, nil, errLeaseLost
	}
	if err == nil && !l.held {
		l.see(ctx, raw)
	}
	return record, raw, err
}

// check is a CatchUp that is under way or has ended.
type check struct {
	ended chan struct{} // closed when err is set
	err   error
}

// catchUpFor is how long the caches may take to catch up. They are asked again when the elector
// tries again.
const catchUpFor = 5 * time.Second

// see notes how the Lease of another holder is, and begins to catch up when that one has been
// silent for so long that it writes no more.
func (l *lock) see(ctx context.Context, raw []byte) {
	if !bytes.Equal(raw, l.seen) {
		l.seen, l.since, l.check = raw, time.Now(), nil
	}
	if l.check == nil && time.Since(l.since) >= l.quiet {
		l.begin(ctx)
	}
}

// begin starts to catch up in a goroutine of its own; the elector goes on meanwhile. Without anything to
// catch up with it does nothing.
func (l *lock) begin(ctx context.Context) {
	if l.catchUp == nil {
		return
	}
	c := &check{ended: make(chan struct{})}
	l.check = c
	go func() {
		defer close(c.ended)
		ctx, cancel := context.WithTimeoutCause(ctx, catchUpFor, fmt.Errorf("not within %s", catchUpFor))
		defer cancel()
		c.err = l.catchUp(ctx)
	}()
}

// caughtUp returns nil when this process knows what the holder before has written.
func (l *lock) caughtUp(ctx context.Context) error {
	if l.check == nil {
		l.begin(ctx)
	}
	if l.check == nil {
		return nil
	}
	<-l.check.ended
	err := l.check.err
	if err != nil { // the next attempt asks again
		l.check, l.failed = nil, time.Now()
	}
	return err
}

// Create implements resourcelock.Interface. Nobody has led where there is no Lease, unless it was
// there before.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.held {
		l.lose(errors.New("it was deleted"))
		return errLeaseLost
	}
	if l.seen != nil {
		if err := l.caughtUp(ctx); err != nil {
			return err
		}
	}
	return l.write(func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface. It fails when the Lease isn't as it was read last. The
// elector asks the holder to renew as often as a candidate looks; what comes before a renewal is
// due is left out. Who takes the Lease over catches up first.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.held && time.Since(l.renewed) < l.every-l.every/looksPerRetry/2 {
		return nil
	}
	l.rest(ctx)
	if !l.held {
		if err := l.caughtUp(ctx); err != nil {
			return err
		}
	}
	return l.write(func() error { return l.Interface.Update(ctx, record) })
}

// write makes a call that names this process as the holder. The fence counts from before the
// call: others count from when they see what it has written.
func (l *lock) write(call func() error) error {
	began := time.Now()
	err := call()
	l.note(err)
	if err == nil {
		l.held, l.renewed = true, began
		l.fence.Renew(began, l.valid)
	}
	return err
}

// lose makes this process write no more, and ends its election.
func (l *lock) lose(why error) {
	l.fence.Close()
	l.lost(why)
}

// giveUp empties the Lease if this process still holds it.
func (l *lock) giveUp(ctx context.Context) error {
	if !l.held {
		return nil
	}
	record, _, err := l.Interface.Get(ctx)
	if err != nil || record.HolderIdentity != l.Identity() {
		return err
	}
	now := metav1.Now()
	return l.Interface.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now})
}

// rest waits, when the last call has failed, until a retry period has passed since: an API server
// that is away or refuses is called, and the log told, no more often than client-go would do it.
// The elector has read the clock before, so it takes a Lease too late rather than too soon.
func (l *lock) rest(ctx context.Context) {
	wait := l.every - time.Since(l.failed)
	if l.failed.IsZero() || wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// note remembers when a call has ended, whether it has failed, and whether the API server refuses
// this process the Lease. A call that somebody else was faster than hasn't failed.
func (l *lock) note(err error) {
	now := time.Now()
	l.called.Store(&now)
	l.failed = time.Time{}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		l.failed = now
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		l.denied.Store(&err)
	} else {
		l.denied.Store(nil)
	}
}

// usable returns nil unless the API server refuses this process the Lease.
func (l *lock) usable() error {
	if err := l.denied.Load(); err != nil {
		return *err
	}
	return nil
}

// MayLead asks the API server whether this process may use the Lease. An error says that it
// may not. When the API server doesn't say, nil is returned: the election shows it.
func MayLead(ctx context.Context, client kubernetes.Interface, lease config.LeaderElection) error {
	verbs := []string{"get", "update"}
	_, err := client.CoordinationV1().Leases(lease.Namespace).Get(ctx, lease.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return refused(lease, "get", err)
	case apierrors.IsNotFound(err):
		verbs = append(verbs, "create")
	}
	for _, verb := range verbs {
		attributes := &authorizationv1.ResourceAttributes{Group: coordinationv1.GroupName, Resource: "leases", Namespace: lease.Namespace, Verb: verb}
		if verb != "create" { // of which the API server's authorizer isn't told the name
			attributes.Name = lease.Name
		}
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			why := review.Status.Reason
			if why == "" {
				why = "no RBAC rule allows it"
			}
			return refused(lease, verb, errors.New(why))
		}
	}
	return nil
}

// refused words that a verb on the Lease isn't allowed.
func refused(lease config.LeaderElection, verb string, why error) error {
	return fmt.Errorf("the Lease %s/%s can't be used for leader election: not authorized to %s it: %w; "+
		"allow get, update and create of leases in namespace %[1]s with a Role (the chart does so for the Lease in its schedulerConfiguration), or set another one in leaderElection of --config",
		lease.Namespace, lease.Name, verb, why)
}
