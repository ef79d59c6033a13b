package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// This file asks pods to leave: the evictor pods of nodes that go, within disruption budgets;
// the preemptor victims of pods of higher priority, as kube-scheduler does, beside them. What
// must hold: calls about one pod are made one after the other, in the order in which they were
// handed out; those about different pods side by side. Both name the pod's UID, so that another
// pod of the same name is left alone, and to both a pod that is gone has left.

// leavers asks pods to leave.
type leavers struct {
	evictor   evictor
	preemptor preemptor
	backlog   chan leaving
	lanes     lanes[types.UID]
	evictions chan struct{} // a token for each eviction that is under way
	victims   chan struct{} // a token for each victim that is being asked
}

// leaving is a call about a pod.
type leaving struct {
	uid  types.UID
	call laneCall
}

func newLeavers(evict, preempt kubernetes.Interface, queued *atomic.Int64) *leavers {
	return &leavers{evictor: evictor{evict}, preemptor: preemptor{preempt, queued}, backlog: make(chan leaving, 1<<16),
		lanes: newLanes[types.UID](), evictions: make(chan struct{}, evictWorkers), victims: make(chan struct{}, preemptWorkers)}
}

// run starts the goroutine that hands calls to the lanes of their pods: calls about one pod are made one
// after the other, those about different pods side by side.
func (l *leavers) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case x := <-l.backlog:
				l.lanes.add(ctx, wg, x.uid, x.call)
			}
		}
	})
}

// evict asks for the eviction of a pod.
func (l *leavers) evict(ctx context.Context, eviction step.Eviction, done func(error)) {
	send(ctx, l.backlog, leaving{eviction.UID, laneCall{nil, l.evictions, func(ctx context.Context) { done(l.evictor.evict(ctx, eviction)) }}})
}

// preempt asks a victim to leave when its preemptor's nomination is written: if this process
// ends in between, the next leader knows for whom the room is. While the API server is away, and
// when the preemptor is being bound instead, the victim stays, which the core is told. A
// nomination that the API server doesn't want, as an admission policy may, or whose connection
// hangs, is no reason to let the preemptor wait.
func (l *leavers) preempt(ctx context.Context, victim step.Preemption, nomination *outcome, done func(error)) {
	l.preemptor.queued.Add(1)
	send(ctx, l.backlog, leaving{victim.UID, laneCall{nomination.known, l.victims, func(ctx context.Context) {
		err := nomination.result()
		if away(err) || errors.Is(err, errBinding) {
			err = fmt.Errorf("%s is not preempted, since the nomination of its preemptor is not written: %w", victim.Name, err)
		} else {
			err = l.preemptor.preempt(ctx, victim)
		}
		l.preemptor.queued.Add(-1)
		done(err)
	}}})
}

// evictor posts evictions. One that a disruption budget doesn't allow, which the API server
// answers with "too many requests", is the core's to try again, and so is one that has failed:
// it does so for --max-pod-eviction-time. A rejection by priority and fairness, which has the
// same code and is no answer about the pod, isn't told the core: client-go posts the eviction
// again when the API server's Retry-After is over.
type evictor struct{ client kubernetes.Interface }

// evict posts an eviction of the pod with this UID. A pod that is gone counts as evicted. The error is
// step.ErrRefused when a budget doesn't allow it now.
func (v evictor) evict(ctx context.Context, eviction step.Eviction) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &eviction.UID}}
	if eviction.Grace != nil {
		options.GracePeriodSeconds = ptr.To(int64(eviction.Grace.Seconds()))
	}
	var refused error
	err := persist(ctx, func() error {
		err := v.client.PolicyV1().Evictions(eviction.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: eviction.Namespace, Name: eviction.Name}, DeleteOptions: options,
		})
		if refused = nil; apierrors.IsTooManyRequests(err) && !apierrors.IsUnexpectedServerError(err) {
			refused = fmt.Errorf("%w: %v", step.ErrRefused, err)
			return nil
		}
		return err
	})
	return cmp.Or(refused, ignoreGone(err))
}

// refusalsAtOnce makes client-go return an answer about the pod to an eviction at once. The one for
// a budget whose status is outdated has a Retry-After of 10 s, after which client-go would
// post the eviction again, ten times, while the core doesn't know that the pod stays. A
// rejection by priority and fairness is plain text.
type refusalsAtOnce struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t refusalsAtOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/") {
		resp.Header.Del("Retry-After")
	}
	return resp, err
}

// preemptor asks victims to leave. While the API server is away it goes on trying: a victim
// that has its condition and isn't deleted would stay with it, and the preemptor would be
// tried again at once and to no avail.
type preemptor struct {
	client kubernetes.Interface
	queued *atomic.Int64 // victims that wait for their turn, or are being asked
}

// preempt writes the condition DisruptionTarget and then deletes the pod, so that
// whoever sees the pod go knows why.
func (p preemptor) preempt(ctx context.Context, victim step.Preemption) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": victim.UID},
		"status": map[string]any{"conditions": []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, Message: victim.Message,
			LastTransitionTime: metav1.Now(), ObservedGeneration: victim.Generation,
		}}},
	})
	if err != nil {
		return err
	}
	pods := p.client.CoreV1().Pods(victim.Namespace)
	err = persistWhileAway(ctx, func() error {
		_, err := pods.Patch(ctx, victim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	if err == nil {
		err = persistWhileAway(ctx, func() error {
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
