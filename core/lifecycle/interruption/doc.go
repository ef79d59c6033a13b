// Package interruption follows nodes that the cloud is about to take: a taint or a condition says so
// (autoscaler.InterruptionMark). Room for their pods is found, or bought, while they still run.
//
//	state      the node is                   waits for                           then
//	warned     in the state, with            all homes to have room, or the      draining
//	           InterruptedTaint; its pods    time that its pods need to stop
//	           have homes (homes.Anticipate) before the cloud takes it
//	draining   on its way out                package nodedeletion                 gone; the node stays: warned,
//	                                                                             and drained again after a while
//	given up   in the state, with            the mark to go                       ended
//	           InterruptedTaint
//	any        –                             the mark to go                       ended: homes are released
//	any        –                             the node to be gone                  ended: homes are kept for
//	                                                                             the replacements
//	warned     –                             Config.Patience after the cloud      given up: homes are released
//	                                         was to take it
//
// InterruptedTaint is in Berth's state only: nothing is placed on the node from the mark on,
// whatever the effect of the mark itself. The API gets ToBeDeletedTaint when the node is drained.
//
// Pods that can't have homes (homes.WhyNone), and those with claims for whose replacement no node has
// devices, are evicted in time where it is known when the node is taken. Where it isn't they hold up the
// drain, for Config.Hold.
//
// A node isn't drained while a pod on it must not be evicted, as in any removal, or when its group can't
// shrink. Its pods have their homes all the same: they go when the cloud takes the node.
//
// Nothing of this outlives the process but the mark: a new leader begins anew, and a deadline counts
// from then on.
package interruption
