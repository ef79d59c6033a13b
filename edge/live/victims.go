package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/step"
)

// Two workers ask pods to leave: the evictor for nodes that go, within disruption
// budgets; the preemptor for pods of higher priority, as kube-scheduler does, beside
// them. Both name the pod's UID, so that another pod of the same name is left alone,
// and to both a pod that is gone has left.

// evictor posts evictions, several at a time: also those of one node may be posted in any
// order. One that a disruption budget doesn't allow, which the API server answers with "too
// many requests", is the core's to try again.
type evictor struct {
	client  kubernetes.Interface
	backlog chan job[step.Eviction]
}

func newEvictor(client kubernetes.Interface) *evictor {
	return &evictor{client: client, backlog: make(chan job[step.Eviction], 1<<12)}
}

func (v *evictor) run(ctx context.Context, wg *sync.WaitGroup) {
	serveJobs(ctx, wg, evictWorkers, v.backlog, v.evict)
}

func (v *evictor) evict(ctx context.Context, eviction step.Eviction) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &eviction.UID}}
	if eviction.Grace != nil {
		options.GracePeriodSeconds = ptr.To(int64(eviction.Grace.Seconds()))
	}
	var refused error
	err := persist(ctx, func() error {
		err := v.client.PolicyV1().Evictions(eviction.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: eviction.Namespace, Name: eviction.Name}, DeleteOptions: options,
		})
		if refused = nil; apierrors.IsTooManyRequests(err) {
			refused = fmt.Errorf("%w: %v", step.ErrRefused, err)
			return nil
		}
		return err
	})
	return cmp.Or(refused, ignoreGone(err))
}

// preemptor asks victims to leave, several at a time.
type preemptor struct {
	client  kubernetes.Interface
	backlog chan job[step.Preemption]
	queued  *atomic.Int64 // victims that wait for their turn, or are being asked
}

func newPreemptor(client kubernetes.Interface, queued *atomic.Int64) *preemptor {
	return &preemptor{client: client, queued: queued, backlog: make(chan job[step.Preemption], 1<<16)}
}

func (p *preemptor) run(ctx context.Context, wg *sync.WaitGroup) {
	serveJobs(ctx, wg, preemptWorkers, p.backlog, func(ctx context.Context, victim step.Preemption) error {
		defer p.queued.Add(-1)
		return p.preempt(ctx, victim)
	})
}

// preempt writes the condition DisruptionTarget and then deletes the pod, so that
// whoever sees the pod go knows why.
func (p *preemptor) preempt(ctx context.Context, victim step.Preemption) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": victim.UID},
		"status": map[string]any{"conditions": []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, Message: victim.Message, LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		return err
	}
	pods := p.client.CoreV1().Pods(victim.Namespace)
	err = persist(ctx, func() error {
		_, err := pods.Patch(ctx, victim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	if err == nil {
		err = persist(ctx, func() error {
			return pods.Delete(ctx, victim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &victim.UID}})
		})
	}
	return ignoreGone(err)
}

// ignoreGone takes the error of a call that names a pod's UID: neither a missing pod
// nor another pod of that name, which is a conflict, is a failure.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
