package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// This file has jobs that Kueue holds back and admits.

// queues are a queue of the namespace default whose jobs get one CPU at most.
const queues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: any, resources: [{name: cpu, nominalQuota: 1}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: jobs}
spec: {clusterQueue: all}`

// queueLabel names the queue of a Job or pod.
const queueLabel = "kueue.x-k8s.io/queue-name"

// TestKueue: while Kueue's quota holds a Job, single pods and a gang of pods back, no node is bought for
// them, and Berth says what they wait for. Admitted, each is bought whole. A gang that is admitted, and for
// which not enough nodes can be bought, buys none.
func TestKueue(t *testing.T) {
	t.Parallel()
	k := startJobs(t, kueue, workers(8))
	createObjects(t, k.objects, manifest(t, queues)...)
	k.job("train", 4)
	single := pod("single", "3")
	single.Labels = map[string]string{queueLabel: "jobs"}
	createGroup(t, k.client, gang("pair", 2, ""))
	pair := members("pair", "pair", 2)
	for _, p := range pair {
		p.Spec.Containers[0].Resources.Requests = list("cpu", "3")
		p.Labels = map[string]string{queueLabel: "jobs", "kueue.x-k8s.io/pod-group-name": "pair"}
		p.Annotations["kueue.x-k8s.io/pod-group-total-count"] = "2"
	}
	create(t, k.client, single, pair[0], pair[1])
	eventually(t, "the Job to be suspended, and to have a group", func(ctx context.Context) bool {
		j, err := k.client.BatchV1().Jobs(v1.NamespaceDefault).Get(ctx, "train", metav1.GetOptions{})
		return err == nil && *j.Spec.Suspend && k.group(ctx, "train") != ""
	})

	// A pod without a queue shows that Berth has planned: it has the one node.
	create(t, k.client, pod("free", "3"))
	k.run("free")
	k.says("podgroup", k.group(t.Context(), "train"), "has no members", "minCount 4")
	k.says("pod", "single", "kueue.x-k8s.io/admission")
	k.says("pod", "pair-0", "kueue.x-k8s.io/admission")
	k.nodes(1)

	k.quota(100)
	k.run("single", "pair-0", "pair-1")
	eventually(t, "all pods of the Job to run", func(ctx context.Context) bool { return k.running(ctx, "batch.kubernetes.io/job-name=train") == 4 })
	k.nodes(8)

	// Four nodes are free or can be bought for the next Job, which needs five.
	deleteJob(t, k.client, "train")
	eventually(t, "the pods of the Job to be gone", func(ctx context.Context) bool { return k.running(ctx, "batch.kubernetes.io/job-name=train") == 0 })
	k.job("wide", 5)
	k.eventOf("wide-", "NotTriggerScaleUp")
	if n := boundPods(t.Context(), k.client); n != 4 {
		t.Errorf("%d pods are bound, want four: the gang of five isn't placed in part", n)
	}
}

// booked has room kept for each job of the queue before it is admitted.
const booked = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: atomic}
spec: {provisioningClassName: best-effort-atomic-scale-up.autoscaling.x-k8s.io, managedResources: [cpu]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: room}
spec: {controllerName: kueue.x-k8s.io/provisioning-request, parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: atomic}}
`

// TestKueueAsksForRoom: with an AdmissionCheck Kueue asks by a ProvisioningRequest whether nodes can be had
// before it admits a Job. Berth buys all of them and the Job's pods get them; of a Job for which too few
// can be had no node is bought and no pod is created.
func TestKueueAsksForRoom(t *testing.T) {
	t.Parallel()
	k := startJobs(t, kueue, workers(6))
	createObjects(t, k.objects, manifest(t, booked+"---\n"+strings.Replace(queues, "namespaceSelector: {}", "namespaceSelector: {}\n  admissionChecksStrategy: {admissionChecks: [{name: room}]}", 1))...)
	k.quota(100)
	k.job("train", 4)
	eventually(t, "all pods of the Job to run", func(ctx context.Context) bool { return k.running(ctx, "batch.kubernetes.io/job-name=train") == 4 })
	k.nodes(4)
	if n := k.provisioned("train", "True"); n != 1 {
		t.Errorf("%d requests of the Job are provisioned, want one", n)
	}

	k.job("wide", 3)
	eventually(t, "the request of the next Job to be refused", func(context.Context) bool { return k.provisioned("wide", "False") == 1 })
	k.nodes(4)
	if n := boundPods(t.Context(), k.client); n != 4 {
		t.Errorf("%d pods are bound, want the four of the first Job", n)
	}
}

// provisioned returns how many ProvisioningRequests of a Job have the condition Provisioned with a status.
func (k *jobs) provisioned(job, status string) int {
	k.t.Helper()
	list, err := k.objects.Resource(requests).Namespace(v1.NamespaceDefault).List(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		all, _, _ := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
		for _, c := range all {
			c, _ := c.(map[string]any)
			if strings.Contains(list.Items[i].GetName(), job) && c["type"] == "Provisioned" && c["status"] == status {
				n++
			}
		}
	}
	return n
}

// job creates a Job in the queue whose pods, of 3 CPUs, are a gang.
func (k *jobs) job(name string, pods int32) {
	k.t.Helper()
	worker := pod("", "3")
	worker.Spec.RestartPolicy = v1.RestartPolicyNever
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{queueLabel: "jobs"}}}
	j.Spec.Parallelism, j.Spec.Completions, j.Spec.Template.Spec = &pods, &pods, worker.Spec
	j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}}}
	eventually(k.t, "the Job "+name+" to be accepted", func(ctx context.Context) bool {
		_, err := k.client.BatchV1().Jobs(v1.NamespaceDefault).Create(ctx, j, metav1.CreateOptions{})
		return err == nil
	})
}

// quota changes how many CPUs the jobs of the queue get.
func (k *jobs) quota(cpus int) {
	k.t.Helper()
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota","value":"%d"}]`, cpus)
	queue := object(k.t, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue")
	if _, err := resourceOf(k.objects, queue).Patch(k.t.Context(), "all", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		k.t.Fatal(err)
	}
}
