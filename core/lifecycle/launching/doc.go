// Package launching is launch control: how many nodes may be launching at a time, so that
// the disks and registries that launches load are not overloaded. Launches that are too
// many make each other slow, time out, are deleted and ordered again: the cluster then
// grows slower than with fewer at a time.
//
// A limit is fixed or adaptive, for the cluster as a whole and for each node group. A fixed
// limit counts the nodes that were ordered and aren't ready. An adaptive one also follows
// the nodes that are ready and pull the images of their first pods; under any other limit a
// node that is ready is usable at once. How long launches took is remembered under any
// limit, for people (times.go):
//
//	a node is   from                                until                              then
//	launching   its order; listed by the provider   it is ready, without the taints    arrived
//	            or registered, one of an order      of the node controller
//	                                                the provider lists it no longer    forgotten
//	arrived     it is ready                         the end of the Step, which places  pulling; usable without pods
//	                                                pods on it
//	pulling     it has pods, none of them runs      one of them runs                   usable
//	                                                Patience                           usable, and nothing is learnt
//	usable      as above; or it is first seen so    it is gone                         forgotten
//
// Daemon pods are left aside: their images are there before those of the pods that the node
// was ordered for. That a pod pulls can't be seen in what informers keep of it, only that
// it has not started. So a node whose pods never start, because their image doesn't exist,
// counts as pulling for Patience.
//
// # The control law
//
// There are two windows: how many nodes may be launching, and how many may be pulling. Each
// grows additively and shrinks multiplicatively (window.go), as in congestion control. The
// signal is slowness: how many times as long as at its best a stage took, the best being
// the shortest time that was seen in the same group, and for the same images, in the last
// hours (best.go). What is slow for a reason of its own, such as a registry that limits
// each connection, is slow at its best too, and is no signal.
//
//	event                                       launch window            pull window
//	at first                                    100                      50
//	a node passes, slowness up to 1.25, and     +1 per node until the    +25 in a round trip
//	the windows held nodes back meanwhile       first slow one, then
//	                                            +25 in a round trip
//	slowness from 1.25 to 1.5                   –                        –
//	slowness from 1.5, not more than once in    × 0.85                   × 0.85
//	a round trip
//	a launch fails, and launches are slow, or   × 0.5                    × 0.5
//	a quarter fails; once in a round trip
//	any other failure                           –                        –
//
// A round trip is the time from a node's order to what is learnt of it: minutes, in which
// the stage that is overloaded, mostly the pull, isn't reached. So the pull window is not a
// limit of who pulls now, but of what was ordered lately: at most so many nodes are ordered
// within five quarters of the time that a pull takes (scope.go). Nodes that are ordered at
// that pace pull at that pace, and the pace falls at once when pulls become slow.
//
// An isolated failure shrinks nothing, and doesn't have its group back off, whatever the
// limit: chance fails a few per cent of launches on any infrastructure (outcomes.go).
//
// Nodes that are held back are not ordered later from the same plan. As soon as a group has
// room that had none, another plan is asked for: it sees the cluster as it is by then, and
// the checks of an order stay in one place. It costs a plan for each few nodes, at most one
// each twentieth of the scan interval.
//
// A new process knows nothing, and begins with the first windows.
package launching
