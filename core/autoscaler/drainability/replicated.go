package drainability

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// replicated: somebody has to replace the pod. With
// --skip-nodes-with-custom-controller-pods that is a controller of a kind that is known to
// do so, whatever its API group; without, any.
func replicated(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	ref := metav1.GetControllerOfNoCopy(p.Object)
	switch {
	case ref == nil:
		return Block, "has no controller, so nothing would recreate it", true
	case c.Rules.SkipCustomControllerPods && !replaces(ref.Kind):
		return Block, "is controlled by a " + ref.Kind + ", which may not recreate it (--skip-nodes-with-custom-controller-pods)", true
	}
	return 0, "", false
}

// replaces reports whether controllers of a kind replace pods that were evicted.
func replaces(kind string) bool {
	switch kind {
	case string(cluster.ReplicaSet), string(cluster.StatefulSet), string(cluster.ReplicationController), string(cluster.Job):
		return true
	}
	return false
}
