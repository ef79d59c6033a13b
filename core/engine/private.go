package engine

// When a class gets a column of its own.
//
// Exceptional nodes are evaluated one by one at each decision, and excluded nodes are taken
// out of the counts of their groups. In a column of the class's own there are neither, since
// its groups tell host keys apart, but that column has to follow every change, while a shared
// one does so once for all its classes. Both give the same answers.
//
// The class moves to a private column once these nodes have cost as much
// more than following changes would have as building the column costs, and back when it
// is the other way round: never more than about twice the cost of the best choice in
// hindsight.

// Costs, relative to one another.
const (
	excludedCost    = 1  // of taking one excluded node out at a decision
	exceptionalCost = 6  // of evaluating one exceptional node at a decision
	followCost      = 36 // of evaluating one touched node
	buildCost       = 18 // of evaluating one node of many in a row
)

// syncedColumn returns the column that the class is to use for a decision, up to date.
func (e *Engine) syncedColumn(c *Class) *column {
	if c.ByName() {
		return e.namedColumn(c)
	}
	if len(c.hostFacts) > 0 {
		e.weighPrivate(c)
	}
	if c.private != nil {
		return e.synced(c.private)
	}
	return e.localColumn(c)
}

// localColumn returns a column with the local answers for the class, up to date: the shared one, or
// that of its named nodes.
func (e *Engine) localColumn(c *Class) *column {
	if c.ByName() {
		return e.namedColumn(c)
	}
	return e.synced(c.shared)
}

// weighPrivate counts what this decision costs in the one column more than in the other,
// and moves the class once that adds up to the limit.
//
// A private column is right only while each host domain is one node: a change of the host
// key then touches that node, which has the column evaluate it again. Topologies count
// how often a domain got a second node, since that may have passed between two decisions.
func (e *Engine) weighPrivate(c *Class) {
	head := e.state.Head()
	touched := int(head - min(c.lastSync, head)) // about: changes may touch no node, or one twice
	c.lastSync = head
	shared := 0
	for _, f := range c.excluding {
		shared += f.Nonzero() * excludedCost
	}
	for _, f := range c.telling {
		shared += f.Nonzero() * exceptionalCost
	}
	limit := buildCost * (e.state.Len() + 64)
	c.privateGains += shared - touched*followCost
	c.privateGains = max(-limit, min(limit, c.privateGains))
	switch {
	case c.private == nil && c.privateGains == limit && hostDomainsAreNodes(c):
		c.private = e.newColumn(c)
		c.private.private = true
		c.private.source = c.shared.evaluator()
		c.private.meetings = meetings(c)
		e.privates[c.private] = true
		c.privateGains = 0
	case c.private != nil && (c.privateGains == -limit || !hostDomainsAreNodes(c) || c.private.meetings != meetings(c)):
		e.dropPrivate(c)
		c.privateGains = 0
	}
}

// hostDomainsAreNodes reports whether no domain of a host fact has more than one node.
func hostDomainsAreNodes(c *Class) bool {
	for _, f := range c.hostFacts {
		if !f.Topology().Unshared() {
			return false
		}
	}
	return true
}

// meetings returns how often a domain of a host fact has got its second node.
func meetings(c *Class) (n uint64) {
	for _, f := range c.hostFacts {
		n += f.Topology().TimesShared()
	}
	return n
}
