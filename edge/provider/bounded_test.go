package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider"
	"github.com/berthproject/berth/internal/test/testkit"
)

// groups is a provider whose nodes carry their group in a label.
type groups struct {
	nodegroup.Provider
	list []nodegroup.Group
	err  error
}

func (g *groups) Groups(context.Context) ([]nodegroup.Group, error) { return g.list, g.err }

func (g *groups) GroupOf(n *v1.Node) string { return n.Labels["group"] }

// TestOnlyNamedGroupsAreOffered has a provider with groups a, b and c; a and c are named, and d,
// which comes later.
func TestOnlyNamedGroupsAreOffered(t *testing.T) {
	inner := &groups{list: []nodegroup.Group{
		{ID: "a", Min: 1, Max: 3, Target: 2, Price: 0.5},
		{ID: "b", Max: 100},
		{ID: "c", Max: 100, Unreadable: "timeout"},
	}}
	var log bytes.Buffer
	logged := func() string {
		defer log.Reset()
		var out []string
		for line := range strings.Lines(log.String()) {
			_, message, _ := strings.Cut(line, "msg=")
			out = append(out, strings.TrimSpace(message))
		}
		return strings.Join(out, "\n")
	}
	p := provider.Bound(inner, []nodegroup.Bound{{Name: "a", Min: 0, Max: 5}, {Name: "c", Min: 2, Max: 7}, {Name: "d", Max: 1}}, slog.New(slog.NewTextHandler(&log, nil)))
	offered := func() string {
		t.Helper()
		list, err := p.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, g := range list {
			out = append(out, fmt.Sprintf("%s %d..%d target %d price %v %s", g.ID, g.Min, g.Max, g.Target, g.Price, g.Unreadable))
		}
		return strings.Join(out, "\n")
	}
	equal := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
	}
	equal("the groups", offered(), "a 0..5 target 2 price 0.5 \nc 2..7 target 0 price 0 timeout")
	equal("the log", logged(), `"--nodes has a higher maximum than the provider, which may refuse to exceed its own; raise it there, too" group=a nodes=5 provider=3
"--nodes names a node group that the provider does not list; it is ignored until it does" group=d "groups of the provider"=3`)
	equal("the provider's own", fmt.Sprint(inner.list[0].Min, inner.list[0].Max), "1 3")

	offered()
	equal("the log when nothing has changed", logged(), "")

	inner.list = append(inner.list, nodegroup.Group{ID: "d", Max: 4})
	equal("the groups with d", offered(), "a 0..5 target 2 price 0.5 \nc 2..7 target 0 price 0 timeout\nd 0..1 target 0 price 0 ")
	inner.list = inner.list[:3]
	offered()
	if got := logged(); !strings.Contains(got, "group=d") {
		t.Errorf("d is gone again, and the log says %q", got)
	}

	for group, want := range map[string]string{"a": "a", "b": "", "c": "c", "d": "d", "": ""} {
		n := testkit.Node("n").Obj()
		n.Labels = map[string]string{"group": group}
		equal("the group of a node of "+group, p.GroupOf(n), want)
	}

	inner.err = errors.New("no answer")
	if _, err := p.Groups(t.Context()); !errors.Is(err, inner.err) {
		t.Errorf("got %v, want %v", err, inner.err)
	}
}
