package live

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/leader"
)

// This file has what is changed by other means than the API: node groups by their provider, and
// pods that extenders bind. Nothing is embedded: a method that comes to one of the interfaces
// doesn't compile before somebody has said here whether it writes.

// within makes a call that changes something while a fence is open.
func within(ctx context.Context, fence *leader.Fence, call func(context.Context) error) error {
	ctx, leave, err := fence.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return call(ctx)
}

// fencedProvider is a provider whose groups are changed while the fence is open.
type fencedProvider struct {
	provider nodegroup.Provider
	fence    *leader.Fence
}

var _ nodegroup.Provider = (*fencedProvider)(nil)

// Groups implements nodegroup.Provider.
func (p *fencedProvider) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	return p.provider.Groups(ctx)
}

// GroupOf implements nodegroup.Provider.
func (p *fencedProvider) GroupOf(node *v1.Node) string { return p.provider.GroupOf(node) }

// IncreaseSize implements nodegroup.Provider.
func (p *fencedProvider) IncreaseSize(ctx context.Context, group string, delta int) error {
	return within(ctx, p.fence, func(ctx context.Context) error { return p.provider.IncreaseSize(ctx, group, delta) })
}

// DeleteNodes implements nodegroup.Provider.
func (p *fencedProvider) DeleteNodes(ctx context.Context, group string, instances []nodegroup.Instance) error {
	return within(ctx, p.fence, func(ctx context.Context) error { return p.provider.DeleteNodes(ctx, group, instances) })
}

// DecreaseTargetSize implements nodegroup.Provider.
func (p *fencedProvider) DecreaseTargetSize(ctx context.Context, group string, delta int) error {
	return within(ctx, p.fence, func(ctx context.Context) error { return p.provider.DecreaseTargetSize(ctx, group, delta) })
}

// fencedExtenders are extenders that bind while the fence is open. What they are asked changes
// nothing.
type fencedExtenders struct {
	Extenders
	fence *leader.Fence
}

// Bind implements Extenders.
func (e *fencedExtenders) Bind(ctx context.Context, bind step.Bind) error {
	return within(ctx, e.fence, func(ctx context.Context) error { return e.Extenders.Bind(ctx, bind) })
}
