package nodegroup_test

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestValidate checks what is reported to be wrong with groups.
func TestValidate(t *testing.T) {
	template := func(pairs ...string) *v1.Node { return testkit.Node("t").Alloc(pairs...).Obj() }
	good := template("cpu", "4", "memory", "8Gi", "pods", "10")
	for _, x := range []struct {
		name  string
		group nodegroup.Group
		want  string
	}{
		{"a group", nodegroup.Group{ID: "g", Min: 1, Max: 3, Template: good}, ""},
		{"a group of no nodes", nodegroup.Group{ID: "g", Template: good}, ""},
		{"a group that can't change", nodegroup.Group{ID: "g", Min: 2, Max: 2, Template: good}, ""},
		{"no name", nodegroup.Group{Max: 3, Template: good}, `node group: name is empty; give each group a name`},
		{"a negative minimum", nodegroup.Group{ID: "g", Min: -1, Max: 3, Template: good}, `node group "g": min is -1; it must not be negative`},
		{"a minimum above the maximum", nodegroup.Group{ID: "g", Min: 4, Max: 3, Template: good}, `node group "g": min 4 is greater than max 3; set min to at most 3`},
		{"a negative price", nodegroup.Group{ID: "g", Max: 3, Template: good, Price: -0.5}, `node group "g": price is -0.5; it must be at least 0 (0 if unknown)`},
		{"a price that is no number", nodegroup.Group{ID: "g", Max: 3, Template: good, Price: math.NaN()}, `node group "g": price is NaN; it must be at least 0 (0 if unknown)`},
		{"a price without end", nodegroup.Group{ID: "g", Max: 3, Template: good, Price: math.Inf(1)}, `node group "g": price is +Inf; it must be at least 0 (0 if unknown)`},
		{"no template", nodegroup.Group{ID: "g", Max: 3}, `node group "g": template has no allocatable; set at least cpu, memory and pods, or no pod would ever fit`},
		{"an empty template", nodegroup.Group{ID: "g", Max: 3, Template: &v1.Node{}}, `node group "g": template has no allocatable; set at least cpu, memory and pods, or no pod would ever fit`},
		{"no memory", nodegroup.Group{ID: "g", Max: 3, Template: template("cpu", "4")}, `node group "g": template allocatable memory is "0"; it must be a positive quantity`},
		{"no CPU", nodegroup.Group{ID: "g", Max: 3, Template: template("memory", "4Gi", "cpu", "0")}, `node group "g": template allocatable cpu is "0"; it must be a positive quantity`},
		{"room for no pod", nodegroup.Group{ID: "g", Max: 3, Template: template("cpu", "4", "memory", "4Gi", "pods", "-1")}, `node group "g": template allocatable pods is "-1"; it must be a positive quantity`},
	} {
		got := ""
		if err := x.group.Validate(); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s:\n got: %s\nwant: %s", x.name, got, x.want)
		}
	}
}
