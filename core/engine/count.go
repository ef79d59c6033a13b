package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Countable reports whether how many pods of the class a node takes follows from that node
// alone, and every rule that has a say in it can count (framework.Counter). Then nodes
// that are alike take equally many, whatever is placed elsewhere.
//
// A group rule counts the pods of a hostname as those of a node, so classes that have such
// a rule are countable only while no two nodes of the state have one hostname.
//
// Pods with claims aren't countable, since placing one may change what the next one's claims
// lead to, unless a rule says that it counts with them (framework.ClaimCounter).
func (e *Engine) Countable(c *Class) bool {
	return e.upToNodes(c, func(r framework.GroupRule) bool {
		_, counts := r.(framework.Counter)
		return counts
	})
}

// upToNodes reports whether how many pods of the class a node takes follows from that node alone. holds reports of a group
// rule that may reject nodes whether it looks at the node alone.
func (e *Engine) upToNodes(c *Class, holds func(framework.GroupRule) bool) bool {
	e.refresh(c)
	if len(c.pod.Claims) > 0 || (c.takes || e.state.TakesObjects(c.pod)) && !c.countsClaims() {
		return false
	}
	for i := range c.localRules {
		r := &c.localRules[i]
		if _, counts := r.LocalRule.(framework.Counter); !counts && r.reads&framework.ReadsPods != 0 {
			return false
		}
	}
	for i := range c.groupRules {
		r := &c.groupRules[i]
		if r.neverFilters {
			continue
		}
		if !holds(r.GroupRule) || !hostDomainsAreNodes(c) {
			return false
		}
	}
	return true
}

// countsClaims reports whether a rule counts the pods of the class with their claims for devices.
func (c *Class) countsClaims() bool {
	return slices.ContainsFunc(c.localRules, func(r localRule) bool {
		x, ok := r.LocalRule.(framework.ClaimCounter)
		return ok && x.CountsClaims()
	})
}

// TakesAlone reports whether a node, which may be in no state, takes a pod of the class as far
// as the node alone can say: what is elsewhere may still keep the pod away.
func (e *Engine) TakesAlone(c *Class, n *cluster.Node) bool {
	e.refresh(c)
	if c.Rejected != nil {
		return false
	}
	for i := range c.localRules {
		if code, _ := c.localRules[i].EvalNode(n); code != framework.OK {
			return false
		}
	}
	return true
}

// RejectedAlike reports whether what is elsewhere keeps pods of the class from both of two
// nodes or from neither, wherever these are added to the state: no group rule that may
// reject a node tells them apart. The nodes may be in no state.
func (e *Engine) RejectedAlike(c *Class, a, b *cluster.NodeInfo) bool {
	e.refresh(c)
	for i := range c.groupRules {
		r := &c.groupRules[i]
		if r.neverFilters {
			continue
		}
		if len(r.HostFacts()) > 0 || r.StaticKey(&a.NodeBasics) != r.StaticKey(&b.NodeBasics) {
			return false
		}
		for _, t := range r.topologies {
			if !c.topologies[t].SameDomain(a, b) {
				return false
			}
		}
	}
	return true
}

// Count returns how many pods of a countable class a node takes, one after the other. The
// node may be in no state (cluster.DetachedNode). It costs one evaluation; that of a group
// rule, which looks at the node's pods, only where the local rules take a pod.
func (e *Engine) Count(c *Class, n *cluster.Node) int {
	if c.Rejected != nil {
		return 0
	}
	for i := range c.localRules {
		r := &c.localRules[i]
		if _, counts := r.LocalRule.(framework.Counter); counts {
			continue
		}
		if code, _ := r.EvalNode(n); code != framework.OK {
			return 0
		}
	}
	return e.CountByPods(c, n)
}

// CountByPods is Count where the node's object is known to let the class in, as it is if
// Count isn't 0 for a node that differs in its pods only. It asks the counting rules alone.
func (e *Engine) CountByPods(c *Class, n *cluster.Node) int {
	most := framework.Unlimited
	for i := range c.localRules {
		if x, counts := c.localRules[i].LocalRule.(framework.Counter); counts {
			if most = min(most, x.Count(n)); most == 0 {
				return 0
			}
		}
	}
	for i := range c.groupRules {
		if r := &c.groupRules[i]; !r.neverFilters {
			most = min(most, r.GroupRule.(framework.Counter).Count(n))
		}
	}
	return most
}
