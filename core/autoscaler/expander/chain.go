package expander

import (
	"fmt"
	"slices"
	"strings"
)

// Chain is strategies in the order in which they are asked. Each sees what the one
// before it has left; of what the last one leaves, one is drawn. So of several zonal
// groups of one shape no zone is preferred. The zero value is least-waste alone.
type Chain []Strategy

// Choose returns the index of the option that a plan should go on with, -1 when there
// is none or a strategy has forbidden all of them.
func (c Chain) Choose(r Round, options []Option) int {
	if len(options) == 0 {
		return -1
	}
	if len(c) == 0 {
		c = Chain{LeastWaste{}}
	}
	left, by := options, RandomName
	for _, s := range c {
		if left = s.Best(&r, left); len(left) <= 1 {
			by = nameOf(s)
			break
		}
	}
	if len(left) == 0 {
		return -1
	}
	if len(options) == 1 {
		by = ""
	}
	if r.By != nil {
		*r.By = by
	}
	chosen := left[r.draw(len(left))].Group.ID
	return slices.IndexFunc(options, func(o Option) bool { return o.Group.ID == chosen })
}

// Names of strategies, as --expander has them.
const (
	RandomName     = "random"
	MostPodsName   = "most-pods"
	LeastWasteName = "least-waste"
	LeastNodesName = "least-nodes"
	PriceName      = "price"
	PriorityName   = "priority"
	GRPCName       = "grpc"
	CostName       = "cost" // Berth's own
)

// Names returns those that ParseNames accepts.
func Names() []string {
	return []string{RandomName, MostPodsName, LeastWasteName, LeastNodesName, PriceName, PriorityName, GRPCName, CostName}
}

// ParseNames reads a list of names, separated by commas. As with Cluster Autoscaler,
// none may come twice, and none after random, which leaves nothing to choose. An error
// says what would be accepted.
func ParseNames(list string) ([]string, error) {
	out := strings.Split(list, ",")
	for i, name := range out {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("unknown expander %q; give one or more of %s, separated by commas", name, strings.Join(Names(), ", "))
		}
		if slices.Contains(out[:i], name) {
			return nil, fmt.Errorf("expander %s is listed twice; list each expander once", name)
		}
		if i > 0 && out[i-1] == RandomName {
			return nil, fmt.Errorf("expander %s comes after random, which leaves only one option; list random last", name)
		}
	}
	return out, nil
}

// Named reports whether a list has a name.
func Named(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }

// NewChain returns the chain of a list of names, as ParseNames takes it; the empty list
// is least-waste. Strategies that read more than options, priority and grpc, are in
// provided, by name. An error says what of the list can't be read or isn't provided.
func NewChain(list string, provided map[string]Strategy) (Chain, error) {
	if list == "" {
		return nil, nil
	}
	names, err := ParseNames(list)
	if err != nil {
		return nil, err
	}
	var out Chain
	for _, name := range names {
		if s := builtIn(name); s != nil {
			out = append(out, s)
		} else if s := provided[name]; s != nil {
			out = append(out, answering{s, name})
		} else {
			return nil, fmt.Errorf("expander %s is not available here", name)
		}
	}
	return out, nil
}

// answering writes the answers of a provided strategy down.
type answering struct {
	Strategy
	name string
}

// Best implements Strategy.
func (a answering) Best(r *Round, options []Option) []Option {
	best := a.Strategy.Best(r, options)
	if r.Answers != nil {
		ids := []string{}
		for i := range best {
			ids = append(ids, best[i].Group.ID)
		}
		*r.Answers = append(*r.Answers, ids)
	}
	return best
}

// builtIn returns the strategy of a name that reads nothing but options, nil for none.
func builtIn(name string) Strategy {
	switch name {
	case RandomName:
		return Random{}
	case MostPodsName:
		return MostPods{}
	case LeastWasteName:
		return LeastWaste{}
	case LeastNodesName:
		return LeastNodes{}
	case PriceName:
		return Price{}
	case CostName:
		return Cost{}
	}
	return nil
}

// nameOf returns the name of a strategy of NewChain's, and of any other that of its type.
func nameOf(s Strategy) string {
	switch s := s.(type) {
	case Random:
		return RandomName
	case MostPods:
		return MostPodsName
	case LeastWaste:
		return LeastWasteName
	case LeastNodes:
		return LeastNodesName
	case Price:
		return PriceName
	case Cost:
		return CostName
	case answering:
		return s.name
	}
	return fmt.Sprintf("%T", s)
}

// WeighsPreferences reports whether pods are bought nodes of the groups that they prefer, before
// the chain is asked. It isn't so when one of its strategies goes by what an operator has said
// of groups: their price, a priority, or a server's answer.
func (c Chain) WeighsPreferences() bool {
	for _, s := range c {
		switch s.(type) {
		case Random, MostPods, LeastWaste, LeastNodes:
		default:
			return false
		}
	}
	return true
}
