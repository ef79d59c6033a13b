package devices

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// allotment is what the library has allocated on a node. On another node of the same content it would
// allocate the same devices, in the pools that stand in the same places there. It isn't changed once it is
// made.
type allotment struct {
	results []resourcev1.AllocationResult // nil when nothing can be allocated
	node    string
	pools   []PoolID // that the node saw, in their order
}

// allotments is how many are kept at most. They are larger than answers.
const allotments = 1 << 14

// allotted is what an allotment follows from.
type allotted struct {
	question Question
	content  Content
	// parameters stands for those of drivers, which allocations repeat and questions leave out: the library
	// doesn't read them.
	parameters Digest
}

// allocateOnce is allocate, but asks the library only where no node of the same content was asked about
// before. Nothing is remembered of a question of 0, nor of devices that are packed: their order follows from more
// than the content. Errors aren't either, since they name claims and nodes. The
// caller holds mu, and may change the results, but not what they point to.
func (v *Inventory) allocateOnce(q Question, c Content, pools []seen, n *v1.Node, claims []*resourcev1.ResourceClaim, classes Classes, how How) ([]resourcev1.AllocationResult, error) {
	if q == 0 || how.Packed {
		v.asks++
		return v.allocate(pools, n, claims, classes, how)
	}
	key := allotted{q, c, parametersOf(claims, classes)}
	if a, ok := v.allotments[key]; ok {
		return a.on(n.Name, pools), nil
	}
	v.asks++
	out, err := v.allocate(pools, n, claims, classes, how)
	if err != nil {
		return out, err
	}
	if len(v.allotments) >= allotments {
		clear(v.allotments)
	}
	a := allotment{results: out, node: n.Name}
	for _, p := range pools {
		a.pools = append(a.pools, p.PoolID)
	}
	v.allotments[key] = a
	return a.on(n.Name, pools), nil
}

// parametersOf returns what stands for the parameters of drivers in claims and in the classes that they
// name; the zero Digest for none, as in most clusters.
func parametersOf(claims []*resourcev1.ResourceClaim, classes Classes) Digest {
	var all []any
	for k, c := range claims {
		if len(c.Spec.Devices.Config) > 0 {
			all = append(all, k, c.Spec.Devices.Config)
		}
		for i := range c.Spec.Devices.Requests {
			r := &c.Spec.Devices.Requests[i]
			add := func(name string) {
				if class, err := classes.Get(name); err == nil && class != nil && len(class.Spec.Config) > 0 {
					all = append(all, name, class.Spec.Config)
				}
			}
			if r.Exactly != nil {
				add(r.Exactly.DeviceClassName)
			}
			for x := range r.FirstAvailable {
				add(r.FirstAvailable[x].DeviceClassName)
			}
		}
	}
	if all == nil {
		return Digest{}
	}
	return digest(all)
}

// on returns what is allocated on a node with these pools.
func (a *allotment) on(node string, pools []seen) []resourcev1.AllocationResult {
	out := slices.Clone(a.results)
	for k := range out {
		results := slices.Clone(out[k].Devices.Results)
		for i := range results {
			r := &results[i]
			r.Pool = pools[slices.Index(a.pools, PoolID{r.Driver, r.Pool})].Name
		}
		if out[k].Devices.Results = results; onlyNode(out[k].NodeSelector, a.node) {
			out[k].NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
				{Key: nameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}
		}
	}
	return out
}

// nameField is the field by which the library selects a node for devices that are its own.
const nameField = "metadata.name"

// onlyNode reports whether a selector, which may be nil, selects one node by its name.
func onlyNode(s *v1.NodeSelector, node string) bool {
	if s == nil || len(s.NodeSelectorTerms) != 1 || len(s.NodeSelectorTerms[0].MatchExpressions) > 0 || len(s.NodeSelectorTerms[0].MatchFields) != 1 {
		return false
	}
	f := &s.NodeSelectorTerms[0].MatchFields[0]
	return f.Key == nameField && f.Operator == v1.NodeSelectorOpIn && slices.Equal(f.Values, []string{node})
}
