package scaleup_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
)

// TestPropertyAlternativesHaveAsManyPods: what stands beside a choice could hold all of its pods, and its price is
// that of its group.
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
			if c == nil || c.Next == nil {
				continue
			}
			if c.Next.Price > c.Dearest.Price || !(c.Price > 0) || c.Nodes == 0 {
				t.Fatalf("%+v: next %+v, dearest %+v", c, c.Next, c.Dearest)
			}
			for _, a := range []*autoscaler.Alternative{c.Next, c.Dearest} {
				o := c.Of(a.Group)
				if o == nil || c.By != "cost" && (o.Price != a.Price || o.Nodes != a.Nodes || o.Pods < c.Of(up.Group).Pods) {
					t.Fatalf("the alternative %+v is the option %+v, beside %+v", a, o, c.Of(up.Group))
				}
			}
		}
	})
}
