package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestTopologyLevels reads the levels of groups, and what is wrong with some.
func TestTopologyLevels(t *testing.T) {
	const zone, block, rack = "topology.kubernetes.io/zone", "example.com/block", "example.com/rack"
	for _, c := range []struct {
		key, annotation string
		want            []cluster.TopologyLevel
		required        string
		wrong           string
	}{
		{"", "", nil, "", ""},
		{zone, "", []cluster.TopologyLevel{{zone, true}}, zone, ""},
		{"", block + "=required, " + rack + "=preferred", []cluster.TopologyLevel{{block, true}, {rack, false}}, block, ""},
		{zone, block + "=preferred," + rack + "=required", []cluster.TopologyLevel{{zone, true}, {block, false}, {rack, true}}, zone + " " + rack, ""},
		{rack, zone + "=required," + rack + "=required", []cluster.TopologyLevel{{zone, true}, {rack, true}}, zone + " " + rack, ""},
		{rack, rack + "=preferred", []cluster.TopologyLevel{{rack, true}}, rack, `annotation berth.dev/topology-levels: "example.com/rack" is required by spec.schedulingConstraints.topology; write LABEL=required or LABEL=preferred for each level, outermost first, with commas between`},
		{zone, block, []cluster.TopologyLevel{{zone, true}}, zone, `"example.com/block" isn't required or preferred`},
		{"", block + "=must", nil, "", `"example.com/block" isn't required or preferred`},
		{"", "=required", nil, "", `"" is no label`},
		{"", "a b=required", nil, "", `"a b" is no label`},
		{"", block + "=required,", nil, "", `"" isn't required or preferred`},
		{"", block + "=required," + block + "=preferred", nil, "", `"example.com/block" is there twice`},
		{"", "a=required,b=required,c=required,d=required,e=required,f=required,g=required,h=required,i=required", nil, "", "more than 8 levels"},
		{"", strings.Repeat("x", 1000) + "=must", nil, "", "x…"},
	} {
		g := testkit.PodGroup("g", 1, c.key)
		if c.annotation != "" {
			g.Annotations = map[string]string{cluster.TopologyLevelsAnnotation: c.annotation}
		}
		levels, err := cluster.TopologyLevels(g)
		if !slices.Equal(levels, c.want) || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q and %q: got %v, %v; want %v, %q", c.key, c.annotation, levels, err, c.want, c.wrong)
		}
		if got := strings.Join(cluster.RequiredTopologies(g), " "); got != c.required {
			t.Errorf("%q and %q: required are %q, want %q", c.key, c.annotation, got, c.required)
		}
		if got := cluster.RequiredTopology(g); got != c.required[strings.LastIndex(c.required, " ")+1:] {
			t.Errorf("%q and %q: the innermost is %q", c.key, c.annotation, got)
		}
	}
}
