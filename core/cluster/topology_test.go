package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// domains prints the nodes of each domain, in any order of domains, and those
// without.
func domains(s *cluster.State, t *cluster.Topology) string {
	names := map[cluster.Domain][]string{}
	s.Nodes(func(n *cluster.Node) { names[t.Of(n.Index)] = append(names[t.Of(n.Index)], n.Name) })
	var out []string
	for d, list := range names {
		text := strings.Join(list, "+")
		if d == cluster.NoDomain {
			text = "without: " + text
		} else {
			var members []string
			t.Members(d, func(i cluster.NodeIndex) { members = append(members, s.Node(i).Name) })
			if slices.Sort(members); !slices.Equal(members, list) {
				text += fmt.Sprint(" (but members are ", members, ")")
			}
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestTopologies(t *testing.T) {
	s := newState()
	zones, hosts := s.Topology(v1.LabelTopologyZone), s.Topology(v1.LabelHostname)
	orEmpty, nodes := s.Topology(cluster.OrEmpty(v1.LabelTopologyZone)), s.Topology(cluster.PerNode)
	if s.Topology(v1.LabelTopologyZone) != zones {
		t.Error("two topologies of one key")
	}
	for _, c := range []struct {
		name                          string
		do                            func()
		zones, orEmpty, hosts, byNode string
		unshared                      bool   // of zones
		timesShared                   uint64 // of zones
	}{
		{"no nodes", func() {}, "", "", "", "", true, 0},
		{"three", func() {
			setNode(s, testkit.Node("a").Zone("1"))
			setNode(s, testkit.Node("b").Zone("2"))
			setNode(s, testkit.Node("c"))
		}, "a, b, without: c", "a, b, c", "a, b, c", "a, b, c", true, 0},
		{"one more in a zone", func() { setNode(s, testkit.Node("d").Zone("1")) }, "a+d, b, without: c", "a+d, b, c", "a, b, c, d", "a, b, c, d", false, 1},
		{"and a third", func() { setNode(s, testkit.Node("e").Zone("1")) }, "a+d+e, b, without: c", "a+d+e, b, c", "a, b, c, d, e", "a, b, c, d, e", false, 1},
		{"an empty zone is one", func() { setNode(s, testkit.Node("e").Zone("")) }, "a+d, b, e, without: c", "a+d, b, c+e", "a, b, c, d, e", "a, b, c, d, e", false, 1},
		{"one of two goes", func() { s.RemoveNode("a") }, "b, d, e, without: c", "b, c+e, d", "b, c, d, e", "b, c, d, e", true, 1},
		{"another moves there", func() { setNode(s, testkit.Node("b").Zone("1")) }, "b+d, e, without: c", "b+d, c+e", "b, c, d, e", "b, c, d, e", false, 2},
		{"two have one host name", func() { setNode(s, testkit.Node("e").Label(v1.LabelHostname, "b")) }, "b+d, without: c+e", "b+d, c+e", "b+e, c, d", "b, c, d, e", false, 2},
	} {
		c.do()
		for _, x := range []struct {
			topology *cluster.Topology
			want     string
		}{{zones, c.zones}, {orEmpty, c.orEmpty}, {hosts, c.hosts}, {nodes, c.byNode}} {
			if got := domains(s, x.topology); got != x.want {
				t.Errorf("%s: by %q the nodes are %s, want %s", c.name, x.topology.Key, got, x.want)
			}
		}
		if zones.Unshared() != c.unshared || zones.TimesShared() != c.timesShared {
			t.Errorf("%s: unshared %v after %d times, want %v after %d", c.name, zones.Unshared(), zones.TimesShared(), c.unshared, c.timesShared)
		}
	}
	// A topology that is asked for late knows the nodes that are there.
	if got := domains(s, s.Topology("disk")); got != "without: b+c+d+e" {
		t.Errorf("by a label that nobody has the nodes are %s", got)
	}
	setNode(s, testkit.Node("f").Label("rack", "r"))
	if got := domains(s, s.Topology("rack")); got != "f, without: b+c+d+e" {
		t.Errorf("by rack the nodes are %s", got)
	}
}
