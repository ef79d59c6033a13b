package framework_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

func TestExtenderConcernsPodsWithItsResources(t *testing.T) {
	gpus := v1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	limited := testkit.Pod("p")
	limited.Spec.Containers[0].Resources.Limits = gpus
	initial := testkit.Pod("p")
	initial.Spec.InitContainers = []v1.Container{{}, {Resources: v1.ResourceRequirements{Requests: gpus}}}
	for _, c := range []struct {
		name    string
		managed []string
		pod     *testkit.PodBuilder
		want    bool
	}{
		{"no resources managed: every pod", nil, testkit.Pod("p"), true},
		{"requested", []string{"example.com/fpga", "example.com/gpu"}, testkit.Pod("p").Req("example.com/gpu", "1"), true},
		{"limited", []string{"example.com/gpu"}, limited, true},
		{"by an init container", []string{"example.com/gpu"}, initial, true},
		{"another resource", []string{"example.com/gpu"}, testkit.Pod("p").Req("cpu", "1"), false},
	} {
		x := framework.Extender{Managed: c.managed}
		if got := x.Concerns(c.pod.Obj()); got != c.want {
			t.Errorf("%s: concerns %v, want %v", c.name, got, c.want)
		}
	}
}

// What a profile's extenders are asked about a pod that only one of them concerns.
func TestProfileAsksExtendersThatConcernThePod(t *testing.T) {
	gpu, fpga := testkit.Pod("p").Req("example.com/gpu", "1").Obj(), testkit.Pod("q").Req("example.com/fpga", "1").Obj()
	for _, c := range []struct {
		name                     string
		extender                 framework.Extender
		consults, victims, binds bool
	}{
		{"filters", framework.Extender{Filters: true}, true, false, false},
		{"prioritizes", framework.Extender{Prioritizes: true}, true, false, false},
		{"preempts", framework.Extender{Preempts: true}, false, true, false},
		{"binds", framework.Extender{Binds: true}, false, false, true},
	} {
		c.extender.Managed = []string{"example.com/gpu"}
		p := &framework.Profile{Extenders: []framework.Extender{{Managed: []string{"example.com/other"}, Filters: true, Preempts: true, Binds: true}, c.extender}}
		if got := p.Consults(gpu); got != c.consults {
			t.Errorf("%s: consults %v, want %v", c.name, got, c.consults)
		}
		if got := p.ConsultsVictims(gpu); got != c.victims {
			t.Errorf("%s: consults about victims %v, want %v", c.name, got, c.victims)
		}
		if got := p.ExtenderBinds(gpu); got != c.binds {
			t.Errorf("%s: an extender binds %v, want %v", c.name, got, c.binds)
		}
		if p.Consults(fpga) || p.ConsultsVictims(fpga) || p.ExtenderBinds(fpga) {
			t.Errorf("%s: asked about a pod that concerns no extender", c.name)
		}
	}
}

func TestPreemptionCostComparesTheFirstDifference(t *testing.T) {
	for _, c := range []struct {
		a, b framework.PreemptionCost
		want int
	}{
		{framework.PreemptionCost{1, 2, 3, 4, 5}, framework.PreemptionCost{1, 2, 3, 4, 5}, 0},
		{framework.PreemptionCost{0, 9, 9, 9, 9}, framework.PreemptionCost{1, 0, 0, 0, 0}, -1},
		{framework.PreemptionCost{1, 2, 3, 4, 6}, framework.PreemptionCost{1, 2, 3, 4, 5}, 1},
		{framework.PreemptionCost{0, -1}, framework.PreemptionCost{0, -2}, 1},
	} {
		if got := c.a.Compare(&c.b); got != c.want {
			t.Errorf("%v compared with %v is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
