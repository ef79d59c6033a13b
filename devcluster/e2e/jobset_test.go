package e2e

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file has jobs that JobSet makes.

// training is a Workload of two gangs of three workers, and a JobSet of a driver and a Job for each gang. The
// controller of Jobs makes one group of each template, so that each Job has to have its own.
const training = `apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: training}
spec:
  controllerRef: {apiGroup: jobset.x-k8s.io, kind: JobSet, name: training}
  podGroupTemplates:
  - {name: even, schedulingPolicy: {gang: {minCount: 3}}}
  - {name: odd, schedulingPolicy: {gang: {minCount: 3}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: training}
spec:
  replicatedJobs:
  - name: driver
    template: {spec: {template: {spec: &pod {restartPolicy: Never, containers: [{name: c, image: none, resources: {requests: {cpu: "3"}}}]}}}}
  - name: even
    template:
      metadata: {annotations: {scheduling.k8s.io/group-template-name: even}}
      spec: {parallelism: 3, completions: 3, template: {spec: *pod}}
  - name: odd
    template:
      metadata: {annotations: {scheduling.k8s.io/group-template-name: odd}}
      spec: {parallelism: 3, completions: 3, template: {spec: *pod}}`

// TestJobSet: of a driver and two gangs of three workers, which need seven nodes where six can be bought, whatever is
// bought for runs: both gangs, or one and the driver. No gang runs in part, and no node is bought for one that doesn't.
// What waits starts when nodes come otherwise.
func TestJobSet(t *testing.T) {
	t.Parallel()
	k := startJobs(t, jobSet, workers(6))
	createObjects(t, k.objects, manifest(t, training)...)
	k.eventOf("training-", "NotTriggerScaleUp")
	began := 0
	eventually(t, "one gang and the driver to run, or both gangs", func(ctx context.Context) bool {
		began = k.running(ctx, "jobset.sigs.k8s.io/jobset-name=training")
		return began == 4 || began == 6
	})
	k.nodes(began)
	for _, job := range []string{"training-even-0", "training-odd-0"} {
		if g := podGroup(t.Context(), k.client, k.group(t.Context(), job)); g == nil || g.Spec.SchedulingPolicy.Gang == nil || g.Spec.SchedulingPolicy.Gang.MinCount != 3 {
			t.Errorf("the group of Job %s is %v, want a gang of 3", job, g)
		}
		if n := k.running(t.Context(), "batch.kubernetes.io/job-name="+job); n != 0 && n != 3 {
			t.Errorf("%d of three pods of Job %s run", n, job)
		}
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		makeNode(t, k.client, name, "8Gi")
	}
	eventually(t, "the rest to run", func(ctx context.Context) bool { return k.running(ctx, "jobset.sigs.k8s.io/jobset-name=training") == 7 })
	if list, err := k.client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
		t.Errorf("there are the groups %v (%v), want one of each Job of workers", list, err)
	}
}
