package replay

import (
	"encoding/json"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/step"
)

// This file records what plans went by that isn't in the state, so that the planner of a
// replay makes the same plans again: what the expanders priority and grpc answered, in
// order, and where a plan was cut short since it had taken long enough.

// planMade is what is written of a plan that expanders gave answers for, or that was cut short.
type planMade struct {
	// Answers are the IDs of the groups that an expander left, one list for each time that it was asked.
	Answers [][]string `json:"answers,omitempty"`
	Cuts    []int      `json:"cuts,omitempty"`
}

// recordablePlan returns what is written of a plan, nil for nothing.
func recordablePlan(p *autoscaler.Plan) any {
	if len(p.Answers)+len(p.Cuts) == 0 {
		return nil
	}
	return planMade{p.Answers, p.Cuts}
}

// decodePlan reads a PlanMade. Its plan has answers and cuts, and nothing else.
func decodePlan(raw json.RawMessage) (step.Input, error) {
	var p planMade
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, err
		}
	}
	return step.PlanMade{Plan: &autoscaler.Plan{Answers: p.Answers, Cuts: p.Cuts}}, nil
}

// answers is an expander that gives answers that were recorded, each once. When none is
// left it leaves all options: under another policy plans are others than those that the
// answers were for.
type answers struct{ left [][]string }

var _ expander.Strategy = (*answers)(nil)

// newChain returns the expanders of a list, with the answers for those that go by more
// than the state.
func (a *answers) newChain(list string) (expander.Chain, error) {
	return expander.NewChain(list, map[string]expander.Strategy{expander.PriorityName: a, expander.GRPCName: a})
}

// Best implements expander.Strategy.
func (a *answers) Best(_ *expander.Round, options []expander.Option) []expander.Option {
	if len(a.left) == 0 {
		return options
	}
	answer := a.left[0]
	a.left = a.left[1:]
	return slices.DeleteFunc(slices.Clone(options), func(o expander.Option) bool { return !slices.Contains(answer, o.Group.ID) })
}
