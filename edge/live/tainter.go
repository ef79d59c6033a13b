package live

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
)

// tainter puts taints on nodes and takes them off, several at a time. Those of one node are
// written one after the other and in the order given, by the worker that its name picks, so
// that the last that the core wants of a node is what the node ends with.
type tainter struct {
	client   kubernetes.Interface
	backlogs [taintWorkers]chan *job[step.Taint] // of one worker each
}

func newTainter(client kubernetes.Interface) *tainter {
	t := &tainter{client: client}
	for i := range t.backlogs {
		t.backlogs[i] = make(chan *job[step.Taint], 1<<12)
	}
	return t
}

// run starts a worker for each backlog.
func (t *tainter) run(ctx context.Context, wg *sync.WaitGroup) {
	for _, backlog := range t.backlogs {
		serveJobs(ctx, wg, 1, backlog, t.write)
	}
}

// backlogOf returns the backlog of the worker that writes a node's taints.
func (t *tainter) backlogOf(node string) chan<- *job[step.Taint] {
	h := fnv.New32a()
	h.Write([]byte(node))
	return t.backlogs[h.Sum32()%taintWorkers]
}

// write replaces the node's taint of that key, or removes it, with what goes with it. A node that
// is gone has no taint, be there another of its name or not: removing one from it succeeds. A patch
// can only replace the whole list of taints; so that those of other writers stay, the node is read
// and patched in that version, again when somebody else was faster. An update would lose fields that
// this version of the API's types doesn't have.
func (t *tainter) write(ctx context.Context, taint step.Taint) error {
	attempt := func() error {
		node, err := t.client.CoreV1().Nodes().Get(ctx, taint.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if taint.UID != "" && taint.UID != node.UID {
			return apierrors.NewNotFound(v1.Resource("nodes"), taint.Node)
		}
		before := *node
		taint.Apply(node)
		patch, err := nodePatch(&before, node)
		if err != nil {
			return err
		}
		_, err = t.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	err := persist(ctx, func() error { return retry.RetryOnConflict(retry.DefaultBackoff, attempt) })
	if taint.Remove && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// nodePatch returns what makes one version of a node the other, as far as Taint.Apply changes nodes,
// and fails when the node has another version by then.
func nodePatch(before, after *v1.Node) ([]byte, error) {
	meta := map[string]any{"resourceVersion": before.ResourceVersion, "uid": before.UID}
	spec := map[string]any{"taints": after.Spec.Taints} // null removes the list
	if after.Spec.Unschedulable != before.Spec.Unschedulable {
		if spec["unschedulable"] = after.Spec.Unschedulable; !after.Spec.Unschedulable {
			spec["unschedulable"] = nil
		}
	}
	old, had := before.Annotations[autoscaler.RemovalNote]
	note, has := after.Annotations[autoscaler.RemovalNote]
	switch {
	case has && (!had || note != old):
		meta["annotations"] = map[string]any{autoscaler.RemovalNote: note}
	case had && !has:
		meta["annotations"] = map[string]any{autoscaler.RemovalNote: nil}
	}
	return json.Marshal(map[string]any{"metadata": meta, "spec": spec})
}
