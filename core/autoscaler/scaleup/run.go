package scaleup

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// run is a sequence of pending pods of one class that are still without a node. Pods are
// kept in runs, not by class, so that they are placed in the order in which they will
// be scheduled, however they are classed. A run is immutable and never empty.
type run struct {
	class *engine.Class
	// countable says that how many of the pods a node takes follows from that node alone,
	// wherever any of the pending pods is placed (engine.Countable).
	countable bool
	pods      []*cluster.Pod
	// prefers are the groups that nodes for the pods are bought of; nil for any.
	prefers *preference
}

// runs divides pods into runs, in their order. The pods' own terms have to be known first:
// once one of them is placed, they tell apart pods that nothing told apart before.
func (b *builder) runs(pods []*cluster.Pod) []*run {
	b.memory.learn(b.State, pods)
	var out []*run
	var e *engine.Engine
	for i, pod := range pods {
		if i == 0 || pod.Object.Spec.SchedulerName != pods[i-1].Object.Spec.SchedulerName {
			e = b.Engine(pod)
		}
		class := b.memory.classOf(e, pod)
		if n := len(out); n > 0 && out[n-1].class == class {
			out[n-1].pods = append(out[n-1].pods, pod)
		} else {
			out = append(out, &run{class: class, countable: e.Countable(class), pods: []*cluster.Pod{pod}})
		}
	}
	return out
}

// count returns how many pods there are.
func count(runs []*run) (n int) {
	for _, r := range runs {
		n += len(r.pods)
	}
	return n
}

// merged makes one run, without a preference, of the countable runs of a class, in the place
// of the first: no rule tells in which order their pods are placed.
func merged(runs []*run) []*run {
	var out []*run
	at := map[*engine.Class]*run{}
	for _, r := range runs {
		if !r.countable {
			out = append(out, r)
		} else if whole := at[r.class]; whole != nil {
			whole.pods = append(whole.pods, r.pods...)
		} else {
			whole = &run{class: r.class, countable: true, pods: slices.Clip(r.pods)}
			at[r.class] = whole
			out = append(out, whole)
		}
	}
	return out
}

// without leaves out the pods that were packed.
func without(runs []*run, all []packed) []*run {
	placed := map[*cluster.Pod]bool{}
	for _, k := range all {
		for pod := range k.pods.All() {
			placed[pod] = true
		}
	}
	return filtered(runs, func(pod *cluster.Pod) bool { return !placed[pod] })
}

// filtered leaves out the pods that keep returns false for. A run of which none is left out
// stays the same.
func filtered(runs []*run, keep func(*cluster.Pod) bool) []*run {
	var out []*run
	for _, r := range runs {
		if !slices.ContainsFunc(r.pods, func(pod *cluster.Pod) bool { return !keep(pod) }) {
			out = append(out, r)
			continue
		}
		pods := slices.DeleteFunc(slices.Clone(r.pods), func(pod *cluster.Pod) bool { return !keep(pod) })
		if len(pods) > 0 {
			out = append(out, &run{r.class, r.countable, pods, r.prefers})
		}
	}
	return out
}
