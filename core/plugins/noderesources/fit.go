package noderesources

import (
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// FitName is the plugin's name in kube-scheduler configuration.
const FitName = "NodeResourcesFit"

// FitArgs configure NodeResourcesFit. The zero value means kube-scheduler's
// defaults.
type FitArgs struct {
	Strategy              Strategy         // default LeastAllocated
	Resources             []ResourceWeight // that are scored; default DefaultResources
	Shape                 []ShapePoint     // of RequestedToCapacityRatio, by rising utilization
	IgnoredResources      []string         // extended resources that are left out of filtering
	IgnoredResourceGroups []string         // the same for all resources of a domain
}

// Fit implements framework.Plugin: it rejects nodes whose free resources are less
// than the pod requests, or that have as many pods as they may have, and scores by
// a strategy.
type Fit struct {
	args      FitArgs
	resources []scored
}

var (
	_ framework.Plugin = (*Fit)(nil)
	_ framework.Packer = (*Fit)(nil)
)

// NewFit returns the plugin. The schema must be that of the states it will see.
func NewFit(args FitArgs) *Fit {
	if args.Strategy == "" {
		args.Strategy = LeastAllocated
	}
	if len(args.Resources) == 0 {
		args.Resources = DefaultResources()
	}
	return &Fit{args: args, resources: resolve(args.Resources, countsDefaults)}
}

// Name implements framework.Plugin.
func (*Fit) Name() string { return FitName }

// WakesWhen implements framework.Waker.
func (*Fit) WakesWhen() string {
	return "a node has room: pods on it are deleted or lower their requests, it grows, or a new node is added"
}

// Packing implements framework.Packer: the fullest node is the best, whatever the strategy.
func (f *Fit) Packing() framework.Weighted {
	args := f.args
	args.Strategy, args.Shape = MostAllocated, nil
	return framework.Weighted{Plugin: &Fit{args: args, resources: f.resources}, Weight: 1}
}

// Sign implements framework.Plugin.
func (f *Fit) Sign(pod *cluster.Pod, _ *cluster.State, local, _ *framework.Signature) {
	signVector(&pod.Request, local)
	signVector(&pod.Scored, local)
}

// signVector signs what isn't 0: each resource by a number, and a scalar one by its name as
// well.
func signVector(r *cluster.Resources, sig *framework.Signature) {
	for id, v := range r.All() {
		switch id {
		case cluster.CPU:
			sig.Int(0)
		case cluster.Memory:
			sig.Int(1)
		case cluster.EphemeralStorage:
			sig.Int(2)
		default:
			sig.Int(3)
			sig.Str(string(id.Name()))
		}
		sig.Int(v)
	}
	sig.Int(-1) // the end: no resource has this number
}

// For implements framework.Plugin. Every pod has the rule: one that requests
// nothing still takes one of the node's pods.
func (f *Fit) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	r := &fitRule{state: state, resources: f.resources, scoring: newScoring(f.args)}
	for id, v := range pod.Request.All() {
		if v > 0 && !(id.Scalar() && f.ignored(string(id.Name()))) {
			r.requests = append(r.requests, request{id, v})
		}
	}
	r.adds = amounts(&pod.Scored, f.resources)
	r.requested, r.usual = usualRequests(r.requests)
	r.usual = r.usual && f.args.Strategy == LeastAllocated && ofCPUAndMemory(f.resources)
	return framework.Rules{Local: r}, nil
}

// ignored applies ignoredResources and ignoredResourceGroups, which concern
// extended resources only: those with a domain other than kubernetes.io.
func (f *Fit) ignored(name string) bool {
	group, _, qualified := strings.Cut(name, "/")
	if !qualified || strings.HasSuffix(group, "kubernetes.io") {
		return false
	}
	return slices.Contains(f.args.IgnoredResources, name) || slices.Contains(f.args.IgnoredResourceGroups, group)
}

// request is a resource that the pod requests, in its base unit.
type request struct {
	id    cluster.ResourceID
	value int64
}

// fitRule implements framework.LocalRule for the pods of one class.
type fitRule struct {
	state     *cluster.State
	requests  []request // those that count for filtering
	resources []scored
	adds      []int64 // what the pod adds to each of resources
	scoring   scoring
	usual     bool // see usual.go
	requested pair // the requests, when usual
}

var _ framework.ManyNodesRule = (*fitRule)(nil)

// Reads implements framework.LocalRule.
func (*fitRule) Reads() framework.Aspects { return framework.ReadsObject | framework.ReadsPods }

// EvalNode implements framework.LocalRule. A pod that requests more than the empty
// node has is rejected for good (Final), whatever else is too little.
func (r *fitRule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	code := framework.OK
	if int64(len(n.Pods))+1 > n.AllowedPods {
		code = framework.Reject
	}
	for _, w := range r.requests {
		allocatable := n.Allocatable.At(w.id)
		if w.value > allocatable-n.Requested.At(w.id) {
			if r.ofDevices(w, allocatable) {
				continue
			}
			if w.value > allocatable {
				return framework.Final, 0
			}
			code = framework.Reject
		}
	}
	if code != framework.OK {
		return code, 0
	}
	return framework.OK, r.ScoreNode(n)
}

// Count implements framework.Counter.
func (r *fitRule) Count(n *cluster.Node) int {
	most := max(n.AllowedPods-int64(len(n.Pods)), 0)
	for _, w := range r.requests {
		if allocatable := n.Allocatable.At(w.id); !r.ofDevices(w, allocatable) {
			most = min(most, max(allocatable-n.Requested.At(w.id), 0)/w.value)
		}
	}
	return int(most)
}

// ofDevices reports whether a node with so much of a requested resource provides it by devices of a
// DeviceClass, which are allocated and not counted: DynamicResources decides then.
func (r *fitRule) ofDevices(w request, allocatable int64) bool {
	return allocatable <= 0 && w.id.Scalar() && r.state.DeviceClassOf(w.id.Name()) != nil
}

// ScoreNode implements framework.Scorer.
func (r *fitRule) ScoreNode(n *cluster.Node) int64 {
	return r.scoring.score(n, r.resources, r.adds)
}

// Explain implements framework.LocalRule: a message and a deficit for everything
// that is too little.
func (r *fitRule) Explain(n *cluster.Node) *framework.Reason {
	// Room for the usual two is allocated with the reason: this is asked at each refusal.
	room := &struct {
		framework.Reason
		messages [2]string
		deficits [2]framework.Deficit
	}{Reason: framework.Reason{Plugin: FitName}}
	out := &room.Reason
	out.Messages, out.Deficits = room.messages[:0], room.deficits[:0]
	if int64(len(n.Pods))+1 > n.AllowedPods {
		out.Messages = append(out.Messages, "Too many pods")
		out.Deficits = append(out.Deficits, framework.Deficit{Resource: "pods", Needed: 1, Available: n.AllowedPods - int64(len(n.Pods))})
	}
	for _, w := range r.requests {
		allocatable := n.Allocatable.At(w.id)
		free := allocatable - n.Requested.At(w.id)
		if w.value <= free || r.ofDevices(w, allocatable) {
			continue
		}
		name := string(w.id.Name())
		out.Messages = append(out.Messages, insufficient(name))
		out.Deficits = append(out.Deficits, framework.Deficit{Resource: name, Needed: w.value, Available: free})
		out.Final = out.Final || w.value > allocatable
	}
	return out
}

// insufficient returns the message about a resource, without an allocation for the usual ones.
func insufficient(resource string) string {
	switch resource {
	case "cpu":
		return "Insufficient cpu"
	case "memory":
		return "Insufficient memory"
	}
	return "Insufficient " + resource
}
