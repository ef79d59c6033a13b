// Package testkit builds API objects and random clusters for tests, so that a test shows only
// what it is about. Builders (build*.go) are for tables and scripts; random objects
// (random*.go, world.go) are for properties, which are checked with pgregory.net/rapid.
//
// Besides, there are the workloads that benchmarks and documents share (placement_cases.go, plans.go,
// burst.go, part_full.go), changes of objects that nobody has thought of (perturb.go, mutate.go, odd.go,
// fill.go), and checks of what is generated from code (generated.go, inventory.go, lengths.go,
// constants.go).
//
// What must hold:
//   - a builder sets what rules read, and little else;
//   - names give UIDs, so that a test can name an object that it hasn't kept;
//   - what is drawn shrinks to the plainest: false, the first of a list, the smallest number.
package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Names returns prefix0 … prefix(n-1).
func Names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

// Must returns the value that a constructor returned, and panics on its error: for tests
// in which the constructor can't fail.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// quantities returns a list of name, quantity pairs. It panics on what isn't a quantity: tests have
// constants there.
func quantities(pairs []string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
