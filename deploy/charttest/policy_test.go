package charttest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestSchedulerNamePolicy: the API server gives pods of selected namespaces Berth's schedulerName, and no pod that
// names a scheduler or a node, none of another namespace, and none of kube-system, whatever its labels.
func TestSchedulerNamePolicy(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	chosen := map[string]string{"berth.dev/scheduler": "berth"}
	for _, name := range []string{"chosen", "other"} {
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == "chosen" {
			ns.Labels = chosen
		}
		_, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		must(t, err)
	}
	// Somebody labels the namespace of the cluster's own pods after all.
	eventually(t, "kube-system", func(ctx context.Context) bool {
		ns, err := c.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if err != nil {
			return false
		}
		ns.Labels["berth.dev/scheduler"] = "berth"
		_, err = c.client.CoreV1().Namespaces().Update(ctx, ns, metav1.UpdateOptions{})
		return err == nil
	})
	must(t, c.install(policyFor("{matchLabels: {berth.dev/scheduler: berth}}")))
	eventually(t, "the policy to be in force", func(ctx context.Context) bool {
		return c.schedulerOf(ctx, "chosen", v1.PodSpec{}) == "berth"
	})
	for _, x := range []struct {
		namespace string
		spec      v1.PodSpec
		want      string
	}{
		{"chosen", v1.PodSpec{SchedulerName: "default-scheduler"}, "berth"},
		{"chosen", v1.PodSpec{SchedulerName: "volcano"}, "volcano"},
		{"chosen", v1.PodSpec{NodeName: "n1"}, "default-scheduler"},
		{"other", v1.PodSpec{}, "default-scheduler"},
		{"default", v1.PodSpec{}, "default-scheduler"},
		{namespace, v1.PodSpec{}, "default-scheduler"},
	} {
		if got := c.schedulerOf(ctx, x.namespace, x.spec); got != x.want {
			t.Errorf("a pod in %s with the scheduler %q and the node %q gets the scheduler %s, want %s", x.namespace, x.spec.SchedulerName, x.spec.NodeName, got, x.want)
		}
	}
	must(t, c.uninstall())
	eventually(t, "the policy to be gone", func(ctx context.Context) bool {
		return c.schedulerOf(ctx, "chosen", v1.PodSpec{}) == "default-scheduler"
	})
	c.sparesItsOwnNamespace("own", chosen)
}

// sparesItsOwnNamespace creates the policy of a chart that is installed in a namespace of its own which has the labels that
// are selected: new pods of that namespace and of kube-system, which has them too, keep their scheduler.
func (c *cluster) sparesItsOwnNamespace(own string, selected map[string]string) {
	t := c.t
	t.Helper()
	ctx := t.Context()
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own, Labels: selected}}, metav1.CreateOptions{})
	must(t, err)
	r, err := releaseIn(t, own, policyFor("{matchLabels: {berth.dev/scheduler: berth}}"), current)
	must(t, err)
	created := 0
	for _, o := range parse(t, []byte(r.Manifest)) {
		if strings.HasPrefix(o.GetKind(), "MutatingAdmissionPolicy") {
			must(t, c.createWith(o, metav1.CreateOptions{}))
			created++
		}
	}
	if created != 2 {
		t.Fatalf("the chart in %s has %d objects of the policy, want the policy and its binding", own, created)
	}
	eventually(t, "the policy of the chart in "+own+" to be in force", func(ctx context.Context) bool {
		return c.schedulerOf(ctx, "chosen", v1.PodSpec{}) == "berth"
	})
	for _, spared := range []string{own, namespace} {
		if got := c.schedulerOf(ctx, spared, v1.PodSpec{}); got != "default-scheduler" {
			t.Errorf("with the chart in %s a new pod in %s gets the scheduler %s, want default-scheduler", own, spared, got)
		}
	}
}

// TestSchedulerNamePolicyFailsAsChosen: while the policy can't be evaluated, new pods of selected namespaces are admitted as
// they are, or refused, as failurePolicy says; those of other namespaces and of kube-system are never refused. The
// policy's expression is exchanged for one that has an error for every pod.
func TestSchedulerNamePolicyFailsAsChosen(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	for _, name := range []string{"chosen", "other"} {
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}}
		_, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		must(t, err)
	}
	for _, x := range []struct{ policy, want string }{
		{"Ignore", "default-scheduler"},
		{"Fail", "denied"},
	} {
		values := policyFor("{matchLabels: {team: chosen}}")
		values["schedulerNamePolicy"].(map[string]any)["failurePolicy"] = x.policy
		must(t, c.install(values))
		eventually(t, "the policy to be in force", func(ctx context.Context) bool { return c.schedulerOf(ctx, "chosen", v1.PodSpec{}) == "berth" })
		policies := c.client.AdmissionregistrationV1().MutatingAdmissionPolicies()
		p, err := policies.Get(ctx, "berth-scheduler-name", metav1.GetOptions{})
		must(t, err)
		p.Spec.Mutations[0].ApplyConfiguration.Expression = "Object{spec: Object.spec{schedulerName: object.metadata.annotations['nobody/has-it']}}"
		_, err = policies.Update(ctx, p, metav1.UpdateOptions{})
		must(t, err)
		eventually(t, "pods to be treated as "+x.policy+" says", func(ctx context.Context) bool {
			return strings.Contains(c.schedulerOf(ctx, "chosen", v1.PodSpec{}), x.want)
		})
		for _, spared := range []string{"other", namespace} {
			if got := c.schedulerOf(ctx, spared, v1.PodSpec{}); got != "default-scheduler" {
				t.Errorf("with %s a new pod in %s gets %s, want default-scheduler", x.policy, spared, got)
			}
		}
		must(t, c.uninstall())
		eventually(t, "the policy to be gone", func(ctx context.Context) bool {
			return c.schedulerOf(ctx, "chosen", v1.PodSpec{}) == "default-scheduler"
		})
	}
}

// policyFor returns the values of a policy for the namespaces that a selector selects.
func policyFor(selector string) map[string]any {
	v := map[string]any{}
	if err := yaml.Unmarshal([]byte("schedulerNamePolicy: {enabled: true, namespaceSelector: "+selector+"}"), &v); err != nil {
		panic(err)
	}
	return v
}

// schedulerOf returns which scheduler the API server would give a new pod, or its error.
func (c *cluster) schedulerOf(ctx context.Context, namespace string, spec v1.PodSpec) string {
	spec.Containers = []v1.Container{{Name: "c", Image: "none"}}
	p, err := c.client.CoreV1().Pods(namespace).Create(ctx, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err.Error()
	}
	return p.Spec.SchedulerName
}

// TestPoliciesThatSelectTooMuch: a selector that selects kube-system or Berth's own namespace, as far as that can be
// known, is refused by the namespace's name.
func TestPoliciesThatSelectTooMuch(t *testing.T) {
	const all = "[kube-system, own]"
	for _, x := range []struct{ selector, refused string }{
		{"{}", "kube-system"},
		{"{matchLabels: {team: a}}", ""},
		{"{matchLabels: {kubernetes.io/metadata.name: kube-system}}", "kube-system"},
		{"{matchLabels: {kubernetes.io/metadata.name: own}}", "own"},
		{"{matchLabels: {kubernetes.io/metadata.name: own, team: a}}", ""},
		{"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [default, own]}]}", "own"},
		{"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [default]}]}", ""},
		{"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}]}", "kube-system"},
		{"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}", "own"},
		{"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: " + all + "}]}", ""},
		{"{matchExpressions: [{key: team, operator: DoesNotExist}]}", "kube-system"},
		{"{matchExpressions: [{key: team, operator: NotIn, values: [a]}]}", "kube-system"},
		{"{matchExpressions: [{key: team, operator: Exists}]}", ""},
		{"{matchExpressions: [{key: team, operator: DoesNotExist}, {key: kubernetes.io/metadata.name, operator: NotIn, values: " + all + "}]}", ""},
	} {
		r, err := releaseIn(t, "own", policyFor(x.selector), current)
		switch want := fmt.Sprintf("schedulerNamePolicy.namespaceSelector selects the namespace %s,", x.refused); {
		case x.refused != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want …%s…", x.selector, err, want)
			}
		case err != nil:
			t.Errorf("%s: %v", x.selector, err)
		case !strings.Contains(r.Manifest, "kind: MutatingAdmissionPolicyBinding") || !strings.Contains(r.Manifest, "failurePolicy: Ignore"):
			t.Errorf("%s: there is no policy", x.selector)
		}
	}
	if _, err := template(t, policyFor("{matchLabels: {team: a}}"), "v1.35.4"); err == nil || !strings.Contains(err.Error(), "schedulerNamePolicy.enabled needs Kubernetes 1.36 or newer") {
		t.Errorf("on Kubernetes 1.35: %v", err)
	}
}
