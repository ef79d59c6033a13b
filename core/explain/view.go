package explain

import (
	"iter"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/core/lifecycle/keptnodes"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/lifecycle/nodestatus"
	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/lifecycle/reservation"
	"github.com/berthproject/berth/core/lifecycle/resizing"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
)

// View is what explanations read. The core fills it in once; what is behind the interfaces is
// the core's own, so an answer is of the moment when it is asked for. Only the core's goroutine
// may ask, between Steps.
type View struct {
	Profiles []*framework.Profile
	Options  engine.Options
	// Now is the time of the core's last call, and ServerNow the API server's clock then.
	Now, ServerNow func() time.Time
	// State is as it was when an answer has been given: what-ifs are rolled back.
	State     *cluster.State
	Scheduler Scheduler
	Queue     Queue
	Pods      Pods
	Others    iter.Seq[*v1.Pod] // the pods without a node that other schedulers are to place
	Victims   Victims
	Places    Places
	PodGroups PodGroups
	Headroom  Headroom
	// Autoscaler is nil when Berth only schedules.
	Autoscaler *Autoscaler

	whatIf *scaledown.WhatIf // of removals; nil until somebody asks
}

// Autoscaler is what explanations read of the autoscaler.
type Autoscaler struct {
	Removal          autoscaler.RemovalRules
	Limits           autoscaler.Limits
	Readiness        autoscaler.Readiness
	PriorityCutoff   int
	DisableScaleDown bool
	NeedPrices       []string // flags that do nothing for node groups without a price

	Plans      Plans
	Planning   Planning
	Groups     Groups
	Launches   Launches
	Nodes      Nodes
	KeptNodes  KeptNodes
	Candidates Candidates
	Deletions  Deletions
	Homes      Homes
	// Interruptions counts the nodes that the cloud is about to take.
	Interruptions interface{ Count() int }
	Resizes       Resizes
}

// Resizes describes pods whose resize in place is pending. Describe returns ok false for any other pod, and
// Pending returns all of them, those that are being moved first.
type Resizes interface {
	Describe(types.UID) (resizing.Description, bool)
	Pending() []resizing.Description
}

// Scheduler has the rules by which pods are placed. Engine returns the engine of the pod's
// profile, which caches answers on the state: it may be asked within a mark. Gate returns nil
// when no PreEnqueue rule keeps the pod out of the queue.
type Scheduler interface {
	Engine(*cluster.Pod) *engine.Engine
	Gate(*cluster.Pod) *framework.Reason
	Responsible(*cluster.Pod) bool
}

// Queue describes the pods that wait. Get returns nil for a pod that isn't in the queue, and Group nil
// for a pod group of which no member is.
// Pending counts only the pods for which counted returns true. Groups are the pod groups with members
// that wait.
type Queue interface {
	Get(types.UID) *queue.Item
	Group(cluster.PodGroupKey) *queue.Group
	Groups() []*queue.Group
	Each(func(*queue.WaitingClass))
	Pending(counted func(*cluster.Pod) bool) (rejected, untried int)
}

// Pods describes the pods that the core is to schedule.
type Pods interface {
	Describe(types.UID) (record.Description, bool)
	Has(types.UID) bool
	All() iter.Seq[record.Description] // in no particular order
	// WaitsSince returns when the pod was first seen that has waited longest; zero when none waits.
	WaitsSince() time.Time
}

// Victims describes the pods that are to leave their nodes for others. A victim is listed from
// the decision until it is gone or its preemption has failed.
type Victims interface {
	VictimsOf(preemptor types.UID) []types.UID
	EachVictim(func(victim, preemptor types.UID))
}

// Places describes the places that are kept for pods. WaitsFor reports whether a pod that could
// preempt waits for its place instead.
type Places interface {
	Of(types.UID) (reservation.Place, bool)
	WaitsFor(types.UID) bool
	Places() []autoscaler.Place
}

// PodGroups describes pod groups. WhatIf leaves the state as it is; ok is false of a group of which
// nothing can be decided. RoomOf returns the room that is kept for a group, nil for none, and Named the
// group that a stand-in keeps it for, "" when it is another's.
type PodGroups interface {
	WhatIf(*queue.Group) (x podgroups.Attempt, ok bool)
	RoomOf(cluster.PodGroupKey) *podgroups.Room
	RoomMissing(cluster.PodGroupKey) string
	Named(standIn *cluster.Pod) string
}

// Headroom names the objects that headroom is kept for.
type Headroom interface {
	Named(cluster.HeadroomID) string
}

// Plans describes what a plan made now is to know.
type Plans interface {
	Request() *autoscaler.Request
	// Eligible reports whether nodes may be bought for a pod with a record now, and if not from
	// when on; zero for never.
	Eligible(types.UID) (now bool, from time.Time)
}

// Planning describes when plans are made. NextWake returns zero while a plan is being made, and
// while no node group is known.
type Planning interface {
	State(now time.Time) planning.State
	NextWake() time.Time
}

// Groups describes node groups. Known reports whether the provider has listed them; before that
// nothing can be explained about any. BackingOff, LastAsked and LastFailure return nil for
// nothing. ScaleDownDelay returns the zero time when no delay holds.
type Groups interface {
	Known() bool
	Describe(group string) (nodegroups.Description, bool)
	BackingOff(now time.Time, group string) *nodegroups.Backoff
	Conditions(now time.Time) map[string]autoscaler.GroupCondition
	LastAsked(group string) *nodegroups.Asked
	LastFailure(group string) *nodegroups.Failure
	ProvisionTime(*cluster.NodeGroup) time.Duration
	ScaleDownDelay(now time.Time, group string) (until time.Time, why string)
}

// Launches describes the nodes that are launching. Underway returns the oldest order first;
// launches whose order isn't known come before, with a zero Ordered.
type Launches interface {
	DescribeControl(group string) []string
	Times(group string) launching.Times
	Underway(group string) []launching.Launch
	Windows(groups []string) []launching.Windows
}

// Nodes describes where nodes stand for scale-down.
type Nodes interface {
	Of(now time.Time, n *cluster.Node, removal *autoscaler.Removal) nodestatus.Status
	Detail(now time.Time, n *cluster.Node, s *nodestatus.Status) string
	NotPlanned() string
}

// KeptNodes describes why the last plan keeps nodes. Plan returns nil before the first plan, and
// Removal nil for a node that the last plan doesn't remove. Held returns why plans give up no
// node at all, "" when they may.
type KeptNodes interface {
	Of(node string) (keptnodes.Stay, bool)
	Plan() *autoscaler.Plan
	Removal(node string) *autoscaler.Removal
	Held() string
}

// Candidates describes the nodes that could go.
type Candidates interface {
	Describe(node string, g *cluster.NodeGroup) (candidates.Description, bool)
	Each(func(node string))
}

// Deletions describes the nodes on their way out. EachOutOfState calls with the nodes that the
// provider was asked to delete: they are kept out of the state, so that no pod is placed there.
type Deletions interface {
	Describe(node string) (nodedeletion.Description, bool)
	Counts() (all, draining int)
	EachAsked(func(group string))
	EachOutOfState(func(*cluster.NodeInfo))
}

// Homes describes the room that is kept for evicted pods.
type Homes interface {
	Kept(types.UID) (homes.Kept, bool)
	Knows(standIn *cluster.Pod) bool
	Named(standIn *cluster.Pod) string
}
