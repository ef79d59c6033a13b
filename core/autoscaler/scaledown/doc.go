// Package scaledown finds the nodes that could be removed, all of them together: the
// simulation of the parallel drain proposal of Cluster Autoscaler.
//
// The simulator has a copy of the cluster's state of its own, the world, in which the pods of
// candidates stand on the nodes that have room for them, their homes. It stays like that from
// one pass to the next, so that a pass costs what has changed. A pass:
//
//  1. follows what has changed in the cluster (follow.go). Candidates whose nodes have changed
//     are undone; pods whose homes have changed have to fit there still, or find another home,
//     or their candidate is undone;
//  2. finds room for the pods that are displaced already. If one finds none, nothing else may
//     go: there is no candidate. Pending pods that fit on nodes as they are have room next;
//  3. confirms the candidates: their nodes and pods may still go, within the disruption
//     budgets and minimums, which are counted down in the order of the candidates;
//  4. looks for further candidates (pass.go), in a stable order: empty nodes first, then by
//     rising utilization. All pods of a node have to find homes, by every rule that filters,
//     where they were placed in the pass before if possible, and otherwise on the fullest node
//     that takes them (packing.go).
//
// What keeps a node from being looked at is remembered as long as it holds (checks.go). A pass
// before which nothing has changed, and whose time hasn't come, has the outcome of the last
// (outcome.go). Each of these two follows the changes since the last pass and the times after
// which something may be otherwise, which the rules tell (Check.Until, drainability.Context.Until).
//
// After a pass it may be asked for a consolidation (consolidate.go): nodes that could go if others
// were bought. While one is under way, passes give its nodes precedence (replacing.go).
//
// Homes are never on candidates, on nodes on their way out, or on nodes that aren't ready; and
// a node that is a home is no candidate. A pass that takes too long ends, and the next goes on
// with the nodes that weren't looked at.
package scaledown
