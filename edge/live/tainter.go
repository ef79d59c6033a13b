package live

import (
	"context"
	"sync"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// tainter writes taints, in the order given.
type tainter struct {
	client kubernetes.Interface
	work   chan step.Taint
	done   func(step.Input)
}

func (t *tainter) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, 1, t.work, func(job step.Taint) {
		t.done(step.TaintDone{Node: job.Node, Err: t.write(ctx, job)})
	})
}

func (t *tainter) write(ctx context.Context, job step.Taint) error {
	attempt := func() error {
		n, err := t.client.CoreV1().Nodes().Get(ctx, job.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var taints []v1.Taint
		for _, x := range n.Spec.Taints {
			if x.Key != job.Taint.Key {
				taints = append(taints, x)
			}
		}
		if !job.Remove {
			taints = append(taints, job.Taint)
		}
		n.Spec.Taints = taints
		_, err = t.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	}
	err := persist(ctx, func() error { return retry.RetryOnConflict(retry.DefaultBackoff, attempt) })
	if job.Remove && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
