package expander

import (
	"cmp"
	"math"

	"github.com/berthproject/berth/core/cluster"
)

// Price prefers the options whose nodes cost least for what their pods are worth, among
// nodes of a size that suits the cluster: Cluster Autoscaler's price expander
// (proposals/pricing.md there). Smaller is better:
//
//	score  = fit × (price of the nodes + X) / (price of the pods + X)
//	fit    = 1 + (u - 1) × (1 - tanh((nodes - 1) / 15)), or 1000 for nodes with GPUs
//	u      = a node's cores over those of the preferred node, or its inverse: at least 1
//	X      = price of 0.5 cores and 500 MiB, so that small pods don't decide
//
// So one node should be of the preferred size; the more nodes at once, the less that
// matters. Nodes with GPUs are chosen when no others take the pods.
//
// The price of a node is NodeGroup.Price, per hour. Providers that price pods, too, are
// rare and Berth asks none: a pod is worth what its requests are at the prices below.
//
// Options of unknown price (0) are left out where another's is known. When none is
// known the options stay as they are; Cluster Autoscaler doesn't start then.
type Price struct{}

var _ Strategy = Price{}

// The worth of what pods request, an hour: Cluster Autoscaler's prices for instances of
// no known family on GCE, in dollars. They needn't be those of the provider: since the
// pods of all options are priced alike, they compare options that place different pods,
// and scale X.
const (
	corePrice = 0.033174
	gibPrice  = 0.004446
	gpuPrice  = 0.70
)

// gpuFit is the fit of nodes with GPUs.
const gpuFit = 1000

// stabilization is X.
const stabilization = 0.5*corePrice + 500.0/1024*gibPrice

// Best implements Strategy.
func (Price) Best(r *Round, options []Option) []Option {
	var priced []Option
	for i := range options {
		if options[i].Group.Price > 0 {
			priced = append(priced, options[i])
		}
	}
	if len(priced) == 0 {
		return options
	}
	return lowest(priced, func(o *Option) float64 { return score(o, preferredCores(r.Nodes)) })
}

// Worth returns what a pod's requests are worth an hour.
func Worth(pod *cluster.Pod) float64 { return podPrice(pod) }

// score is an option's score.
func score(o *Option, preferred float64) float64 {
	var worth float64
	for pod := range o.Pods.All() {
		worth += podPrice(pod)
	}
	return fit(o, preferred) * (nodesPrice(o) + stabilization) / (worth + stabilization)
}

// nodesPrice is what an option's nodes cost an hour. A similar group of unknown price
// costs as much as the main one.
func nodesPrice(o *Option) float64 {
	own, sum := o.Nodes, 0.0
	for _, s := range o.Similar {
		own -= s.Nodes
		sum += float64(s.Nodes) * cmp.Or(s.Group.Price, o.Group.Price)
	}
	return sum + float64(own)*o.Group.Price
}

// podPrice is what a pod's requests are worth an hour.
func podPrice(pod *cluster.Pod) float64 {
	price := corePrice*float64(pod.Request.At(cluster.CPU))/1000 + gibPrice*float64(pod.Request.At(cluster.Memory))/(1<<30)
	for _, id := range cluster.GPUs() {
		price += gpuPrice * float64(pod.Request.At(id))
	}
	return price
}

// fit says how badly an option's nodes suit the cluster, 1 for perfectly.
func fit(o *Option, preferred float64) float64 {
	node := cmp.Or(o.Allocatable, &o.Group.Template.Allocatable)
	for _, id := range cluster.GPUs() {
		if node.At(id) > 0 {
			return gpuFit
		}
	}
	cores := float64(max(node.At(cluster.CPU), 1)) / 1000 // never 0: the score has to be a number
	unfit := max(preferred/cores, cores/preferred)
	return 1 + (unfit-1)*(1-math.Tanh(float64(o.Nodes-1)/15))
}

// preferredCores returns the cores that a node of a cluster of so many nodes should
// have: twice as many each time the cluster has grown threefold.
func preferredCores(nodes int) float64 {
	cores := 1.0
	for _, limit := range []int{2, 6, 20, 60, 200} {
		if nodes > limit {
			cores *= 2
		}
	}
	return cores
}
