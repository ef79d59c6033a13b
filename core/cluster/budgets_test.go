package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

func TestBudgets(t *testing.T) {
	s := newState()
	budget := func(namespace, name string, selector *metav1.LabelSelector, gone ...string) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
		for _, pod := range gone {
			b.Status.DisruptedPods = map[string]metav1.Time{pod: {}}
		}
		return b
	}
	app := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	unreadable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	notDB := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"}}}}
	for _, o := range []*policyv1.PodDisruptionBudget{
		budget("default", "web", app("web")), budget("default", "db", app("db")), budget("default", "all", &metav1.LabelSelector{}), budget("default", "none", nil),
		budget("default", "bad", unreadable), budget("default", "let go", app("web"), "p"), budget("default", "not db", notDB), budget("other", "web", app("web")),
		budget("default", "two", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "back"}}),
		budget("default", "either", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"db", "cache"}}}}),
	} {
		s.SetObject(o)
	}
	selected := func(p *testkit.PodBuilder) (out []string) {
		pod := s.Schema.ParsePod(p.Obj())
		for _, b := range s.Budgets(p.Pod.Namespace) {
			if b.Selects(pod) {
				out = append(out, b.Name)
			}
		}
		var found, taken []string
		for _, b := range s.Budgets(p.Pod.Namespace) {
			if _, gone := b.Status.DisruptedPods[p.Pod.Name]; !gone && b.Covers(pod) {
				taken = append(taken, b.Name)
			}
		}
		for _, b := range s.AppendBudgets(nil, pod) {
			found = append(found, b.Name)
		}
		if !slices.Equal(found, taken) {
			t.Errorf("pod %s: AppendBudgets returns %v, of all its eviction takes from %v", pod.Name(), found, taken)
		}
		return out
	}
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		want string
	}{
		{"one that the API server has let go by one of them", testkit.Pod("p").Label("app", "web"), "[not db web]"},
		{"another", testkit.Pod("q").Label("app", "web"), "[let go not db web]"},
		{"of another namespace", testkit.Pod("q").Namespaced("other").Label("app", "web"), "[web]"},
		{"without labels", testkit.Pod("q"), "[]"},
	} {
		if got := fmt.Sprint(selected(c.pod)); got != c.want {
			t.Errorf("%s is selected by %s, want %s", c.name, got, c.want)
		}
	}
	var covering []string
	for _, b := range s.Budgets("default") {
		if b.Covers(s.Schema.ParsePod(testkit.Pod("p").Obj())) {
			covering = append(covering, b.Name)
		}
	}
	if got, want := fmt.Sprint(covering), "[all not db]"; got != want {
		t.Errorf("the eviction of a pod without labels is asked of %s, want %s", got, want)
	}
	s.RemoveObject(cluster.BudgetKind, "default", "web")
	s.SetObject(budget("default", "db", app("web")))
	if got := fmt.Sprint(selected(testkit.Pod("q").Label("app", "web"))); got != "[db let go not db]" {
		t.Errorf("after a removal and an update it is selected by %s", got)
	}
}
