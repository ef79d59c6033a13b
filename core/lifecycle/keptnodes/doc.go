// Package keptnodes keeps what the last plan said of each node, for people who ask: that the
// node could go, or why it stays, and since when it does for that reason. It writes the
// reasons that somebody could act on into the ledger, each when it begins.
//
//	the last plan says about a nodeit                   the ledger gets
//	it could go                    is among Removals    nothing here: NodeUnneeded is the candidates'
//	it stays, one can act          is among Kept        NodeStays, if the reason or the pod is another,
//	                                                    and the node wasn't a candidate: NodeNeeded
//	                                                    has the reason then
//	it stays, one can't act        is among Kept        nothing
//	nothing                        isn't in the plan    nothing
//
// One can act on an annotation, a minimum, a pod that mustn't be evicted or has nowhere to go
// (Noted). In a large cluster most nodes stay since they are used, or since pods have room on
// them: this changes by the minute, and nobody has to do anything about it. The ledger
// remembers such a reason for the node until another is written, or the node could go; so a
// node that goes to and fro between a full and a blocked one has one line, not one a plan.
//
// What keeps all nodes at once, a cluster that is too sick or pods that have nowhere to go, is
// one line without a node, when it begins.
package keptnodes
