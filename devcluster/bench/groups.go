package bench

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/devcluster/api"
)

// This file has the pod groups of the cases, and the pods that only cases with groups have. Groups are there before
// their pods, as in scheduler_perf, and the control plane serves them only if a case that was chosen has some.

// grouping says which pod groups pods are members of: the i-th pod of group i/size.
type grouping struct {
	size int // 0 for one group of all of them
	// gang says that all members must be placed for any to be; otherwise the policy is basic.
	gang     bool
	topology string // the label of which the nodes of a group have one value; "" for none
}

// number returns the number of the i-th pod's group.
func (g *grouping) number(i int) int {
	if g.size == 0 {
		return 0
	}
	return i / g.size
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

// join makes the i-th pod a member of its group.
func (g *grouping) join(i int, p *v1.Pod) {
	if g != nil {
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new(groupName(g.number(i)))}
	}
}

// createGroups creates the groups of n pods of a namespace, with a priority class; "" for none. The last one has the
// members that are left.
func (b *bench) createGroups(ctx context.Context, namespace string, g *grouping, n int, class string) error {
	if g == nil || n == 0 {
		return nil
	}
	groups := b.client.SchedulingV1beta1().PodGroups(namespace)
	return b.each(ctx, "pod groups", g.number(n-1)+1, func(ctx context.Context, i int) error {
		o := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: groupName(i)}}
		o.Spec.PriorityClassName = class
		members := n
		if g.size > 0 {
			members = min(g.size, n-i*g.size)
		}
		if g.gang {
			o.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(members)} //nolint:gosec // so many pods are created
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

// Host ports. Pods with equal ones are never on one node, by which scheduler_perf spreads them; here they spread what is
// there before as it would be, and keep members of one gang apart.
const (
	anchorPort = 7000
	lowPort    = 8000
	gangPort   = 9000
)

// withPort gives a pod a host port.
func withPort(p *v1.Pod, port int32) *v1.Pod {
	p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	return p
}

// lean returns a pod with a CPU request and little memory, as those of scheduler_perf's preempting gangs.
func lean(i int, cpu string) *v1.Pod {
	p := light(i)
	p.Spec.Containers[0].Resources = requests(cpu, "100Mi")
	return p
}

// tiny returns a pod of low priority of which ten are on a node, and filling one that needs a node without any.
func tiny(i int) *v1.Pod    { return lean(i, "40m") }
func filling(i int) *v1.Pod { return above(lean(i, "3970m")) }

// fifth returns a pod of low priority of which five are on a node, and roomy a member of a group that needs a node
// without any, and none beside it of its own group.
func fifth(i int) *v1.Pod { return lean(i, "600m") }
func roomy(i, group int) *v1.Pod {
	return withPort(above(lean(i, "3500m")), int32(gangPort+group%10000)) //nolint:gosec // ports end above
}

// blueLabels are more than one, as scheduler_perf has them: each is compared.
var blueLabels = map[string]string{"app": "blue", "label1": "value1", "label2": "value2", "label3": "value3", "label4": "value4"}

// anchor returns a pod of high priority that stays where it is. Anchored pods have to be on a node with one, which also
// holds all tinyBlue pods that leave for them.
func anchor(i int) *v1.Pod {
	p := above(lean(i, "10m"))
	p.Labels = blueLabels
	return p
}

func tinyBlue(i int) *v1.Pod {
	p := tiny(i)
	p.Labels = blueLabels
	return p
}

func anchored(i int) *v1.Pod {
	p := above(sized(light(i), "3970m"))
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: blueLabels}, TopologyKey: v1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{}}}}}
	return p
}

// above gives a pod the high priority.
func above(p *v1.Pod) *v1.Pod {
	p.Spec.PriorityClassName = highPriority
	return p
}

// attracting returns a pod that is placed before all others, and gives torn ones reason to be tried again.
func attracting(i int) *v1.Pod {
	p := slight(i)
	p.Labels, p.Spec.PriorityClassName = map[string]string{"service": "target"}, highestPriority
	return p
}

// slight returns a pod that fits beside all others.
func slight(i int) *v1.Pod {
	p := light(i)
	p.Spec.Containers[0].Resources = requests("10m", "10Mi")
	return p
}

// torn returns a pod of high priority that fits nowhere: it has to be on the node of attracting pods, and may not be.
// That takes two terms, as in scheduler_perf, of which one says what the other does.
func torn(i int) *v1.Pod {
	term := func(namespaces []string, with ...metav1.LabelSelectorRequirement) v1.PodAffinityTerm {
		return v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: with}, Namespaces: namespaces, TopologyKey: v1.LabelHostname}
	}
	is := func(op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "service", Operator: op, Values: values}
	}
	direct := term([]string{churning, "default", "kube-system"}, is(metav1.LabelSelectorOpIn, "target"))
	p := above(light(i))
	p.Spec.Affinity = &v1.Affinity{
		PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{direct,
			term([]string{churning, "default"}, is(metav1.LabelSelectorOpExists), is(metav1.LabelSelectorOpNotIn, "none"))}},
		PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{direct}},
	}
	return p
}

// bareNode has a node be as scheduler_perf's cases of starvation have them: small, and without labels.
func bareNode(_, _ int, n *v1.Node) {
	n.Labels = nil
	n.Status.Allocatable[v1.ResourceMemory] = resource.MustParse("8Gi")
}
