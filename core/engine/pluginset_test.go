package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// The reference is a map.
func TestPropertyAPluginSetIsASetAndAValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		position := rapid.IntRange(0, 200)
		build := func(name string) (s pluginSet, want map[int]bool) {
			want = map[int]bool{}
			for _, p := range rapid.SliceOf(position).Draw(t, name) {
				before, had := s, s.has(p)
				s = s.with(p)
				if before.has(p) != had {
					t.Fatalf("with(%d) changed the set that it was asked of", p)
				}
				want[p] = true
			}
			return s, want
		}
		check := func(what string, s pluginSet, want map[int]bool) {
			for p := range 300 {
				if s.has(p) != want[p] {
					t.Fatalf("%s: has(%d) is %v, want %v", what, p, s.has(p), want[p])
				}
			}
		}
		a, inA := build("a")
		b, inB := build("b")
		both := map[int]bool{}
		for p := range inA {
			both[p] = true
		}
		for p := range inB {
			both[p] = true
		}
		check("union", a.union(b), both)
		check("a after the union", a, inA)
		check("b after the union", b, inB)
		if got, want := a.union(b).equal(a), len(both) == len(inA); got != want {
			t.Fatalf("a with b equals a: %v, want %v", got, want)
		}
	})
}
