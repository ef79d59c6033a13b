package bindloop

import (
	"context"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
)

// This file makes the writes of a scheduler for a pod with claims. One nominates the pod, as schedulers do where binding
// takes further writes (KEP-5278). For each claim one protects it from deletion, and one says what is allocated and for
// whom. A claim for extended resources is created first, and the pod's status names it. The devices need not exist.

// Extended is how the names of extended resources begin that a device class backs.
const Extended = "example.com/gpu-"

// claims writes claims.
type claims struct {
	client kubernetes.Interface
	cache  resourcelisters.ResourceClaimNamespaceLister

	mu     sync.Mutex
	shared map[string]*shared // by name; guarded by mu
}

// shared is a claim that several pods may use: they write it one after the other, each the version that the one
// before has left.
type shared struct {
	mu     sync.Mutex
	newest *resourcev1.ResourceClaim // guarded by mu; nil before the first write
}

// names returns what a pod's claims are called; ok is false while some have no name.
func names(p *v1.Pod) (out []string, ok bool) {
	for i := range p.Spec.ResourceClaims {
		if n := p.Spec.ResourceClaims[i].ResourceClaimName; n != nil {
			out = append(out, *n)
		}
	}
	for _, s := range p.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil {
			out = append(out, *s.ResourceClaimName)
		}
	}
	return out, len(out) == len(p.Spec.ResourceClaims)
}

// there reports whether all claims of a pod have been made.
func (x *claims) there(p *v1.Pod) bool {
	all, ok := names(p)
	for _, n := range all {
		if _, err := x.cache.Get(n); err != nil {
			return false
		}
	}
	return ok
}

// allocate nominates a pod that has claims, and writes all of them.
func (x *claims) allocate(ctx context.Context, p *v1.Pod, node string) error {
	all, _ := names(p)
	if len(all) == 0 && !usesExtended(p) {
		return nil
	}
	if err := nominate(ctx, x.client, p, node); err != nil {
		return err
	}
	for _, n := range all {
		x.mu.Lock()
		s := x.shared[n]
		if s == nil {
			s = &shared{}
			x.shared[n] = s
		}
		x.mu.Unlock()
		if err := x.reserve(ctx, s, n, p, node); err != nil {
			return err
		}
	}
	return x.allocateExtended(ctx, p, node)
}

// reserve writes a claim for a pod.
func (x *claims) reserve(ctx context.Context, s *shared, name string, p *v1.Pod, node string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.newest
	if c == nil {
		if c, err = x.cache.Get(name); err != nil {
			return fmt.Errorf("reading a claim: %w", err)
		}
		c = c.DeepCopy()
		c.Finalizers = []string{resourcev1.Finalizer}
		if c, err = x.client.ResourceV1().ResourceClaims(p.Namespace).Update(ctx, c, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("protecting a claim: %w", err)
		}
	}
	s.newest, err = x.give(ctx, c, p, node)
	return err
}

// give writes what a claim has, and that it is reserved for a pod.
func (x *claims) give(ctx context.Context, c *resourcev1.ResourceClaim, p *v1.Pod, node string) (*resourcev1.ResourceClaim, error) {
	c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
	if c.Status.Allocation == nil {
		now := metav1.Now()
		c.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: &now, NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}}
		for i, r := range c.Spec.Devices.Requests {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{Request: r.Name, Driver: "driver.example.com", Pool: p.Name, Device: fmt.Sprint("device-", i)})
		}
	}
	out, err := x.client.ResourceV1().ResourceClaims(c.Namespace).UpdateStatus(ctx, c, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("allocating to a claim: %w", err)
	}
	return out, nil
}

// usesExtended reports whether a pod has an extended resource that a device class backs.
func usesExtended(p *v1.Pod) bool {
	for resource := range p.Spec.Containers[0].Resources.Requests {
		if strings.HasPrefix(string(resource), Extended) {
			return true
		}
	}
	return false
}

// allocateExtended makes the claim for a pod's extended resource, if it has one, and has the pod's status name
// it.
func (x *claims) allocateExtended(ctx context.Context, p *v1.Pod, node string) error {
	for resource := range p.Spec.Containers[0].Resources.Requests {
		i, ok := strings.CutPrefix(string(resource), Extended)
		if !ok {
			continue
		}
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name + "-extended", Finalizers: []string{resourcev1.Finalizer},
			Annotations:     map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}}}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "container-0-request-0",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "test-class-" + i, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
		c, err := x.client.ResourceV1().ResourceClaims(p.Namespace).Create(ctx, c, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a claim: %w", err)
		}
		if _, err := x.give(ctx, c, p, node); err != nil {
			return err
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"extendedResourceClaimStatus":{"resourceClaimName":%q,"requestMappings":[{"containerName":%q,"resourceName":%q,"requestName":"container-0-request-0"}]}}}`,
			p.UID, c.Name, p.Spec.Containers[0].Name, resource)
		if _, err := x.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("naming the claim in a pod's status: %w", err)
		}
	}
	return nil
}
