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

// This file is the gangs among the load. Half of them fit on the base pool, and nodes of the general group are
// bought for the others. All members are created one after the other, so a misfortune may leave a gang that
// lacks some: it is deleted, as is one whose members are all placed.

const (
	// gangLabel has the name of a pod's gang.
	gangLabel = "storm/gang"
	// gangSize is how many members a gang has, all of which must be placed.
	gangSize = 5
	// gangSlots is how many gangs there may be at a time.
	gangSlots = 4
)

// gangOf returns the gang of a pod for the checker.
func gangOf(p *v1.Pod) (name string, minCount int) { return p.Labels[gangLabel], gangSize }

// gang looks at one of the slots: an empty one gets a gang, one whose gang is placed or lacks members is
// emptied. Each has its turn once in gangSlots seconds.
func (l *load) gang(ctx context.Context, r *rand.Rand, n int) {
	if !l.gangs {
		return
	}
	slot := n % gangSlots
	name := fmt.Sprint("gang-", slot)
	var pods, placed int
	l.watch.Do(func(h *checker.History) { pods, placed = h.Gang(name) })
	of := metav1.ListOptions{LabelSelector: gangLabel + "=" + name}
	switch {
	case pods == 0:
		l.dropGroups(ctx, of) // of the gang before
		l.makeGang(ctx, name, n, slot%2 == 0, fmt.Sprintf("%dm", 100+r.IntN(300)))
	case pods < gangSize || placed >= gangSize && r.IntN(2) == 0:
		l.delete(ctx, of)
		l.dropGroups(ctx, of)
	}
}

// makeGang creates a group and its members. Whatever fails isn't made up for.
func (l *load) makeGang(ctx context.Context, gang string, n int, base bool, cpu string) {
	name := fmt.Sprintf("%s-%d", gang, n)
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gangLabel: gang}}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: gangSize}
	g.Spec.PriorityClassName = "storm-high"
	if _, err := l.client.SchedulingV1beta1().PodGroups(namespace).Create(ctx, g, metav1.CreateOptions{}); err != nil {
		return
	}
	for i := range gangSize {
		p := bare(fmt.Sprintf("%s-%d", name, i), cpu, "storm-high")
		p.Labels = map[string]string{gangLabel: gang}
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		p.Spec.NodeSelector = map[string]string{groupLabel: general}
		if base {
			p.Spec.NodeSelector = map[string]string{poolLabel: basePool}
		}
		l.pod(ctx, p)
	}
}

// dropGroups deletes pod groups, which stay while pods are their members. A failure isn't made up for.
func (l *load) dropGroups(ctx context.Context, which metav1.ListOptions) {
	if l.gangs {
		_ = l.client.SchedulingV1beta1().PodGroups(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, which) // the next try comes soon
	}
}
