package sim

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file buys nodes for the members of pod groups by the rules of Cluster Autoscaler 1.37, which doesn't know
// pod groups: a member is a pod like any other, which may be in any topology domain, and for which no place is kept. Where
// members have room on nodes that exist or are coming, nothing is bought for them, whether or not their group fits there.
// Which nodes are bought then is Berth's packing and expander, and the members are placed by Berth's scheduler: of equal
// members it places as many as kube-scheduler does.

// replan returns how plans are made, nil for as Berth makes them.
func (w *World) replan(schema *cluster.Schema) func(autoscaler.Request, func(autoscaler.Request) *autoscaler.Plan) *autoscaler.Plan {
	if !w.run.MemberByMember {
		return nil
	}
	x := singles{schema, map[types.UID]single{}}
	return x.plan
}

// single is a member as a pod that is in no group.
type single struct{ member, pod *cluster.Pod }

// singles are members as pods that are in no group. A plan compares pods by pointer, so each is made once.
type singles struct {
	schema *cluster.Schema
	pods   map[types.UID]single
}

// plan makes a plan for members as for other pods.
func (x *singles) plan(req autoscaler.Request, plan func(autoscaler.Request) *autoscaler.Plan) *autoscaler.Plan {
	kept := map[types.UID]single{}
	for i := range req.Gangs {
		for _, member := range req.Gangs[i].Members {
			s := x.pods[member.UID]
			if s.member != member {
				s = single{member, x.alone(member.Object)}
			}
			kept[member.UID] = s
			req.Pending = append(req.Pending, s.pod)
		}
	}
	x.pods, req.Gangs, req.Places = kept, nil, nil
	out := plan(req)
	out.Joins, out.Fitting = nil, nil
	for i := range out.ScaleUps {
		out.ScaleUps[i].Pods, out.ScaleUps[i].Bins = nil, nil
	}
	return out
}

// alone returns a pod that is in no group.
func (x *singles) alone(object *v1.Pod) *cluster.Pod {
	o := *object
	o.Spec.SchedulingGroup = nil
	return x.schema.ParsePod(&o)
}

// gpusOf returns how many GPUs a list of resources has, of any kind that the autoscaler knows.
func gpusOf(list v1.ResourceList) (n int64) {
	for _, id := range cluster.GPUs() {
		q := list[id.Name()]
		n += q.Value()
	}
	return n
}
