package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/berthproject/berth/core/step"
)

// deviceBinder has the resource claims of a pod allocated and reserved for it before the pod is bound,
// as PreBind of kube-scheduler's DynamicResources does, and undoes it when the pod isn't bound
// after all. What must hold:
//
//   - It writes an allocation only to a claim that has none, and to the version of it that it has read.
//     Two pods that share a claim bring the same devices: whichever comes second adds its reservation.
//   - Binds that share a claim write it one after the other, and one for all that wait (sharedClaims).
//   - A claim that was written, or may have been, is taken back unless the pod is bound. A claim that is
//     reserved for nobody has no devices then, as the resource claim controller has it.
//   - The bind's outcome comes after the core was told of what was written (settle). Until then it
//     holds the devices for the pod, and so nobody else gets devices that the API has as taken.
type deviceBinder struct {
	client  kubernetes.Interface
	claims  claimCache
	tell    func(step.Event) // publishes an event
	watcher DeviceWatcher
	period  time.Duration // between two looks at binding conditions
	patient time.Duration // for how long the cache is waited for
	shared  sharedClaims
	calls   chan struct{} // has a token for each write of a claim that is under way
	tells   chan struct{} // has a token for each write to a pod's status: it doesn't wait for claims of other pods
}

// newDeviceBinder returns a deviceBinder. watcher may be nil.
func newDeviceBinder(client kubernetes.Interface, claims claimCache, tell func(step.Event), watcher DeviceWatcher) *deviceBinder {
	if watcher == nil {
		watcher = noDeviceWatcher{}
	}
	return &deviceBinder{client: client, claims: claims, tell: tell, watcher: watcher, period: time.Second, patient: 2 * time.Minute,
		shared: sharedClaims{turns: map[string]*claimTurn{}}, calls: make(chan struct{}, bindWorkers), tells: make(chan struct{}, bindWorkers)}
}

// noDeviceWatcher implements DeviceWatcher.
type noDeviceWatcher struct{}

// ClaimCreated implements DeviceWatcher.
func (noDeviceWatcher) ClaimCreated(error) {}

// DevicesAwaited implements DeviceWatcher.
func (noDeviceWatcher) DevicesAwaited(string, []string, []string, string, time.Duration) {}

// claimCache has the claims as the core was told of them.
type claimCache interface {
	// get returns a claim, or nil.
	get(namespace, name string) *resourcev1.ResourceClaim
	// reached reports whether the core was told of all claims up to a version.
	reached(version string) bool
}

// DeviceWatcher is told of claims that are written. Its methods are called by several goroutines.
type DeviceWatcher interface {
	// ClaimCreated reports how the creation of a claim for extended resources ended.
	ClaimCreated(err error)
	// DevicesAwaited reports how the wait for the binding conditions of a pod's devices ended: the driver
	// of each of the devices, and of each that has such conditions.
	DevicesAwaited(profile string, drivers, conditional []string, status string, took time.Duration)
}

// How a wait for binding conditions ends, in kube-scheduler's words.
const (
	devicesReady    = "success"
	devicesFailed   = "failure"
	devicesTimedOut = "timeout"
	devicesError    = "error"
)

// claimsOfBind are the claims of a bind that is under way. nil is a bind without any.
type claimsOfBind struct {
	bind *step.Bind
	// touched are the claims that were written, or may have been, as they were last read.
	touched []*resourcev1.ResourceClaim
	version string // the newest of what was written, "" for none
	turns   []*claimTurn
}

// touch remembers a claim that is going to be written, or was.
func (p *claimsOfBind) touch(c *resourcev1.ResourceClaim) {
	if order, err := resourceversion.CompareResourceVersion(c.ResourceVersion, p.version); p.version == "" || err == nil && order > 0 {
		p.version = c.ResourceVersion
	}
	if i := slices.IndexFunc(p.touched, func(t *resourcev1.ResourceClaim) bool { return t.Name == c.Name }); i >= 0 {
		p.touched[i] = c
		return
	}
	p.touched = append(p.touched, c)
}

// prepare reserves all claims of a bind, and waits until their devices are ready. When waiting ends,
// the bind has been cancelled. A write that was begun isn't cut short: whether the API server carries
// it out all the same wouldn't be known. What prepare returns is to be taken back when the pod isn't
// bound, also after an error.
func (b *deviceBinder) prepare(ctx, waiting context.Context, bind *step.Bind) (*claimsOfBind, error) {
	p := &claimsOfBind{bind: bind}
	for _, want := range bind.DeviceClaims {
		if waiting.Err() != nil {
			return p, errCancelled
		}
		if err := b.reserve(ctx, p, want); err != nil {
			return p, fmt.Errorf("reserving claim %s/%s: %w", want.Namespace, want.Name, err)
		}
		if want.UID != "" || len(bind.ExtendedResources) == 0 {
			continue
		}
		if err := b.tellPod(ctx, bind, want.Name); err != nil {
			return p, fmt.Errorf("update pod %s/%s ExtendedResourceClaimStatus: %w", bind.Namespace, bind.Name, err)
		}
	}
	return p, b.awaitConditions(waiting, p)
}

// refusal is an error that no further attempt changes.
type refusal struct{ error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// attempt calls f as the function attempt does, while few others write claims.
func (b *deviceBinder) attempt(ctx context.Context, f func() error) error {
	return attempt(ctx, whileFew(ctx, b.calls, f))
}

// whileFew returns what calls f with a token in slots, which it waits for.
func whileFew(ctx context.Context, slots chan struct{}, f func() error) func() error {
	return func() error {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-slots }()
		return f()
	}
}

// attempt calls f until it succeeds or is refused, again at once after a conflict, and for as long as
// the API server is away: an attempt without an answer may have been carried out. One that answers, but
// that it can't serve the call, is asked for giveUpAfter.
func attempt(ctx context.Context, f func() error) error {
	begun := time.Now()
	var refused error
	err := persistWhile(ctx, func(err error) bool { return away(err) && !(answered(err) && time.Since(begun) >= giveUpAfter) }, func() error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			err := f()
			if refused = nil; errors.As(err, &refusal{}) {
				refused = err
				return nil
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	return refused
}

// reserve writes a claim's allocation and reservation. After a conflict, or an attempt that may have
// been carried out, the claim is read again.
func (b *deviceBinder) reserve(ctx context.Context, p *claimsOfBind, want *resourcev1.ResourceClaim) error {
	turn := b.shared.await(p, want)
	defer turn.end()
	current := turn.newest
	if turn.newest = nil; current == nil {
		current = b.claims.get(want.Namespace, want.Name)
	}
	if current != nil && want.UID != "" && current.UID != want.UID {
		current = nil
	}
	return b.attempt(ctx, func() (err error) {
		c := current
		if current = nil; c == nil {
			if c, err = b.read(ctx, p, want); err != nil {
				return err
			}
		}
		turn.newest, err = b.write(ctx, p, want, c, func() []resourcev1.ResourceClaimConsumerReference { return b.shared.waiting(turn) })
		return err
	})
}

// read returns a claim as the API has it. One for extended resources is created; if an earlier attempt
// has done so, it is as that has left it.
func (b *deviceBinder) read(ctx context.Context, p *claimsOfBind, want *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	api := b.client.ResourceV1().ResourceClaims(want.Namespace)
	if want.UID == "" {
		made := &resourcev1.ResourceClaim{ObjectMeta: *want.ObjectMeta.DeepCopy(), Spec: want.Spec}
		made.Finalizers = []string{resourcev1.Finalizer} // it is about to get devices
		p.touch(made)
		c, err := api.Create(ctx, made, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			b.watcher.ClaimCreated(err)
			return c, err
		}
	}
	c, err := api.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, err
	case want.UID != "" && c.UID != want.UID:
		return nil, refuse("claim %s/%s got deleted in the meantime", c.Namespace, c.Name)
	case want.UID == "" && !(metav1.IsControlledBy(c, &metav1.ObjectMeta{UID: p.bind.UID}) && equality.Semantic.DeepEqual(c.Spec.Devices.Requests, want.Spec.Devices.Requests)):
		return nil, refuse("claim %s/%s exists, and was not created for this placement of the pod", c.Namespace, c.Name)
	}
	return c, nil
}

// write adds the finalizer, allocation and reservation that a claim lacks, with the reservations of others, which
// it asks for last, and returns the claim as it is then.
func (b *deviceBinder) write(ctx context.Context, p *claimsOfBind, want, c *resourcev1.ResourceClaim, others func() []resourcev1.ResourceClaimConsumerReference) (_ *resourcev1.ResourceClaim, err error) {
	api := b.client.ResourceV1().ResourceClaims(c.Namespace)
	switch {
	case c.DeletionTimestamp != nil:
		return nil, refuse("claim %s/%s got deleted in the meantime", c.Namespace, c.Name)
	case c.Status.Allocation != nil && !equality.Semantic.DeepEqual(c.Status.Allocation.Devices.Results, want.Status.Allocation.Devices.Results):
		return nil, refuse("claim %s/%s got allocated elsewhere in the meantime", c.Namespace, c.Name)
	}
	p.touch(c)
	if c.Status.Allocation != nil && reservedFor(c, p.bind.UID) {
		return c, nil
	}
	c = c.DeepCopy()
	if c.Status.Allocation == nil {
		if !slices.Contains(c.Finalizers, resourcev1.Finalizer) {
			c.Finalizers = append(c.Finalizers, resourcev1.Finalizer)
			if c, err = api.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
				return nil, err
			}
			p.touch(c)
		}
		c.Status.Allocation = want.Status.Allocation.DeepCopy()
	}
	if c.Status.Allocation.AllocationTimestamp == nil {
		now := metav1.Now()
		c.Status.Allocation.AllocationTimestamp = &now
	}
	addReservations(c, p.reference(), others())
	if c, err = api.UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	p.touch(c)
	return c, nil
}

// addReservations reserves a claim for a pod, and for as many others as a claim may be reserved for. It adds the
// pod's own reservation even to a claim without room: the API server refuses the write then, with the words
// with which it refuses kube-scheduler's, and the pod waits.
func addReservations(c *resourcev1.ResourceClaim, own resourcev1.ResourceClaimConsumerReference, others []resourcev1.ResourceClaimConsumerReference) {
	if !reservedFor(c, own.UID) {
		c.Status.ReservedFor = append(c.Status.ReservedFor, own)
	}
	for _, r := range others {
		if len(c.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize {
			return
		}
		if !reservedFor(c, r.UID) {
			c.Status.ReservedFor = append(c.Status.ReservedFor, r)
		}
	}
}

func reservedFor(c *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

// tellPod writes to a pod's status which claim has the devices of its extended resources.
func (b *deviceBinder) tellPod(ctx context.Context, bind *step.Bind, claim string) error {
	status := v1.PodExtendedResourceClaimStatus{RequestMappings: bind.ExtendedResources, ResourceClaimName: claim}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": bind.UID}, "status": map[string]any{"extendedResourceClaimStatus": status}})
	if err != nil {
		return err
	}
	return attempt(ctx, whileFew(ctx, b.tells, func() error {
		_, err := b.client.CoreV1().Pods(bind.Namespace).Patch(ctx, bind.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}))
}

// takeBack takes away from the claims of a bind what a pod has no use for that isn't bound. What is left
// after an error is the pod's, which is tried again, or the resource claim controller's when the pod is
// gone.
func (b *deviceBinder) takeBack(ctx context.Context, p *claimsOfBind) error {
	if p == nil {
		return nil
	}
	var errs []error
	for _, c := range slices.Clone(p.touched) {
		errs = append(errs, b.attempt(ctx, func() error { return b.unreserve(ctx, p, c) }))
	}
	return errors.Join(errs...)
}

// unreserve takes a pod's reservation of a claim away. The last one takes the devices with it, and a
// claim that was made for the pod goes.
func (b *deviceBinder) unreserve(ctx context.Context, p *claimsOfBind, touched *resourcev1.ResourceClaim) error {
	c, err := b.client.ResourceV1().ResourceClaims(touched.Namespace).Get(ctx, touched.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case touched.UID != "" && c.UID != touched.UID:
		return nil
	case madeFor(c, p.bind.UID):
		return deleteClaim(ctx, b.client, c)
	}
	p.touch(c)
	if !reservedFor(c, p.bind.UID) {
		return nil
	}
	c.Status.ReservedFor = slices.DeleteFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == p.bind.UID })
	if len(c.Status.ReservedFor) == 0 {
		c.Status = resourcev1.ResourceClaimStatus{}
	}
	if c, err = b.client.ResourceV1().ResourceClaims(c.Namespace).UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
		return err
	}
	p.touch(c)
	return nil
}

// madeFor reports whether a claim was made for the extended resources of a pod.
func madeFor(c *resourcev1.ResourceClaim, pod types.UID) bool {
	return c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" && metav1.IsControlledBy(c, &metav1.ObjectMeta{UID: pod})
}

// deleteClaim deletes a claim in the version that was read. Its finalizer, which keeps a claim with
// devices, is taken away first.
func deleteClaim(ctx context.Context, client kubernetes.Interface, c *resourcev1.ResourceClaim) error {
	api := client.ResourceV1().ResourceClaims(c.Namespace)
	if i := slices.Index(c.Finalizers, resourcev1.Finalizer); i >= 0 {
		var err error
		c = c.DeepCopy()
		c.Finalizers = slices.Delete(c.Finalizers, i, i+1)
		if c, err = api.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
			return ignoreNotFound(err)
		}
	}
	return ignoreNotFound(api.Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.UID}}))
}

// deallocate takes the devices away from a claim in the version that was looked at, or deletes it.
func (b *deviceBinder) deallocate(ctx context.Context, x step.Deallocation) error {
	p := &claimsOfBind{}
	api := b.client.ResourceV1().ResourceClaims(x.Namespace)
	err := b.attempt(ctx, func() error {
		c, err := api.Get(ctx, x.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && c.UID != x.UID:
			return nil
		case err != nil:
			return err
		case c.Status.Allocation == nil && !x.Delete: // by an attempt whose answer was lost
			return nil
		case x.Delete: // it is the pod's alone, and the pod isn't placed while it is there
			return deleteClaim(ctx, b.client, c)
		case c.ResourceVersion != x.Version:
			return refuse("claim %s/%s has changed in the meantime", c.Namespace, c.Name)
		}
		c.Status = resourcev1.ResourceClaimStatus{}
		if c, err = api.UpdateStatus(ctx, c, metav1.UpdateOptions{}); err == nil {
			p.touch(c)
		}
		return err
	})
	b.settle(ctx, p)
	return err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// settle returns when the core was told of what was written, or when the cache of claims has been stuck
// for long.
func (b *deviceBinder) settle(ctx context.Context, p *claimsOfBind) {
	if p == nil {
		return
	}
	defer b.shared.leave(p)
	if p.version == "" {
		return
	}
	end := time.Now().Add(b.patient)
	for !b.claims.reached(p.version) && time.Now().Before(end) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
