package autoscaler

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// Gang is a pod group that waits. A plan has places for enough of its members, or for none.
type Gang struct {
	Key cluster.PodGroupKey
	// Members have no node, at least one, in the order of scheduling.
	Members []*cluster.Pod
	// MinCount is how many members must have a node, those on nodes in the state included.
	MinCount int
	// Topologies are the node labels of each of which all members' nodes must have one value, outermost first; nil
	// for none.
	Topologies []string
	// In are the values of these labels that the members' nodes must have, "" for any; nil when they may have any.
	In []string
}

// GangPlan is what a plan has for a pod group.
type GangPlan struct {
	Gang    string // namespace/name
	Members int    // without a node
	Need    int    // how many of the members must have a place
	// Placed is how many of the members have a place in the plan: enough of them, or 0.
	Placed int
	// InPlace are those of them that keep the places that they had before. The plan names the others in Joins and
	// ScaleUps, if it has any for the gang.
	InPlace []types.UID
	// Nodes is how many nodes are bought for the gang, and Price what they cost an hour; 0 if that
	// isn't known.
	Nodes int
	Price float64
	// Domain is the value of Gang.Topologies on the nodes, a/b for two, as it was predicted for those that are
	// bought; "" for none.
	Domain string
	// Anew says that the places that members had before are for others now.
	Anew bool
	// Tried are the options that were tried and failed.
	Tried []GangOption
}

// GangOption is one way to place a gang that failed.
type GangOption struct {
	Domain string // "" when no topology is required
	Fits   int    // how many members would have a place, at most
	Why    string
}

// String says what the plan has for the pod group.
func (g *GangPlan) String() string {
	var parts []string
	if g.Placed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d members have places", g.Placed, g.Members))
		if g.Domain != "" {
			parts[0] += " in " + g.Domain
		}
		if g.Nodes == 0 {
			parts = append(parts, "no node has to be bought")
		} else if g.Price > 0 {
			parts = append(parts, fmt.Sprintf("%d node(s) are bought for $%.2f/h", g.Nodes, g.Price))
		} else {
			parts = append(parts, fmt.Sprintf("%d node(s) are bought", g.Nodes))
		}
	} else {
		parts = append(parts, fmt.Sprintf("%d members have to be placed together, and nothing is bought", g.Need))
	}
	for _, o := range g.Tried[:min(len(g.Tried), maxToldOptions)] {
		in := ""
		if o.Domain != "" {
			in = " in " + o.Domain
		}
		parts = append(parts, fmt.Sprintf("%d would fit%s", o.Fits, in))
	}
	if more := len(g.Tried) - maxToldOptions; more > 0 {
		parts = append(parts, fmt.Sprintf("and fewer than needed in %d more domains", more))
	}
	return strings.Join(parts, "; ")
}

// maxToldOptions is how many options that failed a message names.
const maxToldOptions = 8
