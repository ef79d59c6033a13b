package volumebinding

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/cluster"
)

// finding is where a pod's volumes would come from on a node, or what is wrong.
type finding struct {
	bindings   []binding   // delayed claims with a volume for each
	provisions []provision // delayed claims that are to be provisioned
	problems
}

// binding is a delayed claim with the volume that it is to be bound to.
type binding struct {
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume
}

// provision is a delayed claim with where its storage comes from, nil when the driver doesn't
// publish its capacity or the claim has no size.
type provision struct {
	claim *v1.PersistentVolumeClaim
	from  *storagev1.CSIStorageCapacity
}

// problems are what is wrong with a node, in the order in which kube-scheduler
// tells it.
type problems struct {
	wrongNode     bool // a bound volume's affinity doesn't admit the node
	nothingToBind bool // a delayed claim finds no volume, and none can be provisioned
	noSpace       bool // one could be provisioned, but for lack of capacity
	volumeGone    bool // a bound volume doesn't exist
}

func (p problems) ok() bool { return p == problems{} }

// reasons returns kube-scheduler's message for each problem.
func (p problems) reasons() []string {
	var out []string
	for _, x := range []struct {
		is   bool
		text string
	}{
		{p.wrongNode, "node(s) didn't match PersistentVolume's node affinity"},
		{p.nothingToBind, "node(s) didn't find available persistent volumes to bind"},
		{p.noSpace, "node(s) did not have enough free storage"},
		{p.volumeGone, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
	} {
		if x.is {
			out = append(out, x.text)
		}
	}
	return out
}

// find follows FindPodVolumes of kube-scheduler: bound claims first; then each
// delayed claim, the smallest first, takes the smallest volume that suits it and
// that no claim before it took; those that find none are to be provisioned. A claim
// with a selected node is on its way to be provisioned there.
func (c *claims) find(state *cluster.State, n *cluster.Node) finding {
	f := finding{}
	f.checkBound(c.bound, state, n)
	var match, provision []delayedClaim
	for _, claim := range c.delayed {
		switch node, selected := claim.Annotations[cluster.AnnSelectedNode]; {
		case !selected:
			match = append(match, claim)
		case node == n.Name:
			provision = append(provision, claim)
		default:
			f.nothingToBind = true
			return f
		}
	}
	slices.SortStableFunc(match, func(a, b delayedClaim) int {
		x, y := a.Spec.Resources.Requests[v1.ResourceStorage], b.Spec.Resources.Requests[v1.ResourceStorage]
		return x.Cmp(y)
	})
	for _, claim := range match {
		if pv := f.smallest(claim, state, n); pv != nil {
			f.bindings = append(f.bindings, binding{claim.PersistentVolumeClaim, pv})
		} else {
			provision = append(provision, claim)
		}
	}
	for _, claim := range provision {
		f.provision(claim.PersistentVolumeClaim, state, n)
		if f.nothingToBind || f.noSpace {
			return f
		}
	}
	return f
}

// checkBound asks the bound volumes whether they admit the node, up to the first
// that doesn't.
func (f *finding) checkBound(bound []boundClaim, state *cluster.State, n *cluster.Node) {
	for i := range bound {
		b := &bound[i]
		if b.volume == nil {
			f.volumeGone = true
			return
		}
		if !b.admits(n, state.CSINode(n.Name)) {
			f.wrongNode = true
			return
		}
	}
}
