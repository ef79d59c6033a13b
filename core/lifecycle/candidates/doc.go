// Package candidates follows the nodes that could be removed: since when each is unneeded,
// whether its time has come, and the soft taint DeletionCandidateOfClusterAutoscaler that
// says so to schedulers and to the process that comes after this one.
//
//	a node is   as long as                          then
//	needed      no plan has it among its removals   candidate, with the first that has: since that plan; in the first
//	                                                plan of a process, since the time in its soft taint
//	candidate   each plan has it, or didn't come    due: a plan has it, and it was a candidate for UnneededTime, or, if
//	            to it (KeptNotSimulated)            it isn't ready, for UnreadyTime
//	                                                needed: a plan has looked at it and keeps it, or looked at no node;
//	                                                its removal ended with the node staying; it is gone
//	leaving     it has ToBeDeletedTaint             candidate still, whatever plans say; needed or gone with the end of
//	                                                its removal
//
// A node that becomes ready or unready is a candidate anew: another time holds for it.
//
// The soft taint of a node is in the cluster state soon after the node has become a candidate,
// so that Berth's own scores steer pods away, and out of it soon after the node is needed: the
// first steerBulk that a plan changes at once, as many again with each steerPause. The API gets
// it later, in bulks of its own, for other schedulers and for the time after a restart:
//
//	the API's soft taint is   as long as                              then
//	as wanted                 it says what the state says             not as wanted, with a candidate more or less, and
//	                                                                  when the API shows another
//	not as wanted             no bulk has come to it                  being written: in the bulk after each plan, those to
//	                                                                  be taken off first. MaxBulk at a time, and none
//	                                                                  later than BulkTime after the plan
//	being written             no TaintDone                            done: as wanted, unless something else is wanted
//	                                                                  by then; failed: write failed
//	write failed              softTaintRetry                          being written again
//
// Of a node with ToBeDeletedTaint the soft taint stays as it is: who removes the node doesn't
// touch it. If the node stays, Forget makes it needed, and its soft taint is taken off here.
//
// All this is for nodes of our node groups: a soft taint that such a node carries, and that
// no candidate explains, is taken off. What nodes of no group carry is another autoscaler's.
package candidates
