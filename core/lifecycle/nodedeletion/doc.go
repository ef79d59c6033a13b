// Package nodedeletion follows nodes on their way out, from the taint
// ToBeDeletedByClusterAutoscaler to the node's disappearance from the API.
//
// A node that has an entry here ends in one of two ways: it is gone, or it stays and its
// taint, its cordon and its note have been taken away. Nothing else ends an entry, but for a
// node that was taken over and turns out not to be Berth's; so whatever fails on the way, no
// node keeps the taint for good.
//
//	state            the node is             waits for                    then
//	tainting         in the state, tainted   TaintDone                    done: tainted; failed: untainting
//	tainted          in the state, tainted   DeleteDelayAfterTaint        first look: draining, or untainting
//	resumed          in the state, tainted   the same, and the groups     as tainted; the API shows it without
//	                                                                      the taint, or its group isn't the
//	                                                                      provider's: ended
//	draining         in the state, tainted   its pods (package draining)  all gone: delayed; failed: untainting
//	delayed          in the state, tainted   its delay-deletion           batched
//	                                         annotations to go, or
//	                                         DeletionDelayTimeout
//	batched          in the state, tainted   DeletionBatchInterval since  last look: deleting, or untainting
//	                                         the first of its group; in
//	                                         an atomic group, the others;
//	                                         daemon pods being bound to
//	                                         it, for bindTime at most
//	deleting         out of the state        NodeDeletionDone             done: deleted; refused: in doubt; no answer, or
//	                                                                      refused after a call without one: unanswered
//	in doubt         out of the state        the next GroupsSet           instance listed: untainting; not listed: deleted
//	unanswered       out of the state        the next GroupsSet           instance not listed: deleted; listed after the first
//	                                                                      call: deleting, asked again; listed lingerTime after
//	                                                                      a later call: untainting
//	deleted          out of the state        NodeGone                     ended; but see below
//	untainting       in the state, clean     TaintDone                    done: ended; failed: untaint failed
//	untaint failed   in the state, clean     untaintRetry                 untainting
//
// A call that had no answer isn't a failure: the provider may still be carrying it out, and until
// its list settles that, the node keeps its taint. A refusal counts as a failure for the delay of
// its group (ScaleDownFailed), and so does a second call for one instance that had no answer.
//
// NodeGone ends an entry in any state but three: in deleting, in doubt and unanswered the outcome
// is still to come, and ends the entry then.
//
// From tainted to batched the node is looked at whenever its pods, its object or the groups
// have changed: it stays if a pod is on it that must be evicted and for which the plan has no
// home, since the pod came to it before the taint was seen. So it is never deleted under a
// pod that wasn't evicted.
//
// From tainting to batched a plan may recall the node, as long as no pod has been told to leave it:
// untainting (recall.go). From tainting it goes there, too, when another of its atomic group stays;
// the outcome of the taint, which comes then, changes nothing.
//
// From deleting on, the node is out of the state, so that no pod is placed there,
// whatever it tolerates. What the API shows of it meanwhile is remembered, not
// believed.
//
// A node of the same name with another provider ID is another machine (ofAnotherMachine): it
// has nothing to do with the deletion, which ends if the provider has answered, and otherwise waits
// for the answer beside it.
//
// A node that the API still shows lingerTime after its deletion may be a late event. It
// is taken for alive only if the provider lists its instance; then its deletion
// begins again with tainted.
//
// A deletion begins in five ways: with a plan (tainting); with a node that the cloud is about to take
// (tainting; it can't be recalled, and no limit on how many go holds); with a node that carries the taint
// and Berth's note although this process has not written them, so a process before this one
// has (resumed); and with a node that is shown for an instance which is being deleted, in
// doubt or deleted because it had not become a node in time (deleting, in doubt, deleted). A
// node with the taint and without the note is somebody else's, and left alone.
//
// An atomic group (ZeroOrMax) goes as a whole: all its nodes begin together, wait for each
// other in batched, and if one stays, so do all that the provider wasn't asked to delete yet.
package nodedeletion
