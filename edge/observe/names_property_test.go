package observe

import (
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyTheCoreComparesNoNames asks for nodes and groups, most of which there aren't, in clusters
// of random ones: of one that it doesn't have the core says that alone, and leaves the names to be
// compared by others.
func TestPropertyTheCoreComparesNoNames(t *testing.T) {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9]{1,8}-[a-z0-9]{1,8}`), 1, 8, rapid.ID)
	rapid.Check(t, func(rt *rapid.T) {
		cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
		cfg.Autoscale = &a
		l := newLiveOf(t, cfg)
		known := map[string][]string{"node": names.Draw(rt, "nodes"), "group": names.Draw(rt, "groups")}
		var in []step.Input
		set := step.GroupsSet{}
		for _, name := range known["group"] {
			set.Groups = append(set.Groups, nodegroup.Group{ID: name, Max: 3, Template: testkit.Node("g").Alloc("cpu", "4").Obj()})
		}
		for _, name := range known["node"] {
			in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4").Obj(), Group: known["group"][0]})
		}
		l.step(append([]step.Input{set}, in...)...)
		s := NewServer(slog.New(slog.DiscardHandler))
		for kind, list := range known {
			asked := rapid.OneOf(rapid.SampledFrom(list), rapid.StringMatching(`[a-z0-9-]{1,20}`)).Draw(rt, "asked for")
			question, err := s.question(url.Values{kind: {asked}})
			if err != nil {
				rt.Fatal(err)
			}
			x := question(l.core)
			if found := slices.Contains(list, asked); found != (x.value != nil) {
				rt.Fatalf("of %s %s the core answers %+v", kind, asked, x)
			} else if found {
				continue
			}
			said := strings.ReplaceAll(x.missing, asked, "")
			if slices.ContainsFunc(list, func(name string) bool { return strings.Contains(said, name) }) {
				rt.Fatalf("of %s %s the core says %q, with names that it has compared", kind, asked, x.missing)
			}
			if slices.Sort(x.names); x.name != asked || !slices.Equal(x.names, slices.Sorted(slices.Values(list))) {
				rt.Fatalf("of %s %s the names %v are compared, want %v", kind, asked, x.names, list)
			}
		}
	})
}
