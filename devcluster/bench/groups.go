package bench

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/devcluster/api"
)

// This file has the pod groups of the cases. They are there before the pods, as in scheduler_perf, and the
// control plane serves them only if a case that was chosen has some.

// grouping says which pod groups the measured pods are members of: the i-th pod of group i/size.
type grouping struct {
	size int
	// gang says that all members must be placed for any to be; otherwise the policy is basic.
	gang     bool
	topology string // the label of which the nodes of a group have one value; "" for none
}

// rackLabel is a label of nodes of which 100 have one value.
const rackLabel = "topology.kubernetes.io/rack"

func racked(i, _ int, n *v1.Node) { n.Labels[rackLabel] = fmt.Sprint("rack-", i/100) }

// small returns the i-th pod of scheduler_perf's pod groups.
func small(i int) *v1.Pod {
	p := light(i)
	p.Spec.Containers[0].Resources = requests("100m", "100Mi")
	return p
}

func groupName(i int) string { return fmt.Sprintf("group-%05d", i) }

// torn returns a pod that has to be beside pods of a colour, and may not be.
func torn(p *v1.Pod) *v1.Pod {
	near := together(p, "blue", inChurn).Spec.Affinity.PodAffinity
	apart := apart(p, "blue", inChurn).Spec.Affinity.PodAntiAffinity // which replaces what together has set
	near.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = v1.LabelHostname
	p.Labels, p.Spec.Affinity, p.Spec.PriorityClassName = nil, &v1.Affinity{PodAffinity: near, PodAntiAffinity: apart}, highPriority
	return p
}

func inChurn(t *v1.PodAffinityTerm) { t.Namespaces = []string{churning} }

// stuckGang is the name of the group of pods that are there before and are a gang.
const stuckGang = "group-stuck"

// createStuck creates the group of pods that are there before and wait, if they are a gang.
func (b *bench) createStuck(ctx context.Context, x standing, namespace string) error {
	if !x.gang {
		return nil
	}
	o := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: stuckGang}}
	o.Spec.PriorityClassName = x.shape(0).Spec.PriorityClassName
	o.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(x.count(b.o.Size))} //nolint:gosec // so many pods are created
	if _, err := b.client.SchedulingV1beta1().PodGroups(namespace).Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a pod group: %w", err)
	}
	return nil
}

// join makes a pod a member of its group.
func (g *grouping) join(i int, p *v1.Pod) {
	if g != nil {
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new(groupName(i / g.size))}
	}
}

// createGroups creates the groups of a case. The last one has the members that are left.
func (b *bench) createGroups(ctx context.Context, c Case) error {
	g, pods := c.group, c.size(b.o.Size)
	if g == nil {
		return nil
	}
	groups := b.client.SchedulingV1beta1().PodGroups(measured)
	return b.each(ctx, "pod groups", (pods+g.size-1)/g.size, func(ctx context.Context, i int) error {
		o := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: groupName(i)}}
		o.Spec.PriorityClassName = c.shape(0).Spec.PriorityClassName
		if g.gang {
			o.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(min(g.size, pods-i*g.size))} //nolint:gosec // at most the size of a group
		} else {
			o.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
		}
		if g.topology != "" {
			o.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: g.topology}}}
		}
		_, err := groups.Create(ctx, o, metav1.CreateOptions{})
		return err
	})
}

// clearGroups deletes all pod groups. The controller that would take their finalizers off doesn't run.
func (b *bench) clearGroups(ctx context.Context) error {
	if !b.podGroups {
		return nil
	}
	list, err := b.client.SchedulingV1beta1().PodGroups(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	if err := api.Each(ctx, len(list.Items), func(ctx context.Context, i int) error {
		groups, name := b.client.SchedulingV1beta1().PodGroups(list.Items[i].Namespace), list.Items[i].Name
		if _, err := groups.Patch(ctx, name, types.MergePatchType, noFinalizers, metav1.PatchOptions{}); err != nil {
			return err
		}
		return groups.Delete(ctx, name, metav1.DeleteOptions{})
	}); err != nil {
		return fmt.Errorf("clearing: %w", err)
	}
	return nil
}
