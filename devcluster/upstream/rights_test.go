package upstream

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/berthproject/berth/devcluster/account"
)

// Why Berth has rights that kube-scheduler doesn't have.
const (
	forHeadroom = "what asks for headroom, which Berth watches with a provider only"
	forGroups   = "kube-scheduler has it with the feature gate GenericWorkload only"
	ownLease    = "Berth's own Lease: in kube-scheduler's place it takes kube-scheduler's"
)

// beyondKubeScheduler are the rights of a Berth that only schedules and that kube-scheduler doesn't have.
var beyondKubeScheduler = map[string]string{
	"list capacitybuffers.autoscaling.x-k8s.io":              forHeadroom,
	"list deployments.apps":                                  forHeadroom,
	"list podgroups.scheduling.k8s.io":                       forGroups,
	"list podtemplates":                                      forHeadroom,
	"list provisioningrequests.autoscaling.x-k8s.io":         forHeadroom,
	"patch capacitybuffers.autoscaling.x-k8s.io/status":      forHeadroom,
	"patch podgroups.scheduling.k8s.io/status":               forGroups,
	"patch provisioningrequests.autoscaling.x-k8s.io/status": forHeadroom,
	"watch capacitybuffers.autoscaling.x-k8s.io":             forHeadroom,
	"watch deployments.apps":                                 forHeadroom,
	"watch podgroups.scheduling.k8s.io":                      forGroups,
	"watch podtemplates":                                     forHeadroom,
	"watch provisioningrequests.autoscaling.x-k8s.io":        forHeadroom,
	"get leases.coordination.k8s.io berth in kube-system":    ownLease,
	"update leases.coordination.k8s.io berth in kube-system": ownLease,
}

// TestSchedulingNeedsNoMoreThanKubeScheduler: in kube-scheduler's place Berth has the rights that the API server
// gives kube-scheduler's user by default, and they are enough.
func TestSchedulingNeedsNoMoreThanKubeScheduler(t *testing.T) {
	objects, err := account.Objects("base")
	if err != nil {
		t.Fatal(err)
	}
	has, beyond := rulesOfKubeScheduler(), maps.Clone(beyondKubeScheduler)
	for _, r := range account.Rights(objects) {
		if r.Resource == "role" { // by which callers are identified; kubeadm has kube-scheduler use it, too
			continue
		}
		rule := rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{r.Group}, Resources: []string{r.Resource}}
		if r.Name != "" {
			rule.ResourceNames = []string{r.Name}
		}
		covered, _ := validation.Covers(has, []rbacv1.PolicyRule{rule})
		if _, known := beyond[r.String()]; covered == known {
			t.Errorf("kube-scheduler may %s: %t, and the list of what it may not has it: %t", r, covered, known)
		}
		delete(beyond, r.String())
	}
	if len(beyond) > 0 {
		t.Errorf("Berth doesn't have these rights, and the list of what kube-scheduler may not has them: %s", strings.Join(slices.Sorted(maps.Keys(beyond)), ", "))
	}
}

// rulesOfKubeScheduler returns what the API server lets kube-scheduler do in the whole cluster.
func rulesOfKubeScheduler() (out []rbacv1.PolicyRule) {
	held := map[string]bool{}
	for _, b := range bootstrappolicy.ClusterRoleBindings() {
		for _, s := range b.Subjects {
			held[b.RoleRef.Name] = held[b.RoleRef.Name] || s.Name == "system:kube-scheduler"
		}
	}
	for _, role := range bootstrappolicy.ClusterRoles() {
		if held[role.Name] {
			out = append(out, role.Rules...)
		}
	}
	return out
}
