package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/account"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file runs Berth beside programs that do the same work, with real Leases: it refuses.

// refused runs a Berth that must end by itself with an error, of which it returns the text.
func refused(t *testing.T, c *controlplane.Cluster, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"run", "--kubeconfig", asDeployed(t, c, flags...), "--secure-port", "0"}, flags...)
	out, err := exec.CommandContext(ctx, berth, args...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("berth %s ended with %v, want an error:\n%s", strings.Join(flags, " "), err, out)
	}
	return string(out)
}

// TestASecondSchedulerIsRefused has the real kube-scheduler run and stop beside Berths that place
// the same pods.
func TestASecondSchedulerIsRefused(t *testing.T) {
	const right = "get leases.coordination.k8s.io kube-scheduler in kube-system"
	c, client := startCluster(t, right)
	makeNode(t, client, "n1", "8Gi")
	scheduler := startScheduler(t, c, schedulerConfig(t, c, schedulerDefaults))
	within(t, "kube-scheduler to hold its Lease", time.Minute, holds(client, "kube-scheduler"))

	// Refused before it is a candidate.
	out := refused(t, c)
	for _, want := range []string{"a kube-scheduler is running", "renews the Lease kube-system/kube-scheduler", "--shadow", "--allow-second-scheduler"} {
		if !strings.Contains(out, want) {
			t.Errorf("it says\n%s\nwant %q in it", out, want)
		}
	}
	leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)
	if lease, err := leases.Get(t.Context(), "berth", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Berth's Lease is %v, %v; want none", lease, err)
	}

	// With the override it runs.
	second, log := startBerth(t, c, "--allow-second-scheduler")
	within(t, "the Berth with the override to lead", time.Minute, logs(log, `"taking over"`))
	second.Stop(10 * time.Second)

	// A kube-scheduler that has died leaves its Lease behind.
	scheduler.Kill()
	first, log := startBerth(t, c)
	within(t, "Berth to lead when kube-scheduler's Lease is over", time.Minute, logs(log, `"taking over"`))
	if text := logOf(t, log); !strings.Contains(text, "watching whether a Lease is renewed") {
		t.Errorf("it hasn't watched the Lease that a dead kube-scheduler has left:\n%s", text)
	}

	// One that has stood by finds a kube-scheduler that was started since.
	standby, log := startBerth(t, c)
	within(t, "another Berth to stand by", time.Minute, logs(log, "standing by: another instance is the leader"))
	startScheduler(t, c, schedulerConfig(t, c, schedulerDefaults))
	within(t, "the new kube-scheduler to take its Lease", time.Minute, func(ctx context.Context) bool {
		l, err := leases.Get(ctx, "kube-scheduler", metav1.GetOptions{})
		return err == nil && *l.Spec.LeaseTransitions > 0
	})
	first.Stop(10 * time.Second)
	within(t, "the Berth that stood by to end", time.Minute, func(context.Context) bool { return standby.Ended() })
	if text := logOf(t, log); !strings.Contains(text, "a kube-scheduler is running") || strings.Contains(text, `"ready"`) {
		t.Errorf("it has ended with\n%s", text)
	}
	create(t, client, pod("kube-schedulers", "100m"))
	within(t, "kube-scheduler to place a pod", time.Minute, func(ctx context.Context) bool { return get(ctx, client, "kube-schedulers").Spec.NodeName != "" })

	// Who may not look is warned, and runs.
	const role = "berth-scheduling-base"
	kubeconfig := asDeployed(t, c)
	if err := client.RbacV1().RoleBindings(metav1.NamespaceSystem).Delete(t.Context(), role, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to be gone", func(ctx context.Context) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: account.User("base"),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Namespace: metav1.NamespaceSystem, Name: "kube-scheduler", Verb: "get"}}}
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && !review.Status.Allowed
	})
	log = filepath.Join(t.TempDir(), "blind.log")
	blind, err := controlplane.StartProcess("berth", log, berth, "run", "--kubeconfig", kubeconfig, "--secure-port", "0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blind.Stop(10 * time.Second) })
	within(t, "the Berth that may not look to lead", time.Minute, logs(log, `"taking over"`))
	if text := logOf(t, log); !strings.Contains(text, "not authorized to get a Lease (403)") {
		t.Errorf("it says\n%s", text)
	}
}

// mayWriteStatus lets the Berth of a configuration write a status ConfigMap of another name, as the
// chart does for flags.status-config-map-name.
func mayWriteStatus(t *testing.T, client kubernetes.Interface, configuration, name string) {
	t.Helper()
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"get", "update"}},
	}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "status"}
	if _, err := client.RbacV1().Roles(meta.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name + "-" + configuration}}}
	if _, err := client.RbacV1().RoleBindings(meta.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to write the status", func(ctx context.Context) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: account.User(configuration),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Resource: "configmaps", Namespace: meta.Namespace, Name: name, Verb: "update"}}}
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	})
}

// statusLists returns a condition: that Cluster Autoscaler's status ConfigMap lists a node group.
func statusLists(client kubernetes.Interface, group string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		cm, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
		return err == nil && strings.Contains(cm.Data["status"], "name: "+group+"\n")
	}
}
