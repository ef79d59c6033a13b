package mix_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// verify checks that a solution is one: what it says about itself, the rules, and that pods
// are left out only if nothing can be done.
func verify(t rapid.TB, classes []mix.Class, groups []mix.Group, s mix.Solution) {
	t.Helper()
	price, nodes := 0.0, make([]int, len(groups))
	held := make([]int, len(classes))
	for _, b := range s.Nodes {
		price += float64(b.Nodes) * groups[b.Group].Price
		nodes[b.Group] += b.Nodes
		if b.Nodes <= 0 || len(b.Pods) == 0 {
			t.Fatalf("batch %+v has nothing in it", b)
		}
		if why := refuses(classes, groups, b.Group, b.Pods); why != "" {
			t.Fatalf("batch %+v: %s", b, why)
		}
		for _, c := range b.Pods {
			held[c.Class] += b.Nodes * c.Pods
		}
	}
	for j := range groups {
		if nodes[j] > max(0, groups[j].Room) {
			t.Fatalf("%d nodes of group %d, which has room for %d", nodes[j], j, groups[j].Room)
		}
	}
	for _, b := range s.Nodes {
		for j := range groups {
			if nodes[j] < groups[j].Room && groups[j].Price < groups[b.Group].Price && refuses(classes, groups, j, b.Pods) == "" {
				t.Fatalf("batch %+v would cost less as a node of group %d", b, j)
			}
		}
	}
	if d := price - s.Price; d > 1e-6*price || -d > 1e-6*price {
		t.Fatalf("the nodes cost %v, and Price is %v", price, s.Price)
	}
	if s.LowerBound > price*(1+1e-9) {
		t.Fatalf("the lower bound %v is above the price %v", s.LowerBound, price)
	}
	if !slices.Equal(held, s.Held) {
		t.Fatalf("Held has %v, the nodes %v", s.Held, held)
	}
	for i := range classes {
		if held[i] > classes[i].Pods {
			t.Fatalf("%d pods of class %d have a node, there are %d", held[i], i, classes[i].Pods)
		}
		if held[i] == classes[i].Pods {
			continue
		}
		for _, j := range classes[i].Takes {
			if nodes[j] < groups[j].Room && refuses(classes, groups, j, []mix.Count{{Class: i, Pods: 1}}) == "" {
				t.Fatalf("class %d has %d pods without a node, and group %d takes them and has room", i, classes[i].Pods-held[i], j)
			}
		}
	}
}

// refuses says why a node of a group doesn't hold such pods; "" if it does.
func refuses(classes []mix.Class, groups []mix.Group, j int, pods []mix.Count) string {
	used := make([]int64, len(groups[j].Allocatable))
	for _, c := range pods {
		class := &classes[c.Class]
		if !slices.Contains(class.Takes, j) {
			return "the group doesn't take all classes"
		}
		if class.PerNode > 0 && c.Pods > class.PerNode {
			return "too many pods of a class"
		}
		for k, request := range class.Request {
			used[k] += int64(c.Pods) * request
			if used[k] > groups[j].Allocatable[k] {
				return "too little of a resource"
			}
		}
	}
	return ""
}
