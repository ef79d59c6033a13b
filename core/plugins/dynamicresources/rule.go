package dynamicresources

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/framework"
)

// rule implements framework.LocalRule for the pods of one class. Its answer for a node changes with the
// content of the node's devices, which touches the node.
type rule struct {
	state *cluster.State
	demand
	how    devices.How
	yields bool    // pods may preempt for devices
	keep   *keeper // nil when devices don't count for the score
	places []place // of the claims that have an allocation
	// variants are what to ask the allocator, by which of the extended resources the node lacks: bit i
	// for extended[i]. They are made when a node lacks these first: there may be 2^64. Workers of an engine
	// evaluate nodes side by side.
	variants sync.Map // of variant, by uint64
}

// place is where a claim's devices are.
type place struct {
	selector *nodeaffinity.NodeSelector // nil for everywhere
	broken   bool                       // the selector can't be read
	unready  bool                       // they can't be used anywhere
}

// variant is what has to be allocated on nodes that lack the same extended resources.
type variant struct {
	question devices.Question
	claims   []*resourcev1.ResourceClaim
}

// unnamed is how kube-scheduler calls a claim for extended resources that isn't made yet.
const unnamed = "<extended-resources>"

// maxExtended is how many extended resources of one pod devices may provide. A claim has at most 32 devices.
const maxExtended = 64

func newRule(d demand, state *cluster.State, p Plugin, keep *keeper) *rule {
	r := &rule{state: state, demand: d, how: p.how(state), yields: p.yields, keep: keep}
	for _, c := range d.had {
		p := place{unready: unready(c) != ""}
		if s := c.Status.Allocation.NodeSelector; s != nil {
			parsed, err := nodeaffinity.NewNodeSelector(s)
			p.selector, p.broken = parsed, err != nil
		}
		r.places = append(r.places, p)
	}
	return r
}

// on returns what to allocate on a node.
func (r *rule) on(n *cluster.Node) variant {
	lacks := r.lacks(n)
	if v, ok := r.variants.Load(lacks); ok {
		return v.(variant)
	}
	v, _ := r.variants.LoadOrStore(lacks, r.variant(lacks))
	return v.(variant)
}

// variant returns what to allocate where some extended resources are lacking.
func (r *rule) variant(lacks uint64) variant {
	claims := slices.Clone(r.wanted)
	if special := r.special(lacks); special != nil {
		special.Namespace, special.Name = r.namespace, unnamed
		claims = append(claims, special)
	}
	if len(claims) == 0 {
		return variant{}
	}
	return variant{r.asks(r.state, claims, r.how), claims}
}

// special returns a claim for the extended resources that a node lacks, nil when it lacks none.
func (d *demand) special(lacks uint64) *resourcev1.ResourceClaim {
	if lacks == 0 {
		return nil
	}
	return specialClaim(d.lacking(lacks))
}

func (d *demand) lacking(lacks uint64) (out []extended) {
	for i := range d.extended {
		if lacks&(1<<i) != 0 {
			out = append(out, d.extended[i])
		}
	}
	return out
}

// lacks returns which extended resources aren't in a node's allocatable.
func (d *demand) lacks(n *cluster.Node) (lacks uint64) {
	for i := range d.extended {
		if n.Allocatable.At(d.extended[i].id) <= 0 {
			lacks |= 1 << i
		}
	}
	return lacks
}

// Reads implements framework.LocalRule.
func (r *rule) Reads() framework.Aspects {
	if r.keep != nil {
		return r.keep.Reads()
	}
	return framework.ReadsObject
}

// EvalNode implements framework.LocalRule. Devices are freed when claims are, and not when pods go: so
// every rejection is final, unless pods may preempt for devices. It allocates when the node's devices are
// met first.
func (r *rule) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if r.stale {
		return framework.Final, 0
	}
	fits, uses := true, []devices.Use(nil)
	if v := r.on(n); v.question != 0 {
		a := r.ask(v, n)
		if a.Ends {
			return framework.Error, 0
		}
		fits, uses = a.Fits && !r.withheld(n), a.Uses
	}
	switch fits = fits && r.reachable(n); {
	case !fits && r.yields:
		return framework.Reject, 0
	case !fits:
		return framework.Final, 0
	case r.keep == nil:
		return framework.OK, 0
	}
	return framework.OK, r.keep.score(n, uses)
}

func (r *rule) ask(v variant, n *cluster.Node) devices.Answer {
	if indexOf(n, r.state) == int32(cluster.NoNode) {
		return r.state.Devices().AskLoose(v.question, r.state.Devices().LooseOf(n.Object), v.claims, r.state.DeviceClasses(), r.how)
	}
	return r.state.Devices().Ask(v.question, indexOf(n, r.state), n.Object, v.claims, r.state.DeviceClasses(), r.how)
}

// indexOf returns the index by which the devices of a node are known, NoNode if the state has no node of
// its name. A copy of a node with more pods on it has the node's devices.
func indexOf(n *cluster.Node, state *cluster.State) int32 {
	if n.Index == cluster.NoNode {
		if x := state.NodeByName(n.Name); x != nil {
			return int32(x.Index)
		}
	}
	return int32(n.Index)
}

// withheld reports whether a node's devices are those that a pod group waits for: a stand-in that keeps room for the
// group is there, in a what-if, and hasn't got all that it claims, since pods have that which are to end first.
func (r *rule) withheld(n *cluster.Node) bool {
	return r.state.AnyGroupRoom() && slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool {
		return p.StandsIn() && r.state.KeepsGroupRoom(p) && r.state.KeepsDevices(p) && lacking(p, n, r.state)
	})
}

// lacking reports whether a pod on a node hasn't got all devices that it claims.
func lacking(p *cluster.Pod, n *cluster.Node, state *cluster.State) bool {
	d := demandOf(p, state)
	return d.problem == "" && (len(d.wanted) > 0 || d.lacks(n) != 0 && state.ExtendedResourceClaim(p) == nil)
}

// reachable reports whether a node can use the devices that the claims have.
func (r *rule) reachable(n *cluster.Node) bool {
	for i := range r.places {
		if r.places[i].rejects(n.Object) {
			return false
		}
	}
	return true
}

func (p *place) rejects(n *v1.Node) bool {
	return p.unready || p.broken || p.selector != nil && !p.selector.Match(n)
}

// Explain implements framework.LocalRule.
func (r *rule) Explain(n *cluster.Node) *framework.Reason {
	code, _ := r.EvalNode(n)
	return &framework.Reason{Plugin: Name, Messages: []string{r.why(n)}, Final: code != framework.Reject}
}

// why says why the devices can't be had on a node, as kube-scheduler's plugin does and in its order.
func (r *rule) why(n *cluster.Node) string {
	if r.stale {
		return "cannot schedule extended resource claim"
	}
	v := r.on(n)
	if v.question != 0 {
		if a := r.ask(v, n); !a.Fits {
			return r.unallocatable(v, n, a)
		}
		if r.withheld(n) {
			return "its devices are reserved for a pod group that waits for more of them"
		}
	}
	return "resourceclaim not available on the node"
}

// unallocatable says why the allocator found no devices.
func (r *rule) unallocatable(v variant, n *cluster.Node, a devices.Answer) string {
	if a.Over != (devices.Excess{}) {
		return a.Over.Reason(v.claims)
	}
	if a.Failed {
		_, err := r.state.Devices().Allocate(v.question, indexOf(n, r.state), n.Object, v.claims, r.state.DeviceClasses(), r.how)
		if err != nil {
			return err.Error()
		}
	}
	return "cannot allocate all claims"
}

// alternatives implements framework.GroupRule: a node is better the earlier in their lists the
// alternatives stand that can be had there.
type alternatives struct {
	framework.StaticScore
	rule *rule
}

// StaticKey implements framework.GroupRule.
func (a alternatives) StaticKey(basics *cluster.NodeBasics) int32 {
	n := a.rule.state.NodeByName(basics.Object.Name)
	if n == nil {
		return 0
	}
	score := int64(0)
	if v := a.rule.on(n); v.question != 0 {
		score = a.rule.ask(v, n).Score
	}
	for _, c := range a.rule.had {
		score += devices.Score(c, c.Status.Allocation)
	}
	return int32(score)
}

// Explain implements framework.GroupRule.
func (alternatives) Explain(*framework.Groups, int) *framework.Reason { return nil }
