// Package nodedeletion follows nodes on their way out, from the taint
// ToBeDeletedByClusterAutoscaler to the node's disappearance from the API.
//
// A node that has an entry here ends in one of two ways: it is gone, or it stays and
// its taint has been taken away. Nothing else ends an entry, so whatever fails on the
// way, no node keeps the taint for good.
//
//	state            the node is            waits for                    then
//	tainting         in the state, tainted  TaintDone                    done: tainted; failed: untainting
//	tainted          in the state, tainted  DeleteDelayAfterTaint        last look: evicting, deleting or untainting
//	evicting         in the state, tainted  EvictionDone of each daemon  last look: deleting or untainting
//	                                        pod, or MaxPodEvictionTime
//	deleting         out of the state       NodeDeletionDone             done: deleted; failed: in doubt
//	in doubt         out of the state       the next GroupsSet           instance listed: untainting; not listed: deleted
//	deleted          out of the state       NodeGone                     ended; but see below
//	untainting       in the state, clean    TaintDone                    done: ended; failed: untaint failed
//	untaint failed   in the state, clean    untaintRetry                 untainting
//
// NodeGone ends an entry in any state but two: in deleting and in doubt the outcome is
// still to come, and ends the entry then.
//
// From deleting on, the node is out of the state, so that no pod is placed there,
// whatever it tolerates. What the API shows of it meanwhile is remembered, not
// believed.
//
// A node that the API still shows lingerTime after its deletion may be a late event. It
// is taken for alive only if the provider lists its instance; then its deletion
// begins again with tainted.
//
// A deletion begins in four ways: with a plan (tainting); with a node that carries the
// taint although this process has not written it, so a process before this one has
// (tainted); and with a node that is shown for an instance which is being deleted, in
// doubt or deleted because it had not become a node in time (deleting, in doubt,
// deleted).
package nodedeletion
