// Package nodegroups follows the node groups: how many nodes each is assumed to have,
// which orders are on their way, which instances haven't become nodes, and which groups
// are not to be asked for nodes, or robbed of them, for a while.
//
// The target that the cluster state has of a group is what the provider said last,
// plus what was ordered and has no outcome, less the deletions without an outcome. So a
// plan sees what was decided at once, and nothing is ordered twice.
//
// A group is in any of these at a time:
//
//	a group is           from                             until                        meanwhile
//	growing              an order                         ScaleUpDone; if it fails for its target includes the order
//	                                                      another reason than a
//	                                                      stock-out, the next list
//	unanswered           an order that had no answer      the next list                its target includes the order
//	maybe growing        a list that shows nothing of     the first list after         these nodes are kept free below the maximum
//	                     such an order                    lateCall
//	backing off          a failed order, an instance that backoff: 5 to 30 minutes,    nothing is ordered
//	                     failed or is late, or missing;   for each class of failure
//	                     a ready node that lacks what
//	                     was promised (launched.go)
//	not shrinking        an order                         DelayAfterAdd                no deletion begins
//	                     a deletion of its node           DelayAfterDelete             no deletion begins
//	                     a failed deletion of its node    DelayAfterFailure            no deletion begins
//	ordering in parts    a failed order                   an order larger than any     an order has at most maxOrder nodes: half of
//	                                                      part has come through        what failed, then twice as many each time
//	short of instances   a list with fewer instances      a list with as many as the   after MaxProvisionTime the difference is
//	                     than the provider's target       target                       given up, and the group backs off
//
// Failures are of two classes (nodegroup.ErrorClass), each with a backoff of its own. When a
// group is out of resources the core makes another plan at once, in which the group has no
// part, so that its pods fall to the next choice. Of an order that failed otherwise it isn't
// known whether nodes come: they count until the provider's next list.
//
// An order that had no answer isn't a failure (unanswered.go): the next list shows whether the
// target has grown by it. If it hasn't, the next plan may order again, and only the second such
// order in a row counts as a failed one.
//
// An instance is of the group that lists it, and when several do, of the first one as long as that one does.
// A group is gone when two lists in a row don't have it; it is remembered for BackoffReset, an hour at
// least. A node that isn't ready and whose instance isn't listed doesn't count for its group (gone.go).
//
// Launch control (core/lifecycle/launching) says how many nodes may be ordered, and that a
// group needn't back off for an instance which failed by chance.
//
// An instance that is not a node goes through these states. Listed and registered
// mean: in the provider's list, and in the API as a node.
//
//	state      is                                waits for             then
//	coming     listed, not registered            registration          forgotten
//	                                             Cancel                deleting
//	                                             MaxProvisionTime, or  deleting; but late, if it may still come and the
//	                                             the provider says     group is at its minimum. The group backs off
//	                                             that it failed
//	late       the same, past its time, kept     registration          forgotten
//	           by the group's minimum            room above the        deleting
//	                                             minimum, or failure
//	deleting   being deleted                     NodeDeletionDone      done: deleted; failed: in doubt; no answer: unanswered
//	in doubt   its deletion failed, or only      the next list         registered: forgotten; listed: coming, at once
//	           the answer was lost                                     deleting again; not listed: deleted
//	unanswered its deletion had no answer        a list without it     deleted
//	                                             a list with it, if    deleting again
//	                                             it is late or failed
//	                                             lateCall, and         coming
//	                                             a list with it
//	deleted    remembered, since its node may    deletedKept without   forgotten
//	           still show up                     being listed
//	                                             a list without it,    another instance with its ID: coming
//	                                             and one with it
//	                                             deletedListed, and    coming, since its deletion; if it has failed, at
//	                                             it is listed still    once deleting again
//
// An instance that is no longer listed is forgotten in any state but the last three. One
// whose node is in the state is forgotten in any state: the node has turned out to be
// alive. One whose node is on its way out (nodedeletion) is remembered in deleting and
// deleted, so that its node is told apart from others.
package nodegroups
