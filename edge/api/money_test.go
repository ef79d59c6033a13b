package api_test

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
)

// TestFailedOrdersAreNotBought asks what was bought after orders of which some came to nothing.
func TestFailedOrdersAreNotBought(t *testing.T) {
	// Each order is a choice of its own: four nodes for 0.80, where the next best was 1.60.
	order := func(group string, nodes int) step.Decision {
		c := &autoscaler.Choice{Nodes: nodes, Price: 0.2 * float64(nodes), Next: &autoscaler.Alternative{Price: 0.4 * float64(nodes)}, Dearest: &autoscaler.Alternative{Price: 0.4 * float64(nodes)}}
		return step.Decision{Kind: step.ScaledUp, Group: group, Nodes: nodes, Choice: c}
	}
	failed := func(kind step.DecisionKind, group string, nodes int) step.Decision {
		return step.Decision{Kind: kind, Group: group, Nodes: nodes}
	}
	for name, x := range map[string]struct {
		decisions []step.Decision // the oldest first
		orders    int
		chosen    float64
	}{
		"taken":                  {[]step.Decision{order("spot", 4)}, 1, 0.8},
		"failed":                 {[]step.Decision{order("spot", 4), failed(step.ScaleUpFailed, "spot", 4)}, 0, 0},
		"nothing was ordered":    {[]step.Decision{order("spot", 4), failed(step.ScaleUpUnanswered, "spot", 4)}, 0, 0},
		"tried again":            {[]step.Decision{order("spot", 4), failed(step.ScaleUpFailed, "spot", 4), order("spot", 4)}, 1, 0.8},
		"another group's":        {[]step.Decision{order("spot", 4), failed(step.ScaleUpFailed, "batch", 4)}, 1, 0.8},
		"another size":           {[]step.Decision{order("spot", 4), order("spot", 1), failed(step.ScaleUpFailed, "spot", 1)}, 1, 0.8},
		"an instance of it":      {[]step.Decision{order("spot", 4), failed(step.ScaleUpFailed, "spot", 0)}, 1, 0.8},
		"its order is forgotten": {[]step.Decision{failed(step.ScaleUpFailed, "spot", 4), order("spot", 4)}, 1, 0.8},
	} {
		t.Run(name, func(t *testing.T) {
			example := newExample(t)
			history := observe.NewHistory(100)
			for i := range x.decisions {
				x.decisions[i].Seq, x.decisions[i].Time = uint64(i+1), example.now().Add(time.Duration(i)*time.Second)
			}
			history.Step(example.now(), 0, nil, &step.Ready{Decisions: slices.Clone(x.decisions)})
			o := example.options()
			o.Ledger = history
			code, body := get(api.New(o), "money")
			var got v1alpha1.Money
			if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
				t.Fatalf("%d %s: %v", code, body, err)
			}
			b := got.Bought
			if x.orders == 0 {
				if b != nil {
					t.Errorf("bought is %+v, want none", *b)
				}
				return
			}
			if b == nil || b.Orders != x.orders || math.Abs(float64(b.Chosen)-x.chosen) > 1e-9 {
				t.Errorf("bought is %+v, want %d orders for %.2f", b, x.orders, x.chosen)
			}
		})
	}
}
