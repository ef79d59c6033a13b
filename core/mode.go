package core

import (
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/weighing"
)

// mode is what a core does with what it decides, and what it has to say. It is chosen in
// New, by StandBy and by BecomeLeader; nothing else asks which it is.
//
//	                     deciding               beside another scheduler     shadowing              standing by
//	a pod is placed      reserved for, bound    expected there               compared               –
//	a pod is rejected    preempts, waits        waits, as the other has it   waits                  –
//	an attempt fails     backs off, reported    backs off                    backs off              –
//	a pod has a gate     reported               not reported                 not reported           not reported
//	a group is held      reported               –                            not reported           not reported
//	odd values           reported               reported                     not reported           not reported
//	before a plan        –                      decided on anew              –                      –
//	asks for a node      each that waits        when the other rejected it   –                      –
//	a plan is made       nodes are bought, go   nodes are bought, go         compared               –
//	node deletions       its own                its own                      –                      another instance's
//	a pod comes          classified             classified                   classified             classified when it leads
type mode interface {
	// class returns the class that a pod is queued with: nil while nothing is decided.
	class(*cluster.Pod) *engine.Class

	// assumed takes over what a decision has changed in objects for a pod that it has placed. It comes
	// before placed of any pod of that decision.
	assumed(p *record.Pod, pod *cluster.Pod, writes []cluster.ObjectChange)
	// placed carries out a decision that has placed a pod on a node in the state; the
	// decision has seen the changes up to seen.
	placed(p *record.Pod, item *queue.Item, d scheduler.Decision, seen cluster.Seq)
	// rejected carries out a decision that found no node. Decisions are handed over by value: the
	// address of one that goes to an unknown mode would have each allocated.
	rejected(p *record.Pod, item *queue.Item, d scheduler.Decision)
	// failed carries out that an error ended the attempt to place a pod.
	failed(p *record.Pod, item *queue.Item, why string)
	// reportGate reports that a gate holds a pod, if one does.
	reportGate(p *record.Pod)
	// reportHeld reports why the group of a pod can't be tried; failure says that it is an error of
	// somebody's.
	reportHeld(p *record.Pod, why string, failure bool)
	// decidesGroups reports whether what is decided about pod groups is done, and told.
	decidesGroups() bool
	// groupPreempts carries out that pods have to leave for a pod group, which comes before its members
	// are rejected.
	groupPreempts(g *schedulingv1beta1.PodGroup, members []*cluster.Pod, victims *framework.Victims, weighed *weighing.Result)
	// memberRejected carries out that a member of a group found no node.
	memberRejected(p *record.Pod, item *queue.Item, why string)
	// reportProblems reports which values of a pod can't be taken as they stand.
	reportProblems(pod *cluster.Pod)
	// nodeShown takes how the API has a node and returns how the state is to have it, nil
	// for not at all.
	nodeShown(obj *v1.Node, info *cluster.NodeInfo) *cluster.NodeInfo
	// reportNode reports which values of a node can't be taken as they stand, when this
	// instance becomes the leader.
	reportNode(*cluster.NodeInfo)
	// resumeNode takes over, of a core that scales, what another instance had begun with a node,
	// when this instance becomes the leader.
	resumeNode(*cluster.NodeInfo)
	// beforePlan prepares for a plan if one is due, and reports whether one may be asked for
	// when the pods have been tried.
	beforePlan() (mayPlan bool)
	// asksForNode reports whether a pod that found no node is one for a plan.
	asksForNode(obj *v1.Pod) bool

	// commitPlan carries out what still holds of a plan.
	commitPlan(*autoscaler.Plan)

	// standBy and lead return the mode that StandBy and BecomeLeader change to.
	standBy() mode
	lead() mode
}
