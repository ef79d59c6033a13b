package podgroups

// This file says which pods are expected to leave their nodes, and in which order, when room is kept for a
// gang.

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

const (
	// maxRoomMembers is how many members a gang has at most for which room is kept.
	maxRoomMembers = 5000
	// maxLeavers is how many pods are expected to end at most.
	maxLeavers = 4096
	// nextLook is how long after it was in vain room is looked for again, for another gang.
	nextLook = time.Second
	// admittingParts is how often it is said anew which pods end in time.
	admittingParts = 16
)

// leaver is a pod that leaves its node by itself, or that the gang may preempt.
type leaver struct {
	pod  *cluster.Pod
	node cluster.NodeIndex
	ends time.Time // zero when it isn't known
	// others is how many leavers of which it isn't known when they end are on its node, it included.
	others int
}

// leavers returns pods in the order in which they are expected to leave: those that the gang may preempt,
// those of which it is known when they end, the first ones first, and then the others, node by node, the
// fewest first. Pods that a controller would replace don't end by themselves.
func leavers(t *lifecycle.Turn, k *keptRoom) []leaver {
	var out []leaver
	t.State.Nodes(func(n *cluster.Node) {
		first, unknown := len(out), 0
		for _, p := range n.Pods {
			x := leaver{pod: p, node: n.Index}
			switch {
			case p.Group != nil && *p.Group == k.key || p.Daemon() || p.Mirror():
				continue
			case k.preempts && p.Priority < k.priority:
				x.ends = t.Now
			case endOf(p, t.Now).IsZero():
				if !endsByItself(p) {
					continue
				}
				unknown++
			default:
				x.ends = endOf(p, t.Now)
			}
			out = append(out, x)
		}
		for i := range out[first:] {
			out[first+i].others = unknown
		}
	})
	slices.SortFunc(out, func(a, b leaver) int {
		if a.ends.IsZero() != b.ends.IsZero() {
			return cmp.Compare(b.ends.Unix(), a.ends.Unix())
		}
		if a.ends.IsZero() {
			return cmp.Or(cmp.Compare(a.others, b.others), cmp.Compare(a.node, b.node), strings.Compare(string(a.pod.UID), string(b.pod.UID)))
		}
		return cmp.Or(a.ends.Compare(b.ends), strings.Compare(string(a.pod.UID), string(b.pod.UID)))
	})
	return out[:min(len(out), maxLeavers)]
}

// endOf returns when a pod will have ended at the latest, zero when it isn't known.
func endOf(p *cluster.Pod, now time.Time) time.Time {
	o := p.Object
	switch {
	case o.DeletionTimestamp != nil:
		return later(o.DeletionTimestamp.Time, now)
	case o.Spec.ActiveDeadlineSeconds == nil:
		return time.Time{}
	case o.Status.StartTime == nil: // it is just being started
		return now.Add(time.Duration(*o.Spec.ActiveDeadlineSeconds) * time.Second)
	}
	return later(o.Status.StartTime.Add(time.Duration(*o.Spec.ActiveDeadlineSeconds)*time.Second), now)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// endsByItself reports whether no controller keeps a pod running.
func endsByItself(p *cluster.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(p.Object)
	if ref == nil {
		return true
	}
	switch ref.Kind {
	case "ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet", "Node":
		return false
	}
	return true
}

// knownEnd returns when the last of some leavers ends of which that is known, now when it is of none.
func knownEnd(all []leaver, some []*cluster.Pod, now time.Time) time.Time {
	ends := map[*cluster.Pod]time.Time{}
	for i := range all {
		ends[all[i].pod] = all[i].ends
	}
	end := now
	for _, p := range some {
		end = later(ends[p], end)
	}
	return end
}
