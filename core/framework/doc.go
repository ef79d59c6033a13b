// Package framework is the contract between a placement rule and the engine.
//
// A rule says what of a pod it reads (Sign) and what of the cluster it reads:
// one node (LocalRule) or groups of nodes and facts (GroupRule). Classes,
// caches and their invalidation, queueing hints, what-if simulation and
// explanations all follow from that.
//
// Where things stand:
//
//	plugin.go     Plugin, and what else a plugin may implement
//	rule.go       LocalRule and GroupRule, which a plugin makes for one class
//	groups.go     the groups of nodes that a group rule sees
//	reason.go     Code and Reason: a rule's answer, on the hot path and for people
//	signature.go  the bytes in which a plugin says what it reads of a pod
//	profile.go    Profile: the plugins of one schedulerName with their weights
//	binding.go    plugins that follow a pod from its node's choice to its binding
//	preempter.go  which pods may preempt which others
//	extender.go   HTTP extenders, as far as decisions go
//
// hostkeys.go, static.go, topologykeys.go and only.go are parts that several
// rules are built from.
package framework
