package live

import (
	"context"
	"hash/fnv"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

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
// is gone has no taint, be there another of its name or not: removing one from it succeeds. A patch can only replace the whole list of taints; so that those of other
// writers stay, the node is read and updated, again when somebody else was faster.
func (t *tainter) write(ctx context.Context, taint step.Taint) error {
	attempt := func() error {
		node, err := t.client.CoreV1().Nodes().Get(ctx, taint.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if taint.UID != "" && taint.UID != node.UID {
			return apierrors.NewNotFound(v1.Resource("nodes"), taint.Node)
		}
		taint.Apply(node)
		_, err = t.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	}
	err := persist(ctx, func() error { return retry.RetryOnConflict(retry.DefaultBackoff, attempt) })
	if taint.Remove && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
