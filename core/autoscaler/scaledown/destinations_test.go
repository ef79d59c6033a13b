package scaledown_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// whatIf returns what answers about a state of nodes with 4 cores each, and their pods, given as
// "NODE: POD CPU, …"; a pod whose name begins with "alone" has no controller.
func whatIf(t rapid.TB, lines ...string) (*cluster.State, *scaledown.WhatIf, *drainability.Context) {
	t.Helper()
	schema := cluster.NewSchema()
	profiles := []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	s := cluster.New(schema)
	s.SetWorkload(&cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: "rs"})
	for _, line := range lines {
		name, pods, _ := strings.Cut(line, ":")
		s.SetNode(schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj(), "g"))
		for pod := range strings.SplitSeq(pods, ",") {
			if f := strings.Fields(pod); len(f) == 2 {
				b := testkit.Pod(f[0]).Req("cpu", f[1])
				if !strings.HasPrefix(f[0], "alone") {
					b.Owner("apps/v1", "ReplicaSet", "rs")
				}
				s.Place(schema.ParsePod(b.Obj()), name)
			}
		}
	}
	w, err := scaledown.NewWhatIf(s, profiles, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, w, &drainability.Context{Rules: &autoscaler.RemovalRules{}, State: s}
}

func destinations(s *cluster.State, w *scaledown.WhatIf, rules *drainability.Context, node string) string {
	var out []string
	for _, d := range w.Destinations(rules, s.NodeByName(node)) {
		out = append(out, fmt.Sprintf("%s to %s%s", d.Pod.Object.Name, d.Node, d.Why))
	}
	return strings.Join(out, "; ")
}

// TestDestinations: the largest pod goes first, to the fullest node that takes it; a pod that
// finds none doesn't end the search, nor does one that keeps the node.
func TestDestinations(t *testing.T) {
	for _, x := range []struct {
		name  string
		nodes []string
		want  string
	}{
		{"an empty node", []string{"n:", "m:"}, ""},
		{"the fullest node first", []string{"n: p 1", "half: a 2", "empty:"}, "p to half"},
		{"the largest pod first", []string{"n: small 500m, large 2", "m: a 2"}, "large to m; small to 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."},
		{"one that fits nowhere, and one that does", []string{"n: large 3, small 1", "m: a 2"}, "large to 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).; small to m"},
		{"one that keeps the node", []string{"n: alone 1", "m:"}, "alone to m"},
	} {
		s, w, rules := whatIf(t, x.nodes...)
		for range 2 { // asking changes nothing
			if got := destinations(s, w, rules, "n"); got != x.want {
				t.Errorf("%s: %s, want %s", x.name, got, x.want)
			}
		}
	}
}

// TestPropertyDestinationsChangeNothing asks about random nodes of random clusters, and compares
// the state with what it was.
func TestPropertyDestinationsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for n := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			line := fmt.Sprintf("n%d:", n)
			for p := range rapid.IntRange(0, 4).Draw(t, "pods") {
				line += fmt.Sprintf("p%d-%d %dm,", n, p, 100*rapid.IntRange(1, 12).Draw(t, "cpu"))
			}
			lines = append(lines, line)
		}
		s, w, rules := whatIf(t, lines...)
		dump := func() string { var b strings.Builder; s.Dump(&b); return b.String() }
		before := dump()
		for n := range lines {
			destinations(s, w, rules, fmt.Sprint("n", n))
		}
		if after := dump(); before != after {
			t.Fatalf("the state was\n%s\nand is\n%s", before, after)
		}
	})
}
