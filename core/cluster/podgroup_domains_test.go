package cluster_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestDomainsOfLabels: nodes are in one domain when they have one value of each label. An empty value is a value for one
// label as for several, and a node that lacks a label is in no domain.
func TestDomainsOfLabels(t *testing.T) {
	s := newState()
	names := map[cluster.NodeIndex]string{}
	for i, labels := range []map[string]string{{"zone": "a", "rack": "1"}, {"zone": "a", "rack": "1"}, {"zone": "b", "rack": "1"}, {"zone": "a", "rack": ""}, {"zone": "a"}, {"rack": "1"}} {
		n := testkit.Node(fmt.Sprint("n", i))
		maps.Copy(n.Labels, labels)
		names[setNode(s, n)] = n.Name
	}
	for _, c := range []struct {
		labels []string
		want   string
	}{
		{[]string{"rack"}, "map[:[n3] 1:[n0 n1 n2 n5]]"},
		{[]string{"zone", "rack"}, "map[a/:[n3] a/1:[n0 n1] b/1:[n2]]"},
		{[]string{"rack", "zone"}, "map[/a:[n3] 1/a:[n0 n1] 1/b:[n2]]"},
	} {
		got := map[string][]string{}
		domains, nodes := s.DomainsOf(c.labels)
		for i, domain := range domains {
			for _, n := range nodes[i] {
				got[domain] = append(got[domain], names[n])
			}
			slices.Sort(got[domain])
		}
		if fmt.Sprint(got) != c.want || !slices.IsSorted(domains) {
			t.Errorf("by %v: %v, want %s", c.labels, got, c.want)
		}
	}
}
