package scaleup_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
)

// TestPropertyAlternativesHaveAsManyPods: what stands beside a choice could hold all of its pods, and its price is
// that of its group; and no choice costs less than what is proved of any purchase for its pods.
func TestPropertyAlternativesHaveAsManyPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		for _, up := range plan.ScaleUps {
			c := up.Choice
			if c != nil && (c.LowerBound < 0 || c.LowerBound > c.Price*(1+1e-9) || c.LowerBound > 0 && c.By != "cost") {
				t.Fatalf("any purchase costs %v at least, and this one, by %s, %v", c.LowerBound, c.By, c.Price)
			}
			if c == nil || c.Next == nil {
				continue
			}
			if c.Next.Price > c.Dearest.Price || !(c.Price > 0) || c.Nodes == 0 {
				t.Fatalf("%+v: next %+v, dearest %+v", c, c.Next, c.Dearest)
			}
			for _, a := range []*autoscaler.Alternative{c.Next, c.Dearest} {
				o := ownOption(c, a.Group) // another option may have the group grow with it
				if o == nil || c.By != "cost" && (o.Price != a.Price || o.Nodes != a.Nodes || !holdsAsMany(c, up.Group, o)) {
					t.Fatalf("the alternative %+v is the option %+v, beside %+v", a, o, c)
				}
			}
		}
	})
}

// ownOption returns the option that is known by a group, nil for none.
func ownOption(c *autoscaler.Choice, group string) *autoscaler.Option {
	for i := range c.Options {
		if c.Options[i].Group == group {
			return &c.Options[i]
		}
	}
	return nil
}

// holdsAsMany reports whether an option has as many pods as another one that was chosen: by its nodes and
// price, and since the group grows with it.
func holdsAsMany(c *autoscaler.Choice, group string, o *autoscaler.Option) bool {
	return slices.ContainsFunc(c.Options, func(x autoscaler.Option) bool {
		return x.Group != o.Group && (x.Group == group || slices.Contains(x.With, group)) && x.Nodes == c.Nodes && x.Price == c.Price && o.Pods >= x.Pods
	})
}
