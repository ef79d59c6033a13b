// Package nodestatus brings together what machines know of one node's way out: nodedeletion of
// one that is on it, candidates of one that could go, keptnodes of one that stays. A later stage
// goes before an earlier one:
//
//	State      the node                                       known by
//	Leaving    is on its way out                              nodedeletion
//	Stays      has a removal taint that Berth didn't set      the state
//	Candidate  could go; Reason is what it waits for, if any  candidates, and what limits removals
//	Unknown    was on its way out, and the next plan is due   keptnodes
//	Stays      stays by the last plan, for Reason             keptnodes
//	Unknown    isn't in the last plan, or there is none       nothing
//
// Decisions ask it why a node waits that could go, and explanations why any node is where it is.
// It owns nothing but what a node budget has kept; the rest it reads from the machines.
package nodestatus
