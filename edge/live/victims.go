package live

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// evictor posts evictions and reports each outcome. A disruption budget that
// refuses one answers "too many requests", which is tried again for a while.
type evictor struct {
	client kubernetes.Interface
	work   chan step.Eviction
	done   func(step.Input)
}

func (v *evictor) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, 1, v.work, func(job step.Eviction) {
		v.done(step.EvictionDone{UID: job.UID, Node: job.Node, Err: v.evict(ctx, job)})
	})
}

func (v *evictor) evict(ctx context.Context, job step.Eviction) error {
	err := persist(ctx, func() error {
		return v.client.PolicyV1().Evictions(job.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &job.UID}},
		})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // that pod is gone
	}
	return err
}

// preemptor tells victims to leave their nodes, several at a time, and reports
// each outcome.
type preemptor struct {
	client  kubernetes.Interface
	work    chan step.Preemption
	done    func(step.Input)
	telling atomic.Int64
}

func (p *preemptor) add(ctx context.Context, job step.Preemption) error {
	p.telling.Add(1)
	return send(ctx, p.work, job)
}

// busy tells whether victims wait for their turn to be told.
func (p *preemptor) busy() bool { return p.telling.Load() > preemptors }

func (p *preemptor) run(ctx context.Context, workers int, wg *sync.WaitGroup) {
	serve(ctx, wg, workers, p.work, func(job step.Preemption) {
		err := p.preempt(ctx, job)
		p.telling.Add(-1)
		p.done(step.PreemptionDone{UID: job.UID, By: job.By, Err: err})
	})
}

// preempt writes the condition first, so that whoever sees the pod go knows why.
// Another pod of that name is left alone.
func (p *preemptor) preempt(ctx context.Context, job step.Preemption) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": job.UID},
		"status": map[string]any{"conditions": []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, Message: job.Message, LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		return err
	}
	pods := p.client.CoreV1().Pods(job.Namespace)
	err = persist(ctx, func() error {
		_, err := pods.Patch(ctx, job.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	if err == nil {
		err = persist(ctx, func() error {
			return pods.Delete(ctx, job.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &job.UID}})
		})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // that pod is gone
	}
	return err
}
