package externalgrpc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has groups come, go and change between two readings.

// set exchanges the groups.
func (p *fakeProvider) set(groups ...nodegroup.Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.groups)
	for _, g := range groups {
		p.groups[g.ID] = &g
	}
}

// TestGroupsComeAndGo: each reading has the groups that the server has then, with their limits. A
// node of a group that is gone is in no group, whether the group listed it or the server was asked
// for it, and the group can't be made larger. One that comes back is another: what was known of
// the first one counts for nothing, and what the server left out for it is asked for again.
func TestGroupsComeAndGo(t *testing.T) {
	limits := func(lowest, highest int) func(*nodegroup.Group) {
		return func(g *nodegroup.Group) { g.Min, g.Max = lowest, highest }
	}
	priced := func(price float64) func(*nodegroup.Group) { return func(g *nodegroup.Group) { g.Price = price } }
	whole := func(g *nodegroup.Group) {
		o := allDefaults()
		o.ZeroOrMax = true
		g.Options = &o
	}
	holds := func(g *nodegroup.Group) { g.Target, g.Instances = 1, []nodegroup.Instance{{ID: "fake://" + g.ID}} }
	listed, labelled := testkit.Node("listed").Obj(), testkit.Node("labelled").Label("group", "a").Obj()
	listed.Spec.ProviderID = "fake://a"

	var mu sync.Mutex
	asked, leftOut := map[string]int{}, map[string]bool{}
	p := newFakeProvider()
	b := newBed(t, long, p, func(_ context.Context, call string, request any, next func() (any, error)) (any, error) {
		id := ""
		switch r := request.(type) {
		case *protocol.NodeGroupAutoscalingOptionsRequest:
			id = r.GetId()
		case *protocol.PricingNodePriceRequest:
			id = r.GetNode().GetLabels()["group"]
		default:
			return next()
		}
		mu.Lock()
		defer mu.Unlock()
		asked[call+" "+id]++
		if leftOut[call+" "+id] {
			return nil, status.Error(codes.Unimplemented, "not here")
		}
		return next()
	})
	const options, price = "NodeGroupGetOptions", "PricingNodePrice"
	a, second, c := group("a", limits(1, 10), priced(0.5), whole, holds), group("b", limits(0, 7)), group("c", limits(2, 3))
	for _, x := range []struct {
		name    string
		groups  []nodegroup.Group
		leftOut string // a call, of group a
		want    string
		of      []string // the groups of the two nodes
		asked   string   // for the options and the price of a, so far
	}{
		{"a and b", []nodegroup.Group{a, group("b", limits(0, 5))}, "", "a 1-10 0.5 whole, b 0-5 0.25", []string{"a", "a"}, "1 1"},
		{"b with another maximum", []nodegroup.Group{second}, "", "b 0-7 0.25", []string{"", ""}, "1 1"},
		{"c beside it", []nodegroup.Group{second, c}, "", "b 0-7 0.25, c 2-3 0.25", []string{"", ""}, "1 1"},
		{"a is back, and has no options", []nodegroup.Group{a, second}, options, "a 1-10 0.5, b 0-7 0.25", []string{"a", "a"}, "2 2"},
		{"of which it isn't asked again", []nodegroup.Group{a, second}, options, "a 1-10 0.5, b 0-7 0.25", []string{"a", "a"}, "2 3"},
		{"all are gone", nil, "", "", []string{"", ""}, "2 3"},
		{"a is back with other limits, without a price", []nodegroup.Group{group("a", limits(0, 2), whole)}, price, "a 0-2 0 whole", []string{"", "a"}, "3 4"},
	} {
		p.set(x.groups...)
		mu.Lock()
		clear(leftOut)
		leftOut[x.leftOut+" a"] = true
		mu.Unlock()
		nodes := []*v1.Node{listed, labelled}
		for _, n := range nodes { // as everybody does all the time
			b.GroupOf(n)
		}
		var got []string
		for _, g := range b.list(t) {
			text := fmt.Sprintf("%s %d-%d %v", g.ID, g.Min, g.Max, g.Price)
			if g.Options != nil && g.Options.ZeroOrMax {
				text += " whole"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != x.want {
			t.Errorf("%s: the groups are %s, want %s", x.name, text, x.want)
		}
		if of := []string{b.GroupOf(nodes[0]), b.GroupOf(nodes[1])}; !slices.Equal(of, x.of) {
			t.Errorf("%s: the nodes are of %q, want %q", x.name, of, x.of)
		}
		mu.Lock()
		if text := fmt.Sprint(asked[options+" a"], " ", asked[price+" a"]); text != x.asked {
			t.Errorf("%s: the server was asked for options and price of a %s times, want %s", x.name, text, x.asked)
		}
		mu.Unlock()
		there := slices.ContainsFunc(x.groups, func(g nodegroup.Group) bool { return g.ID == "a" })
		if err := b.IncreaseSize(t.Context(), "a", 1); (err == nil) != there || !there && nodegroup.ClassOf(err) != nodegroup.OtherError {
			t.Errorf("%s: a is made larger: %v", x.name, err)
		}
	}
}
