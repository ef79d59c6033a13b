// Package framework is the contract between a placement rule and the engine.
//
// A rule says what of a pod it reads (Sign) and what of the cluster it reads:
// one node (LocalRule) or groups of nodes and facts (GroupRule). Classes,
// caches and their invalidation, queueing hints, what-if simulation and
// explanations all follow from that.
package framework
