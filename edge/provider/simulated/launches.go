package simulated

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Run calls Advance every period, until the context ends.
func (p *Provider) Run(ctx context.Context, period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.Advance(ctx)
		}
	}
}

// dueInstance is an instance to register, or when it is registered to make ready.
type dueInstance struct {
	group *group
	name  string
	*instance
}

// Advance registers the nodes whose launch is due and makes those ready whose startup is
// over. What fails is tried again by the next call. Node objects of deleted
// instances that are still there are deleted first.
func (p *Provider) Advance(ctx context.Context) {
	p.mu.Lock()
	orphans := slices.Sorted(maps.Keys(p.orphans))
	p.mu.Unlock()
	p.removeNodes(ctx, orphans)
	each(p.due(), func(d dueInstance) { p.advance(ctx, d) })
}

// advance makes the next call for an instance, and records its outcome.
func (p *Provider) advance(ctx context.Context, d dueInstance) {
	var err error
	if d.registered {
		err = p.makeReady(ctx, d.name)
	} else {
		err = p.register(ctx, d.group, d.name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case d.group.instances[d.name] == nil: // it was deleted meanwhile
		p.orphans[d.name] = true
	case apierrors.IsNotFound(err): // somebody deleted the node
		d.group.forget(d.name)
	case err != nil:
		p.log.Info("failed to update a simulated node; retrying", "node", d.name, "err", err)
	case d.registered:
		d.ready = true
	default:
		d.registered = true
	}
}

// maxCalls is how many calls to the API are under way at a time for one call of the provider. One
// by one, the deletion of some hundred nodes would outlast its caller's deadline on a busy machine.
const maxCalls = 50

// each calls do for all items, maxCalls at a time, and returns when all calls have returned.
func each[T any](items []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(maxCalls)
	for _, item := range items {
		group.Go(func() error { do(item); return nil })
	}
	_ = group.Wait() // do returns no error
}

// removeNodes deletes the Node objects of instances that were deleted. Nobody else deletes them:
// those that can't be deleted now stay orphans, and the next Advance tries again.
func (p *Provider) removeNodes(ctx context.Context, names []string) {
	each(names, func(name string) {
		if err := p.api.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			p.log.Info("failed to delete the node of a deleted instance; retrying", "node", name, "err", err)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.orphans, name)
	})
}

// due returns the instances that there is something to do for, by name, and forgets
// those whose launch has failed.
func (p *Provider) due() (out []dueInstance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, id := range p.ids {
		g := p.groups[id]
		for name, i := range g.instances { // sorted below
			launched := !now.Before(i.launchAt)
			switch {
			case !i.registered && launched && i.fails:
				g.forget(name)
				p.log.Info("a simulated launch failed", "group", id, "node", name)
			case !i.registered && launched, i.registered && !i.ready && !now.Before(i.readyAt):
				out = append(out, dueInstance{g, name, i})
			}
		}
	}
	slices.SortFunc(out, func(a, b dueInstance) int { return strings.Compare(a.name, b.name) })
	return out
}

// register creates the node's object. One that exists already was created by a call
// whose answer was lost.
func (p *Provider) register(ctx context.Context, g *group, name string) error {
	_, err := p.api.Create(ctx, g.cfg.NewNode(name), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// makeReady writes the node's Ready condition, once: keeping it up is the kubelet's.
func (p *Provider) makeReady(ctx context.Context, name string) error {
	now := metav1.NewTime(p.now())
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated node is ready",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	_, err = p.api.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
