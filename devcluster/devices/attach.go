package devices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file attaches devices: those with binding conditions (KEP-5007) are ready for their pod only when the
// driver says so in the claim's status, some time after the scheduler has allocated them.

// Conditions of a device in a claim's status.
const (
	Attached     = "gpu.example.com/attached"
	AttachFailed = "gpu.example.com/attach-failed"
)

// Attach says of all devices that were allocated for longer than a time, and that have to be attached, that
// they are. Every so many of them, counted by the driver, can't be attached; 0 means none. A claim that
// has changed meanwhile is left to the next call.
func (d *Driver) Attach(ctx context.Context, now time.Time, after time.Duration, failEvery int, done *int) error {
	claims, err := d.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading claims: %w", err)
	}
	var errs []error
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Status.Allocation == nil || c.Status.Allocation.AllocationTimestamp == nil || now.Sub(c.Status.Allocation.AllocationTimestamp.Time) < after || !attach(c, failEvery, done) {
			continue
		}
		_, err := d.client.ResourceV1().ResourceClaims(c.Namespace).UpdateStatus(ctx, c, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("attaching the devices of claim %s/%s: %w", c.Namespace, c.Name, err))
		}
	}
	return errors.Join(errs...)
}

// attach sets the conditions of a claim's devices that have none yet, and reports whether there was one.
func attach(c *resourcev1.ResourceClaim, failEvery int, done *int) (changed bool) {
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		known := slices.ContainsFunc(c.Status.Devices, func(s resourcev1.AllocatedDeviceStatus) bool {
			return s.Driver == r.Driver && s.Pool == r.Pool && s.Device == r.Device
		})
		if r.Driver != Name || !slices.Contains(r.BindingConditions, Attached) || known {
			continue
		}
		*done++
		condition := metav1.Condition{Type: Attached, Status: metav1.ConditionTrue, Reason: "Attached", LastTransitionTime: metav1.Now()}
		if failEvery > 0 && *done%failEvery == 0 {
			condition.Type, condition.Reason = AttachFailed, "NoPort"
		}
		c.Status.Devices = append(c.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: r.Driver, Pool: r.Pool, Device: r.Device, Conditions: []metav1.Condition{condition}})
		changed = true
	}
	return changed
}
