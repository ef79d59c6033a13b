package live

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAReadOnlyClientWritesNothing: every verb that isn't reading fails before it is sent.
func TestAReadOnlyClientWritesNothing(t *testing.T) {
	api := &writtenAPI{}
	client, err := kubernetes.NewForConfig(ReadOnly(&rest.Config{Host: "http://api", QPS: -1, Transport: api}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, pods := t.Context(), client.CoreV1().Pods("ns")
	pod := testkit.Pod("p").Obj()
	for verb, write := range map[string]func() error{
		"create":        func() error { _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); return err },
		"update":        func() error { _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); return err },
		"update status": func() error { _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); return err },
		"patch": func() error {
			_, err := pods.Patch(ctx, "p", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		},
		"delete":           func() error { return pods.Delete(ctx, "p", metav1.DeleteOptions{}) },
		"deletecollection": func() error { return pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) },
		"bind": func() error {
			return pods.Bind(ctx, &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
		},
		"evict": func() error { return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p"}}) },
	} {
		if err := write(); !errors.Is(err, ErrShadow) {
			t.Errorf("%s: %v, want %v", verb, err, ErrShadow)
		}
	}
	if got := api.take(); len(got) > 0 {
		t.Errorf("sent was:\n%s", strings.Join(got, "\n"))
	}
	if _, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{}); err != nil {
		t.Errorf("reading: %v", err)
	}
}

// TestAReadOnlyProviderChangesNothing: it tells of groups, and refuses the rest.
func TestAReadOnlyProviderChangesNothing(t *testing.T) {
	under := &countingProvider{}
	p := readOnlyProvider{under}
	for call, do := range map[string]func() error{
		"IncreaseSize":       func() error { return p.IncreaseSize(t.Context(), "g", 1) },
		"DeleteNodes":        func() error { return p.DeleteNodes(t.Context(), "g", []nodegroup.Instance{{ID: "i"}}) },
		"DecreaseTargetSize": func() error { return p.DecreaseTargetSize(t.Context(), "g", 1) },
	} {
		if err := do(); !errors.Is(err, ErrShadow) || !strings.Contains(err.Error(), "node group g") {
			t.Errorf("%s: %v, want %v, with the group", call, err, ErrShadow)
		}
	}
	groups, err := p.Groups(t.Context())
	if err != nil || len(groups) != 1 || p.GroupOf(testkit.Node("n").Obj()) != "g" || under.changes != 0 {
		t.Errorf("groups %v, %v, and %d changes; want one group, and no change", groups, err, under.changes)
	}
}

// countingProvider has one group, and counts what would change it.
type countingProvider struct{ changes int }

func (*countingProvider) Groups(context.Context) ([]nodegroup.Group, error) {
	return []nodegroup.Group{{ID: "g"}}, nil
}
func (*countingProvider) GroupOf(*v1.Node) string { return "g" }
func (p *countingProvider) IncreaseSize(context.Context, string, int) error {
	p.changes++
	return nil
}

func (p *countingProvider) DeleteNodes(context.Context, string, []nodegroup.Instance) error {
	p.changes++
	return nil
}

func (p *countingProvider) DecreaseTargetSize(context.Context, string, int) error {
	p.changes++
	return nil
}

// TestAShadowsWorkersRefuseAllWork: whatever is owed an outcome gets it, once.
func TestAShadowsWorkersRefuseAllWork(t *testing.T) {
	w := shadowWorkers{plan: func(func() *autoscaler.Plan, func(*autoscaler.Plan)) {}}
	var outcomes []error
	work := allWork(t, func(err error) { outcomes = append(outcomes, err) })
	owed := 0
	for kind, do := range work {
		outcomes = nil
		do(w)
		for _, err := range outcomes {
			if !errors.Is(err, ErrShadow) {
				t.Errorf("%s: %v, want %v", kind, err, ErrShadow)
			}
		}
		owed += len(outcomes)
	}
	// Three binds, and one of each other kind but Cancel, Condition, Event, DecreaseTarget and Plan.
	if want := 3 + len(work) - 6; owed != want {
		t.Errorf("%d outcomes, want %d", owed, want)
	}
}
