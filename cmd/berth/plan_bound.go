package main

import (
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/mix"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/scheduler"
)

// lowerBound returns what any purchase for pending pods costs at least, and for how many
// of them: pods that no group takes, or has room for, are left out. The rules are asked on
// a copy of the state. What it leaves out makes the bound lower and never false:
// that daemon pods take a part of a node, and what rules say about several pods together.
func lowerBound(state *cluster.State, cfg *core.Config, pending []*cluster.Pod) (bound float64, pods int, err error) {
	follower := cluster.Follow(state)
	if err := follower.CatchUp(); err != nil {
		return 0, 0, err
	}
	copied := follower.State
	sched, err := scheduler.New(copied, cfg.Profiles, cfg.Engine)
	if err != nil {
		return 0, 0, err
	}
	var classes []mix.Class
	var members []*cluster.Pod // one of each class
	at := map[*engine.Class]int{}
	resources := 0 // and one more dimension, the number of pods
	for _, pod := range pending {
		class := sched.Engine(pod).Class(pod)
		i, ok := at[class]
		if !ok {
			i = len(classes)
			at[class] = i
			classes, members = append(classes, mix.Class{}), append(members, pod)
			resources = max(resources, len(pod.Request))
		}
		classes[i].Pods++
	}
	for i, pod := range members {
		classes[i].Request = quantities(pod.Request, resources, 1)
	}
	var groups []mix.Group
	for j, g := range copied.Groups() {
		groups = append(groups, mix.Group{Price: g.Price, Room: g.Max - g.Target,
			Allocatable: quantities(g.Template.Allocatable, resources, g.Template.AllowedPods)})
		mark := copied.Mark()
		n := copied.SetNode(g.Template.Renamed(g.ID + "-empty"))
		for i, pod := range members {
			e := sched.Engine(pod)
			class := e.Class(pod)
			// What a rule says of other pods may be different once these have nodes.
			if class.LooksBeyondNode() || e.Explain(class, n) == nil {
				classes[i].Takes = append(classes[i].Takes, j)
			}
		}
		copied.Rollback(mark)
	}
	s := mix.Solve(classes, groups)
	for _, groups := range s.Assign {
		for _, n := range groups {
			pods += n
		}
	}
	return s.LowerBound, pods, nil
}

// quantities returns so many resources of a vector, and a number of pods.
func quantities(r cluster.Resources, resources int, pods int64) []int64 {
	out := make([]int64, resources+1)
	copy(out[:resources], r)
	out[resources] = pods
	return out
}
