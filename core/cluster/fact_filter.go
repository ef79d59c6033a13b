package cluster

// Node filters of facts. Hundreds of apps that spread themselves over the same nodes have a
// fact each, and one filter: a node that comes, changes or goes is matched once for all of
// them, and not again by the pods that come to it.

// nodeFilter is a NodeFilter that remembers its last answer.
type nodeFilter struct {
	NodeFilter
	facts  int       // in use that share it
	last   *NodeInfo // that was asked about last: it is immutable
	passed bool
}

// match is Match.
func (f *nodeFilter) match(n *NodeInfo) bool {
	if f.last != n {
		f.last, f.passed = n, f.Match(n)
	}
	return f.passed
}

// shareFilter has a fact that comes into use share the filter of the others with its key.
func (x *factIndex) shareFilter(f *Fact) {
	if f.filter == nil || f.spec.FilterKey == "" {
		return
	}
	if shared, ok := x.filters[f.spec.FilterKey]; ok {
		f.filter = shared
	} else {
		x.filters[f.spec.FilterKey] = f.filter
	}
	f.filter.facts++
}

// unshareFilter takes shareFilter back. No filter without facts is kept.
func (x *factIndex) unshareFilter(f *Fact) {
	if f.filter == nil || f.spec.FilterKey == "" {
		return
	}
	if f.filter.facts--; f.filter.facts == 0 {
		delete(x.filters, f.spec.FilterKey)
	}
}
