package expander

import "slices"

// Cost is Berth's own expander: the cheapest mix of node groups for all pending pods
// together. A plan whose chain begins with it buys that mix first (scaleup, mix.go), with
// no round for it. What is left then are pods whose place depends on other pods, and
// groups without a price; for these there are rounds as for any other expander, in which
// Cost prefers the options that cost least for each pod that they place.
//
// Options of unknown price (0) are left out where another's is known. When none is known
// all stay, and the next of the chain decides: "cost,least-waste" is a good list.
type Cost struct{}

var _ Strategy = Cost{}

// Best implements Strategy.
func (Cost) Best(_ *Round, options []Option) []Option {
	var best []Option
	for _, o := range options {
		if o.Group.Price <= 0 {
			continue
		}
		if len(best) > 0 {
			// Compared without dividing, so that equal options are equal.
			a, b := o.Price()*float64(best[0].Pods.Len()), best[0].Price()*float64(o.Pods.Len())
			if a > b {
				continue
			}
			if a < b {
				best = best[:0]
			}
		}
		best = append(best, o)
	}
	if len(best) == 0 {
		return options
	}
	return best
}

// Price returns what the option's new nodes cost an hour, as far as it is known.
func (o *Option) Price() float64 {
	nodes, sum := o.Nodes, 0.0
	for _, s := range o.Similar {
		nodes -= s.Nodes
		sum += float64(s.Nodes) * s.Group.Price
	}
	return sum + float64(nodes)*o.Group.Price
}

// ReadsPrices reports whether a strategy of the chain leaves all options where none has a price.
func (c Chain) ReadsPrices() bool {
	return slices.ContainsFunc(c, func(s Strategy) bool {
		switch s.(type) {
		case Cost, Price:
			return true
		}
		return false
	})
}

// BuysMix reports whether a plan of this chain begins with the cheapest mix.
func (c Chain) BuysMix() bool {
	if len(c) == 0 {
		return false
	}
	_, ok := c[0].(Cost)
	return ok
}
