package live

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
)

// plan lets the follower catch up while the core stands still, then plans
// beside it. The core asks for no second plan before this one is back.
func (e *edge) plan(req autoscaler.Request) {
	if err := e.planner.CatchUp(); err != nil {
		// The core keeps its journal for the follower, so this is a defect.
		// An empty plan changes nothing and lets the core ask again.
		e.log.Error("the planner could not catch up", "err", err)
		epoch, seq := e.planner.Position()
		e.in.put(step.PlanMade{Plan: &autoscaler.Plan{Epoch: epoch, Seq: seq, Now: req.Now}})
		return
	}
	go func() { e.in.put(step.PlanMade{Plan: e.planner.Plan(req)}) }()
}
