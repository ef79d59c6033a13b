package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file has groups of pods that LeaderWorkerSet makes.

// served is a LeaderWorkerSet of groups of four pods: %d of them, with annotations.
const served = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve, annotations: {%s}}
spec:
  replicas: %d
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers: [{name: c, image: none, resources: {requests: {cpu: "3"}}}]`

// grouped has the pods of each group of a LeaderWorkerSet be members of a PodGroup that is named after the
// group's leader. LeaderWorkerSet's pod template has no spec.schedulingGroup.
const grouped = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: leaderworkerset-groups}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    objectSelector: {matchExpressions: [{key: leaderworkerset.sigs.k8s.io/name, operator: Exists}]}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{schedulingGroup: Object.spec.schedulingGroup{podGroupName:
        object.metadata.?annotations["leaderworkerset.sigs.k8s.io/leader-name"].orValue(object.metadata.name)}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: leaderworkerset-groups}
spec: {policyName: leaderworkerset-groups}`

// racks returns node groups of racks, with so many nodes at most each.
func racks(most ...int) string {
	out := "apiVersion: berth.dev/v1alpha1\nkind: SimulatedNodeGroups\nseed: 1\ngroups:\n"
	for i, n := range most {
		out += fmt.Sprintf(`- {name: rack-%d, max: %d, launchDelay: {min: 1s, max: 1s}, startup: {min: 1s, max: 1s}, template: {labels: {%s: r%[1]d}, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`, i, n, rackLabel)
	}
	return out
}

const rackLabel = "example.com/rack"

// TestLeaderWorkerSetExclusive: each group of two gets a rack to itself, by its annotation, and the nodes
// are bought there. The workers exist only when their leader has a node.
func TestLeaderWorkerSetExclusive(t *testing.T) {
	t.Parallel()
	k := startJobs(t, leaderWorkerSet, racks(4, 4, 4))
	createObjects(t, k.objects, object(t, fmt.Sprintf(served, "leaderworkerset.sigs.k8s.io/exclusive-topology: "+rackLabel, 2)))
	eventually(t, "both groups to run", func(ctx context.Context) bool { return k.running(ctx, "leaderworkerset.sigs.k8s.io/name=serve") == 8 })
	k.nodes(8)
	first, second := k.racksOf("0"), k.racksOf("1")
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("the groups are in the racks %v and %v, want one each, and two racks", first, second)
	}
}

// TestLeaderWorkerSetGangs: a group whose pods are a gang in one rack is placed and bought whole in the only
// rack that can have four nodes. A second one fits nowhere, and none is bought for it.
func TestLeaderWorkerSetGangs(t *testing.T) {
	t.Parallel()
	k := startJobs(t, leaderWorkerSet, racks(3, 4, 3))
	createObjects(t, k.objects, manifest(t, grouped)...)
	for _, leader := range []string{"serve-0", "serve-1"} {
		createGroup(t, k.client, gang(leader, 4, rackLabel))
	}
	k.awaitPolicy()
	createObjects(t, k.objects, object(t, fmt.Sprintf(served, "", 2)))
	eventually(t, "one of the groups to run", func(ctx context.Context) bool { return k.running(ctx, "leaderworkerset.sigs.k8s.io/name=serve") == 4 })
	all := slices.Concat(k.racksOf("0"), k.racksOf("1"))
	if !slices.Equal(all, []string{"r1"}) {
		t.Errorf("pods are in the racks %v, want r1, which alone has room for four nodes", all)
	}
	waiting := "serve-0"
	if k.running(t.Context(), "leaderworkerset.sigs.k8s.io/name=serve,leaderworkerset.sigs.k8s.io/group-index=0") == 4 {
		waiting = "serve-1"
	}
	k.eventOf(waiting, "NotTriggerScaleUp")
	k.says("podgroup", waiting, "is pending", "4 without")
	k.nodes(4)
}

// awaitPolicy waits until the policy makes members of pods: a policy takes effect some time after it was
// created.
func (k *jobs) awaitPolicy() {
	k.t.Helper()
	probe := pod("probe-0", "1")
	probe.Labels = map[string]string{"leaderworkerset.sigs.k8s.io/name": "probe", "leaderworkerset.sigs.k8s.io/worker-index": "0"}
	probe.Annotations["leaderworkerset.sigs.k8s.io/size"] = "1"
	eventually(k.t, "the policy to take effect", func(ctx context.Context) bool {
		p, err := k.client.CoreV1().Pods(v1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && p.Spec.SchedulingGroup != nil && *p.Spec.SchedulingGroup.PodGroupName == probe.Name
	})
}

// racksOf returns the racks in which a group of the LeaderWorkerSet has pods.
func (k *jobs) racksOf(index string) (out []string) {
	k.t.Helper()
	pods, err := k.client.CoreV1().Pods(v1.NamespaceDefault).List(k.t.Context(), metav1.ListOptions{
		FieldSelector: "spec.nodeName!=", LabelSelector: "leaderworkerset.sigs.k8s.io/group-index=" + index})
	if err != nil {
		k.t.Fatal(err)
	}
	for i := range pods.Items {
		node, err := k.client.CoreV1().Nodes().Get(k.t.Context(), pods.Items[i].Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			k.t.Fatal(err)
		}
		out = append(out, node.Labels[rackLabel])
	}
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}
