package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// surger makes Deployments create the successor of their pod before they delete it: it changes an
// annotation of the pod template, as "kubectl rollout restart" does. What a Deployment allows
// is read right before, and the patch holds only for the version that was read, so that no
// rollout begins that would stop the pod first, or that somebody else has begun.
type surger struct {
	client  kubernetes.Interface
	backlog chan *job[step.Surge]
}

func newSurger(client kubernetes.Interface) *surger {
	return &surger{client: client, backlog: make(chan *job[step.Surge], 1<<12)}
}

// run starts the workers.
func (s *surger) run(ctx context.Context, wg *sync.WaitGroup) {
	serveJobs(ctx, wg, surgeWorkers, s.backlog, s.surge)
}

// surge begins the rollout, unless a try whose answer was lost has.
func (s *surger) surge(ctx context.Context, surge step.Surge) error {
	if !surge.Until.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, surge.Until)
		defer cancel()
		ctx = bounded
	}
	deployments := s.client.AppsV1().Deployments(surge.Namespace)
	at := surge.At.UTC().Format(time.RFC3339Nano)
	var refused error
	attempt := func() error {
		d, err := deployments.Get(ctx, surge.Deployment, metav1.GetOptions{})
		if err != nil || d.Spec.Template.Annotations[cluster.SurgedAtAnnotation] == at {
			return err
		}
		if refused = whyNoSurge(d); refused != nil {
			return nil
		}
		if refused, err = s.whyNotWith(ctx, &surge, at); refused != nil || err != nil {
			return err
		}
		patch, err := surgePatch(d.ResourceVersion, at)
		if err != nil {
			return err
		}
		_, err = deployments.Patch(ctx, surge.Deployment, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	if err := ctx.Err(); err != nil { // it has waited in the backlog for too long
		return fmt.Errorf("deployment %s/%s: %w", surge.Namespace, surge.Deployment, err)
	}
	err := persist(ctx, func() error { return retry.RetryOnConflict(retry.DefaultBackoff, attempt) })
	if err = cmp.Or(refused, err); err != nil {
		return fmt.Errorf("deployment %s/%s: %w", surge.Namespace, surge.Deployment, err)
	}
	return nil
}

// whyNotWith returns why one of the Deployments that are to roll with a surge's may not, and doesn't for
// this surge already; nil when all may. err is a call's that failed.
func (s *surger) whyNotWith(ctx context.Context, surge *step.Surge, at string) (refused, err error) {
	for _, name := range surge.With {
		d, err := s.client.AppsV1().Deployments(surge.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if d.Spec.Template.Annotations[cluster.SurgedAtAnnotation] == at {
			continue
		}
		if why := whyNoSurge(d); why != nil {
			return fmt.Errorf("it rolls together with deployment %s/%s: %w", surge.Namespace, name, why), nil
		}
	}
	return nil, nil
}

// surgePatch returns the merge patch that has a Deployment of this version roll.
func surgePatch(version, at string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{cluster.SurgedAtAnnotation: at}}}},
	})
}

// whyNoSurge returns why a rollout of a Deployment isn't begun, nil when it may be: it makes
// one more pod, waits for it, deletes the only other, and is all that goes on.
func whyNoSurge(d *appsv1.Deployment) error {
	replicas := int(ptr.Deref(d.Spec.Replicas, 1))
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	// As the Deployment controller resolves them (pkg/controller/deployment/util); what it
	// can't read counts as 0.
	surge, _ := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(rolling.MaxSurge, intstr.FromInt32(0))), replicas, true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(rolling.MaxUnavailable, intstr.FromInt32(0))), replicas, false)
	switch {
	case d.Spec.Template.Annotations[cluster.SurgeAnnotation] != "true":
		return fmt.Errorf("its pod template no longer has the annotation %s: \"true\"", cluster.SurgeAnnotation)
	case d.DeletionTimestamp != nil:
		return errors.New("it is being deleted")
	case replicas != 1:
		return fmt.Errorf("a rollout would replace all of its %d replicas", replicas)
	case d.Spec.Paused:
		return errors.New("it is paused")
	case d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return fmt.Errorf("its strategy is %s, not RollingUpdate", d.Spec.Strategy.Type)
	case surge < 1:
		return errors.New("its maxSurge allows no more than its replicas")
	case unavailable > 0:
		return errors.New("its maxUnavailable would delete the pod first")
	case d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != 1 || d.Status.UpdatedReplicas != 1:
		return errors.New("a rollout is in progress, or its pod does not exist yet")
	}
	return nil
}
