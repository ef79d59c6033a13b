package core_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// signCounter signs nothing, and counts how often each pod is signed.
type signCounter struct{ signed map[types.UID]int }

func (signCounter) Name() string { return "Counter" }

func (c signCounter) Sign(p *cluster.Pod, _ *cluster.State, _, _ *framework.Signature) {
	c.signed[p.UID]++
}

func (signCounter) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{}, nil
}

// counting returns the default profile with a plugin that counts into signed.
func counting(signed map[types.UID]int) func(*cluster.Schema) *framework.Profile {
	return func(schema *cluster.Schema) *framework.Profile {
		p := plugins.Default(schema, plugins.Options{})
		p.Plugins = append(p.Plugins, framework.Weighted{Plugin: signCounter{signed}})
		return p
	}
}

// waitingPods returns pods that no node takes, of as many classes.
func waitingPods(n int) (out []step.Input) {
	for i := range n {
		out = append(out, step.PodSet{Pod: testkit.Pod(fmt.Sprint("p", i)).Label("app", fmt.Sprint(i)).
			Req("cpu", fmt.Sprint(64+i)).SpreadHard("zone", 1, "app", fmt.Sprint(i)).Obj()})
	}
	return out
}

// TestAStandbySignsPodsWhenItLeads: each pod once, whatever happened to it before, and once
// more when it is tried.
func TestAStandbySignsPodsWhenItLeads(t *testing.T) {
	const pods = 50
	signed := map[types.UID]int{}
	d := newDriven(t, autoscaling(func(a *core.Autoscale) {}), drive.Unanswered{}, counting(signed))
	now := time.Unix(1000, 0)
	for range 3 { // each pod has two updates
		if err := d.StandBy(now, append(waitingPods(pods), step.GroupsSet{}, step.NodeSet{Node: testkit.Node("n").Obj()})...); err != nil {
			t.Fatal(err)
		}
	}
	if len(signed) != 0 {
		t.Errorf("an instance that stands by has signed pods: %v", signed)
	}
	d.BecomeLeader(now)
	if len(signed) != pods {
		t.Errorf("a new leader has signed %d pods of %d", len(signed), pods)
	}
	for uid, times := range signed {
		if times != 1 {
			t.Errorf("a new leader has signed %s %d times, want once", uid, times)
		}
	}
	clear(signed)
	d.step(now)
	for uid, times := range signed {
		if times > 2 {
			t.Errorf("the first Step has signed %s %d times, want twice at most", uid, times)
		}
	}
	if got := d.Core().Queue().Unschedulable; got != pods {
		t.Errorf("%d pods have been tried in vain, want %d", got, pods)
	}
}

// TestANamespaceHasPodsSignedAgainThatItConcerns counts the pods that are signed again for a
// change of a namespace, while ten wait of which one has a term that selects namespaces.
func TestANamespaceHasPodsSignedAgainThatItConcerns(t *testing.T) {
	signed := map[types.UID]int{}
	d := newDriven(t, autoscaling(func(a *core.Autoscale) {}), drive.Unanswered{}, counting(signed))
	now := time.Unix(1000, 0)
	selects := testkit.Pod("selects").Req("cpu", "64").AffinityTerm(inTeam("red")).Obj()
	d.step(now, append(waitingPods(9), step.GroupsSet{}, step.PodSet{Pod: selects}, step.NodeSet{Node: testkit.Node("n").Obj()},
		step.ObjectSet{Object: testkit.Namespace("default", "env", "prod")}, step.ObjectSet{Object: testkit.Namespace("other", "env", "prod")})...)
	annotated := testkit.Namespace("other", "env", "prod")
	annotated.Annotations = map[string]string{"note": "new"}
	for _, c := range []struct {
		name string
		in   step.Input
		want int
	}{
		{"nothing", step.NodeGone{Name: "none"}, 0},
		{"an annotation", step.ObjectSet{Object: annotated}, 0},
		{"a label that no selector reads", step.ObjectSet{Object: testkit.Namespace("other", "env", "test")}, 0},
		{"a label that a selector reads, which doesn't select it", step.ObjectSet{Object: testkit.Namespace("other", "team", "blue")}, 0},
		{"the selector selects it", step.ObjectSet{Object: testkit.Namespace("other", "team", "red")}, 1},
		{"a namespace comes that nothing selects", step.ObjectSet{Object: testkit.Namespace("new")}, 0},
		{"it goes", step.ObjectGone{Kind: cluster.NamespaceKind, Name: "new"}, 0},
		{"the selected one goes", step.ObjectGone{Kind: cluster.NamespaceKind, Name: "other"}, 1},
	} {
		clear(signed)
		d.step(now, c.in)
		if len(signed) != c.want {
			t.Errorf("%s: %d pods are signed again, want %d", c.name, len(signed), c.want)
		}
	}
}

// inTeam selects the pods of namespaces of a team.
func inTeam(team string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: matching("app", "db"), NamespaceSelector: matching("team", team)}
}
