// Package testkit builds API objects and random clusters for tests, so that a test shows only
// what it is about. Builders (build*.go) are for tables and scripts; random objects
// (random*.go, world.go) are for properties, which are checked with pgregory.net/rapid.
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

func quantities(pairs []string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
