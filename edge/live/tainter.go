package live

import (
	"context"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/berthproject/berth/core/step"
)

// tainter puts taints on nodes and takes them off, one at a time and in the order
// given, so that the last that the core wants of a node is what the node ends with.
type tainter struct {
	client  kubernetes.Interface
	backlog chan job[step.Taint]
}

func newTainter(client kubernetes.Interface) *tainter {
	return &tainter{client: client, backlog: make(chan job[step.Taint], 1<<12)}
}

func (t *tainter) run(ctx context.Context, wg *sync.WaitGroup) {
	serveJobs(ctx, wg, 1, t.backlog, t.write)
}

// write replaces the node's taint of that key, or removes it. A node that is gone has
// no taint: removing one from it succeeds. A patch can only replace the whole list of
// taints; so that those of other writers stay, the node is read and updated, again
// when somebody else was faster.
func (t *tainter) write(ctx context.Context, taint step.Taint) error {
	attempt := func() error {
		node, err := t.client.CoreV1().Nodes().Get(ctx, taint.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(x v1.Taint) bool { return x.Key == taint.Taint.Key })
		if !taint.Remove {
			node.Spec.Taints = append(node.Spec.Taints, taint.Taint)
		}
		_, err = t.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	}
	err := persist(ctx, func() error { return retry.RetryOnConflict(retry.DefaultBackoff, attempt) })
	if taint.Remove && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
