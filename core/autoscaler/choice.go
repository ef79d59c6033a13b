package autoscaler

// This file records how a choice among node groups was made: why a plan buys
// nodes of a group. It is for people; nothing is decided by it.

// Choice is how the group of a ScaleUp was chosen.
type Choice struct {
	Plan uint64 `json:"plan"` // number of the plan's request
	// By is the expander after which one option was left: random where it was drawn from
	// equal ones, ByMinimum where pods had no say, "" where there was one option only.
	By string `json:"by,omitempty"`
	// Options are what there was to choose from, by group; none with ByMinimum. Those of
	// the cost expander's mix are all groups that it could buy of, with what it bought.
	Options []Option `json:"options,omitempty"`
	// Unpriced says that the expander chain goes by prices and no option had one: another expander
	// of the chain chose, or chance.
	Unpriced bool `json:"unpriced,omitempty"`
	// Nodes and Price are those of all that was chosen, an hour; both are 0 where the price isn't known.
	Nodes int     `json:"nodes,omitempty"`
	Price float64 `json:"price,omitempty"`
	// Next and Dearest are the cheapest and the dearest alternative; nil where there is none, or Price is 0.
	Next    *Alternative `json:"next,omitempty"`
	Dearest *Alternative `json:"dearest,omitempty"`
	// LowerBound is proved: what any purchase for the same pods costs an hour at least. 0 where it isn't known, as by
	// other expanders than cost.
	LowerBound float64 `json:"lowerBound,omitempty"`
}

// Alternative is what else would have held all pods of a choice, and has a price: another option, or, beside the
// cost expander's mix, nodes of one group alone. How many of these it takes is bounded from below.
type Alternative struct {
	Group string  `json:"group"`
	Nodes int     `json:"nodes"`
	Price float64 `json:"price"` // an hour, of all its nodes
}

// Compare adds an alternative to those that there are.
func (c *Choice) Compare(a Alternative) {
	if c.Next == nil || a.Price < c.Next.Price {
		c.Next = &a
	}
	if c.Dearest == nil || a.Price > c.Dearest.Price {
		c.Dearest = &a
	}
}

// ByMinimum is Choice.By of a group that grows to its minimum.
const ByMinimum = "minimum"

// Option is what growing one group would bring.
type Option struct {
	// Group is the group that was packed; the nodes may be of it and of With.
	Group string   `json:"group"`
	With  []string `json:"with,omitempty"` // groups that grow with it, to balance sizes or zones
	Nodes int      `json:"nodes"`          // new ones in all; 0 of a group that a mix has none of
	Pods  int      `json:"pods"`           // that would be placed on them
	// Wasted is the share of the nodes' CPU plus that of their memory which the pods leave
	// unused: 0 to 2.
	Wasted float64 `json:"wasted"`
	Price  float64 `json:"price,omitempty"` // an hour, of all its nodes; 0 where it isn't known
}

// Of returns the option that is known by a group, or that it would grow with; nil for none.
func (c *Choice) Of(group string) *Option {
	for i := range c.Options {
		o := &c.Options[i]
		if o.Group == group {
			return o
		}
		for _, with := range o.With {
			if with == group {
				return o
			}
		}
	}
	return nil
}
