package bindloop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// This file makes the writes of a scheduler whose pods take the place of others: the nomination of the pod, and for each
// pod that leaves the condition that says why, its deletion and an event. Which pods leave isn't decided but told.

// victims are pods that leave nodes, so many for each pod that is bound.
type victims struct {
	client kubernetes.Interface
	each   int
	on     map[string][]v1.Pod // by node; only read once the loop runs
}

// newVictims returns the pods of a namespace, of which so many leave a node for each pod that is bound there.
func newVictims(ctx context.Context, client kubernetes.Interface, namespace string, each int) (victims, error) {
	v := victims{client: client, each: each, on: map[string][]v1.Pod{}}
	if each == 0 {
		return v, nil
	}
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String()})
	if err != nil {
		return v, fmt.Errorf("listing the pods that leave: %w", err)
	}
	for _, p := range list.Items {
		v.on[p.Spec.NodeName] = append(v.on[p.Spec.NodeName], p)
	}
	return v, nil
}

// leave has pods leave a node for one that has been nominated to it. A node has one pod bound to it.
func (v *victims) leave(ctx context.Context, p *v1.Pod, node string, events bool) error {
	if v.each == 0 {
		return nil
	}
	if err := nominate(ctx, v.client, p, node); err != nil {
		return err
	}
	leaving := v.on[node]
	if len(leaving) < v.each {
		return fmt.Errorf("node %s has %d pods that could leave, want %d", node, len(leaving), v.each)
	}
	for i := range leaving[:v.each] {
		if err := v.delete(ctx, &leaving[i], p, events); err != nil {
			return fmt.Errorf("having pod %s leave: %w", leaving[i].Name, err)
		}
	}
	return nil
}

// delete says why a pod leaves, deletes it, and writes an event about it.
func (v *victims) delete(ctx context.Context, p, by *v1.Pod, events bool) error {
	if err := patchStatus(ctx, v.client, p, v1.PodStatus{Conditions: []v1.PodCondition{{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, LastTransitionTime: metav1.Now(),
		Message: by.Spec.SchedulerName + ": preempting to accommodate a higher priority pod",
	}}}); err != nil {
		return err
	}
	err := v.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}})
	if err != nil && !apierrors.IsNotFound(err) || !events {
		return err
	}
	e := event(p, "Preempted", "Preempting", "Preempted by pod "+string(by.UID)+" on node "+p.Spec.NodeName)
	_, err = v.client.EventsV1().Events(p.Namespace).Create(ctx, e, metav1.CreateOptions{})
	return err
}

// nominate writes which node a pod is about to get.
func nominate(ctx context.Context, client kubernetes.Interface, p *v1.Pod, node string) error {
	if err := patchStatus(ctx, client, p, v1.PodStatus{NominatedNodeName: node}); err != nil {
		return fmt.Errorf("nominating a pod: %w", err)
	}
	return nil
}

// patchStatus writes a part of a pod's status.
func patchStatus(ctx context.Context, client kubernetes.Interface, p *v1.Pod, status v1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// event returns an event about a pod.
func event(p *v1.Pod, reason, action, note string) *eventsv1.Event {
	now := metav1.NewMicroTime(time.Now())
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("%s.%s.%x", p.Name, strings.ToLower(reason), now.UnixNano())},
		EventTime:  now, ReportingController: "bindloop", ReportingInstance: "bindloop",
		Regarding: v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Type:      v1.EventTypeNormal, Reason: reason, Action: action, Note: note,
	}
}
