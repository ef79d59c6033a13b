package expander

// The strategies that compare one number of each option.

var (
	_ Strategy = Random{}
	_ Strategy = MostPods{}
	_ Strategy = LeastWaste{}
	_ Strategy = LeastNodes{}
)

// Random draws one of the options.
type Random struct{}

// Best implements Strategy.
func (Random) Best(r *Round, options []Option) []Option {
	if len(options) == 0 {
		return nil
	}
	i := r.draw(len(options))
	return options[i : i+1]
}

// MostPods prefers the options that place the most pods.
type MostPods struct{}

// Best implements Strategy.
func (MostPods) Best(_ *Round, options []Option) []Option {
	return lowest(options, func(o *Option) float64 { return -float64(o.Pods.Len()) })
}

// LeastWaste prefers the options that leave the least CPU and memory unused, as the sum
// of the two shares. Cluster Autoscaler takes shares of the nodes' capacity; these are
// of what they can allocate.
type LeastWaste struct{}

// Best implements Strategy.
func (LeastWaste) Best(_ *Round, options []Option) []Option {
	return lowest(options, func(o *Option) float64 { return o.Wasted })
}

// LeastNodes prefers the options with the fewest new nodes, whatever these cost.
type LeastNodes struct{}

// Best implements Strategy.
func (LeastNodes) Best(_ *Round, options []Option) []Option {
	return lowest(options, func(o *Option) float64 { return float64(o.Nodes) })
}

// lowest returns the options whose number is the smallest. Only numbers that are
// exactly equal count as equal, as in Cluster Autoscaler.
func lowest(options []Option, number func(*Option) float64) []Option {
	var best []Option
	var least float64
	for i := range options {
		n := number(&options[i])
		if len(best) > 0 && n > least {
			continue
		}
		if len(best) > 0 && n < least {
			best = best[:0]
		}
		least = n
		best = append(best, options[i])
	}
	return best
}
