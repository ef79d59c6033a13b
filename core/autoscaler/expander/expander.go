// Package expander chooses among node groups that could take pending pods.
package expander

// Option is what one group could take.
type Option struct {
	Group string
	Nodes int // that the group would grow by
	Pods  int // that would be placed then
	// Wasted is the share of the new nodes' CPU plus that of their memory which the pods
	// leave unused: 0 to 2.
	Wasted float64
}

// Strategy compares options: the result is negative when a is to be preferred, positive
// when b is. Between equals the first group by ID is chosen.
type Strategy func(a, b Option) int

// LeastWaste prefers the least unused CPU and memory, as Cluster Autoscaler's
// least-waste expander does.
func LeastWaste(a, b Option) int {
	switch {
	case a.Wasted < b.Wasted:
		return -1
	case a.Wasted > b.Wasted:
		return 1
	}
	return 0
}

// Choose returns the index of the best option, -1 for none. Options are
// expected in order of group ID.
func Choose(options []Option, strategy Strategy) int {
	best := -1
	for i := range options {
		if best < 0 || strategy(options[i], options[best]) < 0 {
			best = i
		}
	}
	return best
}
