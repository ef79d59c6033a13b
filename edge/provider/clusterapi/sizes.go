package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// This file makes groups larger and smaller, through the scale subresource. What must hold: a size
// is written on the condition that nobody has written the object since it was read, so that nothing
// is ordered or given up twice; Machines are marked before the size is lowered, and the marks are
// taken back when it isn't lowered. When nobody knows whether it was, they stay: without them
// Cluster API would choose others.

const (
	// callWithin is how long one call to the API server may take.
	callWithin = 30 * time.Second
	// resizeTries is how often a size is read and written before its change is given up.
	resizeTries = 5
)

// group returns a group as it was read last.
func (p *Provider) group(id string) (*group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.known.groups[id]; g != nil {
		return g, nil
	}
	return nil, errors.New("no such group")
}

// IncreaseSize implements nodegroup.Provider.
func (p *Provider) IncreaseSize(ctx context.Context, id string, delta int) error {
	g, err := p.group(id)
	if err == nil && delta <= 0 {
		err = errors.New("it must be at least 1")
	}
	if err == nil {
		err = p.resize(ctx, g, func(size int) (int, error) {
			if size+delta > g.Max {
				return 0, fmt.Errorf("its size is %d and its maximum %d", size, g.Max)
			}
			return size + delta, nil
		})
	}
	if err != nil {
		return fmt.Errorf("increasing node group %s by %d: %w", id, delta, err)
	}
	return nil
}

// DecreaseTargetSize implements nodegroup.Provider.
func (p *Provider) DecreaseTargetSize(ctx context.Context, id string, delta int) error {
	g, err := p.group(id)
	if err == nil && delta <= 0 {
		err = errors.New("it must be at least 1")
	}
	if err == nil {
		err = p.resize(ctx, g, func(size int) (int, error) {
			if exist := len(p.current(g).Instances); size-delta < exist {
				return 0, fmt.Errorf("its size is %d, and %d instances exist", size, exist)
			}
			return size - delta, nil
		})
	}
	if err != nil {
		return fmt.Errorf("decreasing node group %s by %d: %w", id, delta, err)
	}
	return nil
}

// DeleteNodes implements nodegroup.Provider. Either all go or none does, as far as is known.
func (p *Provider) DeleteNodes(ctx context.Context, id string, instances []nodegroup.Instance) error {
	g, err := p.group(id)
	if err == nil {
		err = p.deleteMachines(ctx, g, instances)
	}
	if err != nil {
		return fmt.Errorf("deleting %d nodes of group %s: %w", len(instances), id, err)
	}
	return nil
}

// deleteMachines marks the Machines, lowers the size by as many, and takes the marks back when the size
// wasn't lowered. Machines that are gone or going aren't counted: to lower the size for them as well would
// cost another node. When the marks can't be taken back either, the error says so: a later, unrelated
// scale-down would remove these Machines first.
func (p *Provider) deleteMachines(ctx context.Context, g *group, instances []nodegroup.Instance) error {
	going, err := p.machinesOf(g, instances)
	if err != nil {
		return err
	}
	var marked []*machine
	for _, m := range going {
		var there bool
		if there, err = p.mark(ctx, m, p.now().UTC().Format(time.RFC3339)); err != nil {
			err = fmt.Errorf("marking %s: %w", m.key(), err)
			break
		}
		if there {
			marked = append(marked, m)
		}
	}
	if err == nil && len(marked) > 0 {
		err = p.resize(ctx, g, func(size int) (int, error) { return max(size-len(marked), 0), nil })
	}
	var doubt *nodegroup.UnknownOutcome
	if err == nil || errors.As(err, &doubt) {
		return err
	}
	for _, m := range marked {
		if _, failed := p.mark(ctx, m, nil); failed != nil {
			err = fmt.Errorf("%w; and %s stays marked for deletion: %w", err, m.key(), failed)
		}
	}
	return err
}

// machinesOf returns the Machines of instances, without those that are going already. An instance
// that no Machine is can't be chosen: the infrastructure of a MachinePool without Machines removes
// which it likes.
func (p *Provider) machinesOf(g *group, instances []nodegroup.Instance) ([]*machine, error) {
	now := p.current(g)
	leaving := now.leaving(p.keys.deleteMachine)
	var out []*machine
	for _, in := range instances {
		m := now.machine(in)
		switch {
		case m != nil && !leaving[m]:
			out = append(out, m)
		case m == nil && now.lists(in):
			return nil, fmt.Errorf("instance %s has no Machine, so it can't be selected for deletion", in.ID)
		}
	}
	return out, nil
}

// current returns a group as the caches have it now, and as it was when it isn't there any more.
func (p *Provider) current(g *group) *group {
	for _, x := range p.read() {
		if x.ID == g.ID {
			return x
		}
	}
	return g
}

// machine returns the Machine of an instance, nil for none.
func (g *group) machine(in nodegroup.Instance) *machine {
	for _, m := range g.machines {
		if in.ID != "" && (m.id() == in.ID || m.key() == in.ID) {
			return m
		}
	}
	for _, m := range g.machines { // the node or the Machine may be without a provider ID
		if in.Node != "" && m.Status.NodeRef.Name == in.Node && (in.ID == "" || m.Spec.ProviderID == "") {
			return m
		}
	}
	return nil
}

// lists reports whether the group lists an instance.
func (g *group) lists(in nodegroup.Instance) bool {
	for _, x := range g.Instances {
		if in.ID != "" && x.ID == in.ID || in.Node != "" && x.Node == in.Node {
			return true
		}
	}
	for _, ref := range g.object.Status.NodeRefs {
		if in.Node != "" && ref.Name == in.Node {
			return true
		}
	}
	return false
}

// mark sets the annotation by which Cluster API deletes a Machine before others, or takes it away
// for a value of nil. there is false when the Machine is gone. The UID in the patch makes the API
// server refuse it for another Machine of the same name.
func (p *Provider) mark(ctx context.Context, m *machine, value any) (there bool, err error) {
	_, version, err := p.watching.client()
	if err != nil {
		return false, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "annotations": map[string]any{p.keys.deleteMachine: value}}})
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	_, err = p.clients.dynamic.Resource(version.WithResource(machines)).Namespace(m.Namespace).Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// resize changes the size of a group to what wanted returns for the one that it has. After an
// answer that was lost it looks whether the size is the one that was written.
//
// The error is an UnknownOutcome when that can't be found out: then the caller must count the change as
// possibly made, and not order again. wanted may be called several times; its error ends the tries.
func (p *Provider) resize(ctx context.Context, g *group, wanted func(size int) (int, error)) error {
	scales, version, err := p.watching.client()
	if err != nil {
		return err
	}
	resource := schema.GroupResource{Group: version.Group, Resource: g.resource}
	client := scales.Scales(g.object.Namespace)
	written := -1  // the size of an update whose outcome isn't known
	var last error // of an update
	for try := range resizeTries + 1 {
		err = within(ctx, func(ctx context.Context) error {
			s, err := client.Get(ctx, resource, g.object.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if written >= 0 && s.Spec.Replicas == int32(written) {
				return nil
			}
			written = -1
			if try == resizeTries {
				return &final{last}
			}
			size, err := wanted(int(s.Spec.Replicas))
			if err != nil || size == int(s.Spec.Replicas) {
				return &final{err}
			}
			s.Spec.Replicas = int32(size)
			_, err = client.Update(ctx, resource, &autoscalingv1.Scale{TypeMeta: s.TypeMeta, ObjectMeta: s.ObjectMeta, Spec: s.Spec}, metav1.UpdateOptions{})
			if last = err; err != nil && !refused(err) {
				written = size
			}
			return err
		})
		var done *final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &done):
			return done.err
		case written < 0 && (ctx.Err() != nil || refused(err) && !apierrors.IsConflict(err)):
			return err
		case ctx.Err() != nil:
			return &nodegroup.UnknownOutcome{Err: err}
		}
	}
	if written >= 0 {
		return &nodegroup.UnknownOutcome{Err: err}
	}
	return err
}

// final is an outcome that another try wouldn't change; err may be nil.
type final struct{ err error }

// Error implements error.
func (f *final) Error() string { return fmt.Sprint(f.err) }

// within makes a call that may take callWithin.
func within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return call(ctx)
}

// refused reports whether the API server has answered that it doesn't do what it was asked for: it
// has changed nothing.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500
}
