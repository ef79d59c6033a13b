// Package reservation keeps the places that nodes were ordered for: each ordered node is
// a place for the pods of its bin in the plan. So nobody else of the same or lower
// priority gets the room that was bought for a pod, the pod needs no search when its node
// comes, and a pod that has a place preempts nobody.
//
// A pod that could have others leave a node asks for a place first, where a coming node may
// take it or nodes are to be bought for it (core/weigh.go). As long as it asks, it preempts
// nobody either.
//
//	a pod       from                            waits for                    then
//	asks        a decision                      a plan has room for it       it has a place
//	                                            a plan has none, or its      released
//	                                            time is over
//
//	a place is  from                            waits for                    then
//	ordered     the order, or room on a node    a new node of its group      held: the oldest place has the first node
//	            that comes
//	                                            the order fails, or fewer    released
//	                                            nodes are coming
//	                                            no pod of it needs it        spare
//	held        its node is registered, or a    the API shows its pods on    ended
//	            plan has found room on one;     nodes, or they need it no
//	            its pods are nominated to the   more
//	            node in the state
//	                                            the node goes, or can't      released
//	                                            become usable any more
//	spare       as above                        a plan finds that nobody     cancelled
//	                                            will use the node
//	                                            a node of its group without  ended
//	                                            a place, or fewer are coming
//
// Pods for which a plan finds room on a node that is coming join the place of that node.
//
// A pod needs its place no more when it is gone, has a gate again, is another than it was
// (its requests, say), is placed elsewhere, is nominated elsewhere by somebody else, or
// has a place in a newer order. Of a place that is released the pods wait like any others,
// and are tried at once, since they may preempt again.
//
// The nominations are in the state only and never written to the API (the machine
// nomination has both kinds). They count as all nominations do: for filters, against pods
// of the same or lower priority; but on the place's node not against the pods of that place
// of the same priority, since the plan has found that the node takes them all, in some order
// (scheduler.takesNominated). A usable node may not take a pod of its place yet, say
// when a hard spread waits for a node in another zone: the pod keeps the place as long as
// plans find that it has one.
//
// Nothing of this outlives the process. After a restart the nodes come all the same, and
// the pods are placed on them by a search.
package reservation
