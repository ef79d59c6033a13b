package defaultpreemption_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/defaultpreemption"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// pod is one that was started some seconds after 1970.
func pod(name string, priority int32, started int64) *testkit.PodBuilder {
	return testkit.Pod(name).Priority(priority).Started(started).Label("app", "web")
}

func waiting(name string, priority int32) *testkit.PodBuilder {
	return testkit.Pod(name).Priority(priority).Label("app", "web")
}

func parse(world *rt.Cluster, list rt.Pods) (out []*cluster.Pod) {
	for _, b := range list {
		out = append(out, world.Parse(b))
	}
	return out
}

func names(pods []*cluster.Pod) string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Object.Name)
	}
	return strings.Join(out, " ")
}

func TestEligible(t *testing.T) {
	never, lower := v1.PreemptNever, v1.PreemptLowerPriority
	schema := cluster.NewSchema()
	sign := func(b *testkit.PodBuilder) string {
		var sig framework.Signature
		defaultpreemption.Plugin{}.SignPreemption(schema.ParsePod(b.Obj()), &sig)
		return string(sig.Bytes())
	}
	plain := sign(testkit.Pod("p"))
	for _, c := range []struct {
		name   string
		policy *v1.PreemptionPolicy
		want   string
	}{
		{"no policy", nil, ""},
		{"PreemptLowerPriority", &lower, ""},
		{"Never", &never, "not eligible due to preemptionPolicy=Never."},
	} {
		b := testkit.Pod("p").With(func(p *v1.Pod) { p.Spec.PreemptionPolicy = c.policy })
		got := defaultpreemption.Plugin{}.Eligible(schema.ParsePod(b.Obj()))
		switch {
		case c.want == "" && got != nil:
			t.Errorf("%s: %v, want the pod to be eligible", c.name, got.Messages)
		case c.want != "" && (got == nil || got.Messages[0] != c.want || !got.OfPod || got.Plugin != defaultpreemption.Name):
			t.Errorf("%s: %+v, want %q of the pod", c.name, got, c.want)
		}
		if differs := sign(b) != plain; differs != (c.want != "") {
			t.Errorf("%s: signed differently %v, want %v", c.name, differs, c.want != "")
		}
	}
}

// The pods of a node in the order in which they are to be kept: first those whose
// eviction violates a budget. That doesn't depend on the version unless a case says so.
func TestOrder(t *testing.T) {
	budget := testkit.Budget
	gone := budget("b", 0, "app", "web")
	gone.Status.DisruptedPods = map[string]metav1.Time{"y": {}}
	empty := budget("b", 0, "app", "web")
	empty.Spec.Selector = &metav1.LabelSelector{}
	elsewhere := budget("b", 0, "app", "web")
	elsewhere.Namespace = "other"
	three := func() rt.Pods { return rt.Pods{pod("z", 1, 30), pod("x", 3, 10), pod("y", 2, 20)} }
	for _, c := range []struct {
		name      string
		budgets   []*policyv1.PodDisruptionBudget
		pods      rt.Pods
		violating string
		others    string
		only      compat.Version // zero: any
	}{
		{"by priority", nil, three(), "", "x y z", 0},
		{"then by start", nil, rt.Pods{pod("x", 1, 30), pod("y", 1, 10), pod("z", 1, 20)}, "", "y z x", 0},
		{"those that haven't started last", nil, rt.Pods{waiting("x", 1), pod("y", 1, 10)}, "", "y x", 0},
		{"then by UID", nil, rt.Pods{pod("y", 1, 10), pod("x", 1, 10)}, "", "x y", 0},
		{"no disruption allowed", []*policyv1.PodDisruptionBudget{budget("b", 0, "app", "web")}, three(), "x y z", "", 0},
		{"one disruption allowed: of the most important", []*policyv1.PodDisruptionBudget{budget("b", 1, "app", "web")}, three(), "y z", "x", 0},
		{"two disruptions allowed", []*policyv1.PodDisruptionBudget{budget("b", 2, "app", "web")}, three(), "z", "x y", 0},
		{"as many as there are", []*policyv1.PodDisruptionBudget{budget("b", 3, "app", "web")}, three(), "", "x y z", 0},
		{"of other pods", []*policyv1.PodDisruptionBudget{budget("b", 0, "app", "db")}, three(), "", "x y z", 0},
		{"of another namespace", []*policyv1.PodDisruptionBudget{elsewhere}, three(), "", "x y z", 0},
		{"that selects with an empty selector", []*policyv1.PodDisruptionBudget{empty}, three(), "", "x y z", 0},
		{"one that the API server has let go already", []*policyv1.PodDisruptionBudget{gone}, three(), "x z", "y", 0},
		{"of two budgets one is spent", []*policyv1.PodDisruptionBudget{budget("a", 2, "app", "web"), budget("b", 0, "app", "web")}, three(), "x y z", "", 0},
		{"of two budgets the other one is", []*policyv1.PodDisruptionBudget{budget("a", 0, "app", "web"), budget("b", 2, "app", "web")}, three(), "x y z", "", 0},
		{"both are spent by a pod that violates one", []*policyv1.PodDisruptionBudget{budget("a", 0, "tier", "front"), budget("b", 1, "app", "web")},
			rt.Pods{pod("x", 3, 10).Label("tier", "front"), pod("y", 2, 20)}, "x y", "", compat.V36},
		{"the first that a pod violates is the last that it is counted against", []*policyv1.PodDisruptionBudget{budget("a", 0, "tier", "front"), budget("b", 1, "app", "web")},
			rt.Pods{pod("x", 3, 10).Label("tier", "front"), pod("y", 2, 20)}, "x", "y", compat.V37},
		{"one that a pod doesn't violate is spent", []*policyv1.PodDisruptionBudget{budget("a", 1, "app", "web"), budget("b", 0, "tier", "front")},
			rt.Pods{pod("x", 3, 10).Label("tier", "front"), pod("y", 2, 20)}, "x y", "", 0},
		{"no pods", nil, nil, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := rt.NewCluster(t, nil, nil, nil)
			for _, b := range c.budgets {
				world.Set(b)
			}
			for _, v := range compat.Versions() {
				if c.only != 0 && c.only != v {
					continue
				}
				units := alone(parse(world, c.pods))
				n := defaultpreemption.New(v).Order(units, world.State)
				if violating, others := names(pods(units[:n])), names(pods(units[n:])); violating != c.violating || others != c.others {
					t.Errorf("%s: violating %q, others %q, want %q and %q", v, violating, others, c.violating, c.others)
				}
			}
		})
	}
}

// TestOrderOfGroups: of equal priority, groups whose members go together are kept before pods, larger
// ones before smaller ones. One with a pod that would violate a budget is kept as such a pod is.
func TestOrderOfGroups(t *testing.T) {
	world := rt.NewCluster(t, nil, nil, nil)
	world.Set(testkit.Budget("b", 1, "app", "db"))
	whole := func(list ...*testkit.PodBuilder) framework.Unit {
		return framework.Unit{Pods: parse(world, list), Group: true}
	}
	units := append(alone(parse(world, rt.Pods{pod("old", 1, 1), pod("high", 2, 50)})),
		whole(pod("a0", 1, 20), pod("a1", 1, 30)), whole(pod("b0", 1, 2), pod("b1", 1, 3)), whole(pod("c0", 1, 5)),
		whole(pod("d0", 0, 9).Label("app", "db"), pod("d1", 0, 9).Label("app", "db"), pod("d2", 0, 9)))
	violating := defaultpreemption.New(compat.V37).Order(units, world.State)
	if got, want := names(pods(units)), "d0 d1 d2 high b0 b1 a0 a1 c0 old"; got != want || violating != 1 || units[0].Violations != 1 {
		t.Errorf("they are kept in the order %q, %d of them violate, the first with %d pods; want %q, 1 and 1", got, violating, units[0].Violations, want)
	}
}

// alone returns pods that leave one by one.
func alone(list []*cluster.Pod) (out []framework.Unit) {
	for _, p := range list {
		out = append(out, framework.Unit{Pods: []*cluster.Pod{p}})
	}
	return out
}

// pods returns the pods of units.
func pods(units []framework.Unit) (out []*cluster.Pod) {
	for _, u := range units {
		out = append(out, u.Pods...)
	}
	return out
}

// TestSuccess: kube-scheduler says since 1.37 for which node it preempts.
func TestSuccess(t *testing.T) {
	for v, want := range map[compat.Version]string{compat.V36: "", compat.V37: "found a potential placement for pod on node n1, preempting 2 victims"} {
		if got := defaultpreemption.New(v).Success("n1", 2); got != want {
			t.Errorf("%s: %q, want %q", v, got, want)
		}
	}
}

// Each case is two nodes with their victims, of which the first costs less.
func TestCost(t *testing.T) {
	const lowest = -1 << 31
	type victims struct {
		violations int
		pods       rt.Pods
	}
	for _, c := range []struct {
		name        string
		less, other victims
	}{
		{"fewer budgets violated, whatever the priorities", victims{0, rt.Pods{pod("x", 9, 1), pod("y", 9, 1)}}, victims{1, rt.Pods{pod("z", 1, 2)}}},
		{"the lower of the highest priorities, whatever the sums", victims{0, rt.Pods{pod("x", 4, 1), pod("y", 4, 1)}}, victims{0, rt.Pods{pod("z", 5, 2)}}},
		{"the lower sum of priorities", victims{0, rt.Pods{pod("x", 5, 1), pod("y", 1, 1)}}, victims{0, rt.Pods{pod("z", 5, 2), pod("w", 2, 2)}}},
		{"fewer victims", victims{0, rt.Pods{pod("x", 5, 1)}}, victims{0, rt.Pods{pod("z", 5, 2), pod("w", 0, 2)}}},
		{"fewer victims of negative priorities", victims{0, rt.Pods{pod("x", -5, 1)}}, victims{0, rt.Pods{pod("z", -5, 2), pod("w", -9, 2)}}},
		// The lowest priority adds nothing to the sum.
		{"fewer victims of the same sum", victims{0, rt.Pods{pod("x", 5, 1)}}, victims{0, rt.Pods{pod("z", 5, 2), pod("w", lowest, 2)}}},
		{"the later start", victims{0, rt.Pods{pod("x", 5, 2)}}, victims{0, rt.Pods{pod("z", 5, 1)}}},
		{"of the pods of the highest priority", victims{0, rt.Pods{pod("x", 5, 2), pod("y", 1, 0)}}, victims{0, rt.Pods{pod("z", 5, 1), pod("w", 1, 9)}}},
		{"of the first of them", victims{0, rt.Pods{pod("x", 5, 2), pod("y", 5, 3)}}, victims{0, rt.Pods{pod("z", 5, 9), pod("w", 5, 1)}}},
		{"one that hasn't started", victims{0, rt.Pods{waiting("x", 5)}}, victims{0, rt.Pods{pod("z", 5, 1)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := rt.NewCluster(t, nil, nil, nil)
			cost := func(v victims) framework.PreemptionCost {
				return defaultpreemption.Plugin{}.Cost(&framework.Victims{Pods: parse(world, v.pods), Violations: v.violations})
			}
			less, other := cost(c.less), cost(c.other)
			if less.Compare(&other) != -1 {
				t.Errorf("costs %v and %v, want the first to be lower", less, other)
			}
			same := cost(c.less)
			if less.Compare(&same) != 0 {
				t.Errorf("costs %v and %v of the same victims", less, same)
			}
		})
	}
}

func TestCostSortsVictims(t *testing.T) {
	world := rt.NewCluster(t, nil, nil, nil)
	v := framework.Victims{Pods: parse(world, rt.Pods{pod("x", 1, 1), pod("y", 2, 2), pod("z", 2, 1)})}
	defaultpreemption.Plugin{}.Cost(&v)
	if got := names(v.Pods); got != "z y x" {
		t.Errorf("victims %q, want the most important first: z y x", got)
	}
}
