package dump

import (
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// writeRole writes the ClusterRole berth-dump, which has the rights that a dump needs.
func writeRole(out io.Writer) error {
	role := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: "berth-dump"}}
	at := map[string]int{} // rule of a group
	for _, r := range resources {
		i, known := at[r.group]
		if !known {
			i, at[r.group] = len(role.Rules), len(role.Rules)
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{r.group}, Verbs: []string{"list"}})
		}
		role.Rules[i].Resources = append(role.Rules[i].Resources, r.name)
	}
	text, err := yaml.Marshal(role)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
