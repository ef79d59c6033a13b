package storm

import (
	"context"
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/storm/checker"
)

// This file is the gangs among the load: one of each kind at a time. All members are created one after the other,
// so a misfortune may leave a gang that lacks some: it is deleted, as is one whose members are all placed.

const (
	// gangLabel has the name of a pod's gang.
	gangLabel = "storm/gang"
	// gangSize is how many members a gang has, all of which must be placed.
	gangSize = 5
	// gangTopology has the label that the nodes of a pod's gang must have with one value.
	gangTopology = "storm/gang-topology"
)

// gangKind is where gangs go. Each fits there when others of its kind are gone.
type gangKind struct {
	nodes    map[string]string // that its members select
	topology string            // that it requires, "" for none
	cpu      int               // thousandths of a member's at least; up to 300 more
}

// gangKinds are the kinds. A gang of the last takes half a rack, each of which is a node group of its own.
var gangKinds = []gangKind{
	{nodes: map[string]string{poolLabel: basePool}, cpu: 100},
	{nodes: map[string]string{groupLabel: general}, cpu: 100},
	{nodes: map[string]string{poolLabel: basePool}, topology: rackLabel, cpu: 100},
	{nodes: map[string]string{poolLabel: rackPool}, topology: rackLabel, cpu: 500},
}

// gangOf returns the gang of a pod for the checker.
func gangOf(p *v1.Pod) checker.Gang {
	return checker.Gang{Name: p.Labels[gangLabel], MinCount: gangSize, Topology: p.Labels[gangTopology]}
}

// gang looks at one kind: where there is none, a gang is made, and one that is placed or lacks members is
// deleted. Each kind has its turn once in as many seconds as there are kinds.
func (l *load) gang(ctx context.Context, r *rand.Rand, n int) {
	if !l.gangs {
		return
	}
	kind := n % len(gangKinds)
	name := fmt.Sprint("gang-", kind)
	var pods, placed int
	l.watch.Do(func(h *checker.History) { pods, placed = h.Gang(name) })
	of := metav1.ListOptions{LabelSelector: gangLabel + "=" + name}
	switch {
	case pods == 0:
		l.dropGroups(ctx, of) // of the gang before
		l.makeGang(ctx, name, n, &gangKinds[kind], r.IntN(300))
	case pods < gangSize || placed >= gangSize && r.IntN(2) == 0:
		l.delete(ctx, of)
		l.dropGroups(ctx, of)
	}
}

// makeGang creates a group and its members. Whatever fails isn't made up for.
func (l *load) makeGang(ctx context.Context, gang string, n int, kind *gangKind, moreCPU int) {
	name := fmt.Sprintf("%s-%d", gang, n)
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gangLabel: gang}}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: gangSize}
	g.Spec.PriorityClassName = "storm-high"
	if kind.topology != "" {
		g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: kind.topology}}}
	}
	if _, err := l.client.SchedulingV1beta1().PodGroups(namespace).Create(ctx, g, metav1.CreateOptions{}); err != nil {
		return
	}
	for i := range gangSize {
		p := bare(fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("%dm", kind.cpu+moreCPU), "storm-high")
		p.Labels = map[string]string{gangLabel: gang}
		if kind.topology != "" {
			p.Labels[gangTopology] = kind.topology
		}
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		p.Spec.NodeSelector = kind.nodes
		l.pod(ctx, p)
	}
}

// dropGroups deletes pod groups, which stay while pods are their members. A failure isn't made up for.
func (l *load) dropGroups(ctx context.Context, which metav1.ListOptions) {
	if l.gangs {
		_ = l.client.SchedulingV1beta1().PodGroups(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, which) // the next try comes soon
	}
}
