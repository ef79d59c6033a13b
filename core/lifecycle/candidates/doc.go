// Package candidates follows the nodes that could be removed: since when each is unneeded,
// and whether its time has come.
//
//	a node is   as long as                          then
//	needed      no plan has it among its removals   candidate, with the first that has
//	candidate   each plan has it                    due: it was one for UnneededTime, or, if it
//	                                                isn't ready, for UnreadyTime; needed: a plan
//	                                                hasn't, its removal ended with the node
//	                                                staying, it is gone
//
// A node that becomes ready or unready is a candidate anew: another time holds for it.
package candidates
