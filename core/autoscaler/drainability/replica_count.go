package drainability

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berthproject/berth/core/cluster"
)

// replicaCount: the pod's controller has to exist, or nobody will replace the pod; and a
// ReplicaSet or ReplicationController must want --min-replica-count pods or more. Of a
// controller of a kind that Berth doesn't read, nothing is known. The rule is asked with
// --skip-nodes-with-custom-controller-pods only.
func replicaCount(c *Context, p *cluster.Pod) (Outcome, string, bool) {
	if !c.Rules.SkipCustomControllerPods {
		return 0, "", false
	}
	ref := metav1.GetControllerOfNoCopy(p.Object)
	if ref == nil || !read(p, ref) {
		return 0, "", false
	}
	kind := cluster.WorkloadKind(ref.Kind)
	w := c.State.Workload(kind, p.Object.Namespace, ref.Name)
	switch {
	case w == nil:
		return Block, fmt.Sprintf("is controlled by %s %s, which doesn't exist", ref.Kind, ref.Name), true
	case (kind == cluster.ReplicaSet || kind == cluster.ReplicationController) && int(w.Replicas.Wanted) < c.Rules.MinReplicas:
		return Block, fmt.Sprintf("is controlled by %s %s, which has %d desired replicas (--min-replica-count=%d)", ref.Kind, ref.Name, w.Replicas.Wanted, c.Rules.MinReplicas), true
	}
	return 0, "", false
}

// read reports whether the state has all controllers of the kind of a pod's. StatefulSets and
// DaemonSets of other API groups than apps are other kinds; of the rest, the group isn't
// looked at. A pod that is only treated as a DaemonSet's isn't asked for its controller.
func read(p *cluster.Pod, ref *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false
	}
	switch {
	case ref.Kind == string(cluster.ReplicationController):
		return true
	case p.OfNode && p.Daemon():
		return ref.Kind == string(cluster.DaemonSet) && gv.Group == "apps"
	}
	switch ref.Kind {
	case string(cluster.Job), string(cluster.ReplicaSet):
		return true
	case string(cluster.StatefulSet):
		return gv.Group == "apps"
	}
	return false
}
