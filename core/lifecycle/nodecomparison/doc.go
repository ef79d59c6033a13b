// Package nodecomparison follows, in a shadow, which nodes Berth would buy and remove, and
// which of them another autoscaler buys and removes. Nothing of what Berth would do is carried
// out: no group's target changes and no node is marked, so each plan proposes the same again as
// long as nobody does it. A proposal is therefore a wish, which counts once.
//
// A purchase is a wish for one node of a group, for the pods that a plan has put on it:
//
//	state   is                                       waits for                         then
//	–       no wish has the pods                     a plan with more nodes than there open
//	                                                 are wishes whose pods still wait
//	open    Berth would have ordered the node        growth of the group's target      forgotten: boughtByBoth
//	                                                 Patience since the plan           alone, or, when none of its
//	                                                                                   pods waits any more,
//	                                                                                   forgotten: boughtOnlyByBerth
//	alone   nobody has ordered it, and its           growth of the group's target      forgotten: boughtByBoth, and
//	        pods still wait                                                            boughtOnlyByBerth is taken back
//	                                                 none of its pods waits any more   forgotten
//
// Growth of a group's target, as the provider tells it, that no wish was there for waits for the
// next plan: if that puts waiting pods on nodes of the group that are coming, Berth would have
// bought these nodes, too, and the other autoscaler was sooner: boughtByBoth; what is left of it
// is boughtOnlyByOther.
//
// A removal is about one node of a node group:
//
//	state     is                                waits for                              then
//	stays     no wish to remove it              a candidate's time comes               wished
//	                                            the node goes, or is marked to go      left: removedOnlyByOther
//	wished    a leader would have begun to      the node goes, or is marked to go      left: removedByBoth
//	          remove it                         Patience since then                    kept: removedOnlyByBerth
//	                                            a plan that needs the node             stays: removedOnlyByBerth
//	kept      the other autoscaler keeps it     the node goes, or is marked to go      left: removedByBoth, and
//	                                                                                   removedOnlyByBerth is taken back
//	                                            a plan that needs the node             stays
//	left      the node is on its way out        the mark is taken off                  stays, and the verdict is taken back
//	                                            the node is gone                       forgotten
//
// The mark is ToBeDeletedTaint. A node that had it when it was first seen has no verdict.
//
// Beside that the machine sums up node hours: of the groups' nodes as they are, and of Berth's
// version of the cluster, which has one node more for each purchase that nobody has made and
// whose pods wait, and one less for each node in state wished or kept. What would have followed
// from these differences is in neither.
package nodecomparison
