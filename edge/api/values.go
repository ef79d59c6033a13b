package api

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file writes values as the API has them: amounts as Kubernetes quantities in the unit of their resource, times
// in UTC, durations to the millisecond, and nothing where something isn't known.

// quantity returns an amount in the base unit of a resource as Kubernetes writes it: thousandths of a core as 250m, bytes as
// 16Gi, and whatever else there is as a number of pieces.
func quantity(name v1.ResourceName, amount int64) resource.Quantity {
	switch name {
	case v1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourceStorage:
		return *resource.NewQuantity(amount, resource.BinarySI)
	}
	return *resource.NewQuantity(amount, resource.DecimalSI)
}

// use returns how much of a resource is requested. The share is of what is allocatable, and may exceed 1 on a node that
// shrank.
func use(name v1.ResourceName, u explain.Use) v1alpha1.ResourceUse {
	return v1alpha1.ResourceUse{Resource: string(name), Requested: quantity(name, u.Requested), Allocatable: quantity(name, u.Allocatable), Share: v1alpha1.Share(u.Share())}
}

// timeOf returns a time of an explanation in UTC, zero for nil: the JSON leaves it out then (omitzero).
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// duration returns a duration as Kubernetes writes it, such as 1m2.9s.
func duration(d time.Duration) v1alpha1.Duration {
	// Below a millisecond it is noise, and a dozen digits.
	return metav1.Duration{Duration: d.Round(time.Millisecond)}
}

// seconds returns a duration that is given in seconds, as the core's statistics have it.
func seconds(s float64) v1alpha1.Duration { return duration(time.Duration(s * float64(time.Second))) }

// expectation returns when an ordered node should come: likely is p50 and late p90 of the launches of its group so far, both
// zero before the first. It is nil when nothing is ordered.
func expectation(e *explain.Expectation) *v1alpha1.Expectation {
	if e == nil || e.Ordered == nil {
		return nil
	}
	return &v1alpha1.Expectation{Ordered: timeOf(e.Ordered), Likely: timeOf(e.Likely), Late: timeOf(e.Late), Launches: e.Launches, GivenUp: timeOf(e.GivenUp)}
}

// owner returns the controller of a pod, nil for none. Of a ReplicaSet with the hash of a pod template in its
// name it is the Deployment that has made it.
func owner(obj *v1.Pod) *v1alpha1.Owner {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return nil
	}
	// The ReplicaSet isn't read for this: Berth doesn't watch owners of owners. The name alone wouldn't do, but with the
	// label, which only the controller of Deployments sets, it does.
	if hash := obj.Labels["pod-template-hash"]; ref.Kind == "ReplicaSet" && hash != "" {
		if n := len(ref.Name) - len(hash) - 1; n > 0 && ref.Name[n:] == "-"+hash {
			return &v1alpha1.Owner{Kind: "Deployment", Name: ref.Name[:n]}
		}
	}
	return &v1alpha1.Owner{Kind: ref.Kind, Name: ref.Name}
}
