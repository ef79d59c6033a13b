package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/berthproject/berth/core/step"
)

// This file has binds wait for the binding conditions of devices (KEP-5007): a driver sets them when
// a device is attached to the node, or can't be.

var (
	errDeviceTimeout = errors.New("device binding timeout")
	errDeviceFailed  = errors.New("device binding failed")
)

// awaitConditions returns nil when all devices of a bind are ready. It fails when a device can't become
// ready, and when the time since its allocation is over.
func (b *deviceBinder) awaitConditions(ctx context.Context, p *claimsOfBind) error {
	drivers, conditional := driversOf(p)
	if len(conditional) == 0 {
		return nil
	}
	bind := p.bind
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: bind.Namespace, Name: bind.Name, UID: bind.UID}}
	b.tell(step.SchedulingEvent(bind.Profile, pod, "BindingConditionsPending", "Scheduling", "waiting for binding conditions for device on node "+bind.Node))
	began := time.Now()
	err := wait.PollUntilContextTimeout(ctx, b.period, bind.DeviceTimeout, true, func(context.Context) (bool, error) { return b.allReady(p) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", errDeviceTimeout, err)
	}
	status := devicesReady
	switch {
	case errors.Is(err, errDeviceTimeout):
		status = devicesTimedOut
	case errors.Is(err, errDeviceFailed):
		status = devicesFailed
	case err != nil:
		status = devicesError
	}
	b.watcher.DevicesAwaited(bind.Profile, drivers, conditional, status, time.Since(began))
	return err
}

// driversOf returns the driver of each of a bind's devices, and of each that has binding conditions.
func driversOf(p *claimsOfBind) (drivers, conditional []string) {
	for _, c := range p.touched {
		if c.Status.Allocation == nil {
			continue
		}
		for i := range c.Status.Allocation.Devices.Results {
			r := &c.Status.Allocation.Devices.Results[i]
			drivers = append(drivers, r.Driver)
			if len(r.BindingConditions) > 0 {
				conditional = append(conditional, r.Driver)
			}
		}
	}
	return drivers, conditional
}

// allReady reports whether the devices of all claims are ready; an error says that they won't be.
func (b *deviceBinder) allReady(p *claimsOfBind) (bool, error) {
	for _, touched := range p.touched {
		c := b.newest(touched)
		if c == nil || !reservedFor(c, p.bind.UID) {
			return false, fmt.Errorf("claim %s/%s is no longer reserved for the pod", touched.Namespace, touched.Name)
		}
		ready, err := devicesAreReady(c)
		switch {
		case err != nil:
			return false, err
		case ready:
		case overdue(c, p.bind.DeviceTimeout):
			return false, fmt.Errorf("%w: claim=%s", errDeviceTimeout, c.Name)
		default:
			return false, nil
		}
	}
	return true, nil
}

// newest returns a claim as the cache has it, unless that is older than what was written; nil when it
// is gone.
func (b *deviceBinder) newest(written *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c := b.claims.get(written.Namespace, written.Name)
	if c == nil || c.UID != written.UID {
		if !b.claims.reached(written.ResourceVersion) {
			return written
		}
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(c.ResourceVersion, written.ResourceVersion); err == nil && order < 0 {
		return written
	}
	return c
}

// devicesAreReady reports whether all binding conditions of a claim's devices are true; an error says
// that one of the failure conditions is.
func devicesAreReady(c *resourcev1.ResourceClaim) (bool, error) {
	if c.Status.Allocation == nil {
		return false, nil
	}
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if len(r.BindingConditions) == 0 {
			continue
		}
		at := slices.IndexFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
			return d.Device == r.Device && d.Driver == r.Driver && d.Pool == r.Pool
		})
		if at < 0 {
			return false, nil
		}
		conditions := c.Status.Devices[at].Conditions
		for _, name := range r.BindingFailureConditions {
			if f := meta.FindStatusCondition(conditions, name); f != nil && f.Status == metav1.ConditionTrue {
				return false, fmt.Errorf("%w: claim=%s, reason=%s, message=%q", errDeviceFailed, c.Name, f.Reason, f.Message)
			}
		}
		if slices.ContainsFunc(r.BindingConditions, func(name string) bool { return !meta.IsStatusConditionTrue(conditions, name) }) {
			return false, nil
		}
	}
	return true, nil
}

// overdue reports whether the devices of a claim with binding conditions were allocated too long ago.
func overdue(c *resourcev1.ResourceClaim, timeout time.Duration) bool {
	a := c.Status.Allocation
	if a == nil || a.AllocationTimestamp == nil || !a.AllocationTimestamp.Add(timeout).Before(time.Now()) {
		return false
	}
	return slices.ContainsFunc(a.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool { return len(r.BindingConditions) > 0 })
}
