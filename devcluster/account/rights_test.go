package account

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// event returns a line of an audit log: an account of a configuration asks for a path of an
// object, and a role of the kind that the reason names allows it.
func event(user, verb, ref, decision, reason string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":%q,"user":{"username":%q},"objectRef":%s,"annotations":{"authorization.k8s.io/decision":%q,"authorization.k8s.io/reason":%q}}`+"\n",
		verb, user, ref, decision, reason)
}

func TestUnused(t *testing.T) {
	const user = "system:serviceaccount:kube-system:berth-base"
	log := event(user, "list", `{"resource":"pods","apiVersion":"v1"}`, "allow", "RBAC: allowed by …") +
		event(user, "patch", `{"resource":"pods","namespace":"default","name":"p","subresource":"status"}`, "allow", "") +
		event(user, "get", `{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"kube-system","name":"berth"}`, "allow", "") +
		event(user, "update", `{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"other","name":"berth"}`, "allow", "") +
		event(user, "delete", `{"resource":"pods","namespace":"default","name":"p"}`, "forbid", "") +
		event(user, "create", `{"resource":"tokenreviews","apiGroup":"authentication.k8s.io"}`, "allow", `RBAC: allowed by ClusterRoleBinding "berth-auth-delegator-base" of ClusterRole "system:auth-delegator" to ServiceAccount "berth-base/kube-system"`) +
		event("system:serviceaccount:kube-system:other", "watch", `{"resource":"pods"}`, "allow", "") +
		event("admin", "watch", `{"resource":"pods"}`, "allow", "") + `{"kind":"Event","not whole`
	asked, err := ReadAudit(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	rules := func(group, resource, names string, verbs ...string) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		if names != "" {
			r.ResourceNames = []string{names}
		}
		return r
	}
	rights := Rights([]runtime.Object{
		&v1.ServiceAccount{},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "berth-scheduling"}, Rules: []rbacv1.PolicyRule{rules("", "pods", "", "list", "watch", "delete"), rules("", "pods/status", "", "patch")}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "berth-viewer"}, Rules: []rbacv1.PolicyRule{rules("", "secrets", "", "get")}}, // bound to nobody
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "berth-electing"}, Rules: []rbacv1.PolicyRule{rules("coordination.k8s.io", "leases", "berth", "get", "update")}},
		&rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Name: "system:auth-delegator"}},
		&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Name: "extension-apiserver-authentication-reader"}},
		&rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "berth-scheduling"}},
		&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "berth-electing"}},
	})
	var got []string
	for _, r := range Unused(rights, asked) {
		got = append(got, r.String())
	}
	want := []string{"delete pods", "update leases.coordination.k8s.io berth in kube-system", "use role.rbac.authorization.k8s.io extension-apiserver-authentication-reader", "watch pods"}
	if !slices.Equal(got, want) {
		t.Errorf("unused are %q, want %q", got, want)
	}
	forbidden := slices.IndexFunc(asked, func(a Asked) bool { return a.Forbidden })
	if forbidden < 0 || asked[forbidden].Verb != "delete" || len(asked) != 6 {
		t.Errorf("asked for was %+v", asked)
	}
}

// TestAShadowMayWriteNothing: it may list and watch, and use two roles of the cluster's own. By
// one it asks who calls it and what they may do; by the other it reads one ConfigMap. One that
// compares nodes, too, may see what these have to run.
func TestAShadowMayWriteNothing(t *testing.T) {
	for configuration, sees := range map[string]string{"shadow": "watch pods", "shadow-nodes": "watch daemonsets.apps"} {
		objects, err := Objects(configuration)
		if err != nil {
			t.Fatal(err)
		}
		rights := Rights(objects)
		for _, r := range rights {
			uses := r == usedRole("system:auth-delegator") || r == usedRole("extension-apiserver-authentication-reader")
			if r.Verb != "list" && r.Verb != "watch" && !uses {
				t.Errorf("%s may %s", configuration, r)
			}
		}
		if !slices.ContainsFunc(rights, func(r Right) bool { return r.String() == sees }) {
			t.Errorf("%s may not %s, but %v", configuration, sees, rights)
		}
	}
}

// TestConfigurations: each kustomization has rights that another one hasn't got, and a
// configuration is chosen by the flags that need its rights.
func TestConfigurations(t *testing.T) {
	for configuration, want := range map[string]string{
		"base": "create pods/binding", "clusterapi": "update machinesets.cluster.x-k8s.io/scale", "external": "create pods/eviction", "simulated": "create nodes", "surge": "patch deployments.apps", "swap": "update leases.coordination.k8s.io kube-scheduler in kube-system", "autoscaler": "get leases.coordination.k8s.io cluster-autoscaler in kube-system",
	} {
		objects, err := Objects(configuration)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(Rights(objects), func(r Right) bool { return r.String() == want }) {
			t.Errorf("%s may not %s, but %v", configuration, want, Rights(objects))
		}
	}
	for flags, want := range map[string]string{
		"--shadow --v=2": "shadow", "--cloud-provider=externalgrpc --shadow": "shadow-nodes",
		"": "base", "--mode scheduler": "base", "--cloud-provider=simulated --scan-interval=1s": "simulated",
		"--cloud-provider=externalgrpc --v=2":   "external",
		"--cloud-provider=clusterapi":           "clusterapi",
		"--cloud-provider externalgrpc --surge": "surge", "--cloud-provider=externalgrpc --leader-elect-resource-name=kube-scheduler": "swap", "--cloud-provider=externalgrpc --mode=autoscaler": "autoscaler",
	} {
		if got := ConfigurationFor(strings.Fields(flags)); got != want {
			t.Errorf("the flags %q need %s, want %s", flags, got, want)
		}
	}
}
