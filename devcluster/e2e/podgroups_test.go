package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has pod groups on the real API server, with the real controllers of Jobs and of the groups'
// protection. What is to be the same is asked of kube-scheduler with its feature gates, too.

// TestPodGroups has kube-scheduler and Berth place the same groups.
func TestPodGroups(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *controlplane.Cluster){
		"kube-scheduler": func(t *testing.T, c *controlplane.Cluster) {
			startScheduler(t, c, schedulerConfig(t, c, schedulerDefaults), "--feature-gates="+controlplane.PodGroupFeatures)
		},
		"berth": func(t *testing.T, c *controlplane.Cluster) {
			startBerth(t, c, "--feature-gates="+controlplane.PodGroupFeatures)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, client := startGroupCluster(t)
			start(t, c)
			for _, value := range []int32{0, 100, 1000} {
				class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("priority-", value)}, Value: value}
				if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			makeNode(t, client, "n1", "8Gi")
			for _, part := range []struct {
				name string
				play func(*testing.T, kubernetes.Interface)
			}{
				{"a Job's gang", jobGang}, {"a Job's basic group", jobBasic}, {"minCount is lowered", lowerMinCount}, {"priorities differ", otherPriority},
				{"another scheduler's member", foreignMember}, {"a group is deleted", deletedGroup}, {"a group leaves", groupLeaves}, {"a required domain", requiredDomain},
			} {
				if !t.Run(part.name, func(t *testing.T) { part.play(t, client); removePods(t, client) }) {
					return
				}
			}
		})
	}
}

// jobGang: none of the four pods of a Job is bound while there is room for two, and all are when there is
// room for all.
func jobGang(t *testing.T, client kubernetes.Interface) {
	createJob(t, client, "train", 4, &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}}})
	var group *schedulingv1beta1.PodGroup
	eventually(t, "the Job to have a Workload and a group that waits", func(ctx context.Context) bool {
		works, err := client.SchedulingV1beta1().Workloads(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		group = onlyGroup(ctx, client)
		return err == nil && len(works.Items) == 1 && group != nil && condition(group) == "False Unschedulable"
	})
	if gang := group.Spec.SchedulingPolicy.Gang; gang == nil || gang.MinCount != 4 {
		t.Errorf("the policy of the Job's group is %+v, want a gang of 4", group.Spec.SchedulingPolicy)
	}
	if n := boundPods(t.Context(), client); n != 0 {
		t.Errorf("%d members were bound, and there is room for two of four", n)
	}
	makeNode(t, client, "n2", "8Gi")
	eventually(t, "all members to be bound", func(ctx context.Context) bool {
		return boundPods(ctx, client) == 4 && condition(onlyGroup(ctx, client)) == "True Scheduled"
	})
	deleteJob(t, client, "train")
	eventually(t, "the group to go with its Job", func(ctx context.Context) bool { return onlyGroup(ctx, client) == nil })
}

// jobBasic: of a Job's group with the basic policy as many are bound as there is room for.
func jobBasic(t *testing.T, client kubernetes.Interface) {
	createJob(t, client, "serve", 6, &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Basic: &schedulingv1alpha3.WorkloadPodGroupBasicSchedulingPolicy{}}})
	eventually(t, "four of six to be bound", func(ctx context.Context) bool {
		return boundPods(ctx, client) == 4 && condition(onlyGroup(ctx, client)) == "True Scheduled"
	})
	deleteJob(t, client, "serve")
}

// lowerMinCount: a gang whose members don't fit is placed once fewer are enough.
func lowerMinCount(t *testing.T, client kubernetes.Interface) {
	createGroup(t, client, gang("elastic", 5, ""))
	create(t, client, members("elastic", "e", 5)...)
	eventually(t, "the gang to wait", func(ctx context.Context) bool {
		return condition(podGroup(ctx, client, "elastic")) == "False Unschedulable"
	})
	patchGroup(t, client, "elastic", `{"spec":{"schedulingPolicy":{"gang":{"minCount":3}}}}`)
	eventually(t, "as many as fit to be bound", func(ctx context.Context) bool {
		return boundPods(ctx, client) == 4 && condition(podGroup(ctx, client, "elastic")) == "True Scheduled"
	})
}

// otherPriority: a group whose members have another priority than it isn't placed, and says so; one whose
// members have its priority is.
func otherPriority(t *testing.T, client kubernetes.Interface) {
	wrong, right := gang("wrong", 2, ""), gang("right", 2, "")
	wrong.Spec.PriorityClassName, right.Spec.PriorityClassName = "priority-100", "priority-100"
	createGroup(t, client, wrong)
	createGroup(t, client, right)
	create(t, client, members("wrong", "w", 2)...)
	eventually(t, "the group to say that its members have another priority", func(ctx context.Context) bool {
		g := podGroup(ctx, client, "wrong")
		return condition(g) == "False SchedulerError" && strings.Contains(groupMessage(g), "should have the same priority as the pod group's priority")
	})
	some := members("right", "r", 2)
	for _, p := range some {
		p.Spec.PriorityClassName = "priority-100"
	}
	create(t, client, some...)
	eventually(t, "the other group to be bound", func(ctx context.Context) bool { return boundPods(ctx, client) == 2 })
	if p := get(t.Context(), client, "w-0"); p.Spec.NodeName != "" {
		t.Errorf("a member of another priority than its group's was bound to %s", p.Spec.NodeName)
	}
}

// foreignMember: a member that another scheduler is to place, and hasn't placed, doesn't count.
func foreignMember(t *testing.T, client kubernetes.Interface) {
	createGroup(t, client, gang("mixed", 2, ""))
	both := members("mixed", "m", 2)
	both[1].Spec.SchedulerName = "another"
	create(t, client, both...)
	createGroup(t, client, gang("whole", 2, ""))
	create(t, client, members("whole", "o", 2)...)
	eventually(t, "the whole group to be bound", func(ctx context.Context) bool { return boundPods(ctx, client) == 2 })
	for _, name := range []string{"m-0", "m-1"} {
		if p := get(t.Context(), client, name); p.Spec.NodeName != "" {
			t.Errorf("%s was bound to %s though the other member isn't ours", name, p.Spec.NodeName)
		}
	}
}

// deletedGroup: a group that is deleted stays while pods are its members; when it is gone nevertheless, its
// pods wait for it, and are placed when there is one of its name again.
func deletedGroup(t *testing.T, client kubernetes.Interface) {
	createGroup(t, client, gang("gone", 3, ""))
	create(t, client, members("gone", "g", 2)...)
	groups := client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault)
	if err := groups.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if g := podGroup(t.Context(), client, "gone"); g == nil || g.DeletionTimestamp == nil {
		t.Fatalf("the group is %v, want one that is being deleted", g)
	}
	patchGroup(t, client, "gone", `{"metadata":{"finalizers":null}}`)
	eventually(t, "the group to be gone", func(ctx context.Context) bool { return podGroup(ctx, client, "gone") == nil })
	create(t, client, members("gone", "h", 1)...)
	createGroup(t, client, gang("whole", 2, ""))
	create(t, client, members("whole", "o", 2)...)
	eventually(t, "the whole group to be bound", func(ctx context.Context) bool { return boundPods(ctx, client) == 2 })
	if p := get(t.Context(), client, "g-0"); p.Spec.NodeName != "" {
		t.Errorf("g-0 was bound to %s, and its group is gone", p.Spec.NodeName)
	}
	for _, name := range []string{"o-0", "o-1"} {
		if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	createGroup(t, client, gang("gone", 3, ""))
	eventually(t, "the members to be bound when the group is there again", func(ctx context.Context) bool {
		return get(ctx, client, "g-0").Spec.NodeName != "" && get(ctx, client, "g-1").Spec.NodeName != "" && get(ctx, client, "h-0").Spec.NodeName != ""
	})
}

// groupLeaves: all members of a group that is disrupted only as a whole leave for one pod of a higher
// priority.
func groupLeaves(t *testing.T, client kubernetes.Interface) {
	low := gang("low", 4, "")
	low.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	createGroup(t, client, low)
	create(t, client, members("low", "l", 4)...)
	eventually(t, "the group to be bound", func(ctx context.Context) bool { return boundPods(ctx, client) == 4 })
	vip := pod("vip", "2")
	vip.Spec.PriorityClassName = "priority-1000"
	create(t, client, vip)
	eventually(t, "the pod to be bound, and all members to be gone", func(ctx context.Context) bool {
		return get(ctx, client, "vip").Spec.NodeName != "" && get(ctx, client, "l-0").Name+get(ctx, client, "l-1").Name+get(ctx, client, "l-2").Name+get(ctx, client, "l-3").Name == ""
	})
}

// requiredDomain: a gang goes to the one rack that has room for it.
func requiredDomain(t *testing.T, client kubernetes.Interface) {
	for node, rack := range map[string]string{"n1": "a", "n2": "b"} {
		if _, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/rack":%q}}}`, rack), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	filler := pod("filler", "3")
	filler.Spec.NodeSelector = map[string]string{v1.LabelHostname: "n1"}
	create(t, client, filler)
	eventually(t, "the filler to be bound", func(ctx context.Context) bool { return boundPods(ctx, client) == 1 })
	createGroup(t, client, gang("racked", 2, "example.com/rack"))
	create(t, client, members("racked", "k", 2)...)
	eventually(t, "the gang to be bound in rack b", func(ctx context.Context) bool {
		return get(ctx, client, "k-0").Spec.NodeName == "n2" && get(ctx, client, "k-1").Spec.NodeName == "n2"
	})
}

// TestAGroupThatIsDisruptedSaysSo: the members of a group that leave carry the condition DisruptionTarget, and
// so does their PodGroup. kube-scheduler 1.37 defines the group's condition and doesn't write it.
func TestAGroupThatIsDisruptedSaysSo(t *testing.T) {
	t.Parallel()
	c, client := startGroupCluster(t)
	startBerth(t, c)
	makeNode(t, client, "n1", "8Gi")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	low := gang("low", 2, "")
	low.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	createGroup(t, client, low)
	create(t, client, members("low", "l", 2)...)
	eventually(t, "the group to be bound", func(ctx context.Context) bool { return boundPods(ctx, client) == 2 })
	vip := pod("vip", "1")
	vip.Spec.PriorityClassName = "high"
	create(t, client, vip)
	eventually(t, "the group to have the condition", func(ctx context.Context) bool {
		g := podGroup(ctx, client, "low")
		c := meta.FindStatusCondition(g.Status.Conditions, schedulingv1beta1.DisruptionTarget)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == schedulingv1beta1.PodGroupReasonPreemptionByScheduler
	})
	eventually(t, "the pod to be bound", func(ctx context.Context) bool { return get(ctx, client, "vip").Spec.NodeName != "" })
}

// TestPodGroupsThatAreNotServed has an API server that keeps the groups of pods and doesn't serve PodGroups: the
// members wait, and say for what, while other pods are placed.
func TestPodGroupsThatAreNotServed(t *testing.T) {
	t.Parallel()
	c, client, err := bringUp(t, controlplane.Options{AuditLog: newAuditLog(t), APIServerFlags: []string{"--feature-gates=GenericWorkload=true"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	startBerth(t, c)
	makeNode(t, client, "n1", "8Gi")
	create(t, client, members("absent", "a", 2)...)
	create(t, client, pod("single", "1"))
	eventually(t, "a pod without a group to run", func(ctx context.Context) bool { return get(ctx, client, "single").Status.Phase == v1.PodRunning })
	eventually(t, "the members to say what they wait for", func(ctx context.Context) bool {
		return strings.Contains(refusal(get(ctx, client, "a-0")), `waiting for pods's pod group "absent" to appear`)
	})
	if n := boundPods(t.Context(), client); n != 1 {
		t.Errorf("%d pods are bound, want the one without a group", n)
	}
}

// TestPodGroupsWithoutTheGate has kube-scheduler without GenericWorkload, and Berth with that gate off, place the
// members of a gang that lacks one: by themselves.
func TestPodGroupsWithoutTheGate(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *controlplane.Cluster){
		"kube-scheduler": func(t *testing.T, c *controlplane.Cluster) {
			startScheduler(t, c, schedulerConfig(t, c, schedulerDefaults))
		},
		"berth": func(t *testing.T, c *controlplane.Cluster) { startBerth(t, c, "--feature-gates=GenericWorkload=false") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, client := startGroupCluster(t)
			start(t, c)
			makeNode(t, client, "n1", "8Gi")
			createGroup(t, client, gang("short", 3, ""))
			create(t, client, members("short", "s", 2)...)
			eventually(t, "the two members to be bound", func(ctx context.Context) bool { return boundPods(ctx, client) == 2 })
		})
	}
}

// gang returns a group of which minCount members have to be placed together, in one domain of a label if it
// isn't "".
func gang(name string, minCount int32, label string) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}
	if label != "" {
		g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: label}}}
	}
	return g
}

// members returns pods of a group that request two CPUs each: two fit on a node.
func members(group, prefix string, n int) (out []*v1.Pod) {
	for i := range n {
		p := pod(fmt.Sprintf("%s-%d", prefix, i), "2")
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
		out = append(out, p)
	}
	return out
}

func createGroup(t *testing.T, client kubernetes.Interface, g *schedulingv1beta1.PodGroup) {
	t.Helper()
	if _, err := client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).Create(t.Context(), g, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func patchGroup(t *testing.T, client kubernetes.Interface, name, patch string) {
	t.Helper()
	if _, err := client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// podGroup returns a group of the namespace default, nil if it can't be read.
func podGroup(ctx context.Context, client kubernetes.Interface, name string) *schedulingv1beta1.PodGroup {
	g, err := client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return g
}

// onlyGroup returns the one group that there is, nil otherwise.
func onlyGroup(ctx context.Context, client kubernetes.Interface) *schedulingv1beta1.PodGroup {
	list, err := client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		return nil
	}
	return &list.Items[0]
}

// condition returns status and reason of a group's PodGroupInitiallyScheduled, "" for none.
func condition(g *schedulingv1beta1.PodGroup) string {
	if g == nil {
		return ""
	}
	c := meta.FindStatusCondition(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	if c == nil {
		return ""
	}
	return fmt.Sprint(c.Status, " ", c.Reason)
}

// groupMessage returns the words of a group's PodGroupInitiallyScheduled.
func groupMessage(g *schedulingv1beta1.PodGroup) string {
	if c := meta.FindStatusCondition(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled); c != nil {
		return c.Message
	}
	return ""
}

// boundPods returns how many pods of the namespace default have a node, -1 if they can't be read.
func boundPods(ctx context.Context, client kubernetes.Interface) int {
	list, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return -1
	}
	return len(list.Items)
}

// createJob creates a Job of pods that request two CPUs each and don't end by themselves.
func createJob(t *testing.T, client kubernetes.Interface, name string, pods int32, scheduling *batchv1.JobSchedulingConfiguration) {
	t.Helper()
	worker := pod("", "2")
	worker.Spec.RestartPolicy = v1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Parallelism: ptr.To(pods), Completions: ptr.To(pods), Scheduling: scheduling,
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: worker.Annotations}, Spec: worker.Spec}}}
	if _, err := client.BatchV1().Jobs(v1.NamespaceDefault).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// deleteJob deletes a Job and its pods.
func deleteJob(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	if err := client.BatchV1().Jobs(v1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
}

// removePods deletes all pods and all groups of the namespace default, and waits until they are gone.
func removePods(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	all, now := metav1.ListOptions{}, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).DeleteCollection(t.Context(), now, all); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Pods(v1.NamespaceDefault).DeleteCollection(t.Context(), now, all); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods and groups to be gone", func(ctx context.Context) bool {
		pods, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, all)
		groups, groupErr := client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).List(ctx, all)
		return err == nil && groupErr == nil && len(pods.Items)+len(groups.Items) == 0
	})
}
