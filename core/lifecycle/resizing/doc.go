// Package resizing follows pods whose resize in place their node can't carry out: the kubelet has deferred
// it until there is room, or has called it infeasible on this node (the condition PodResizePending).
// People are told what the node lacks; if Config.After is set, such a pod moves to where its replacement has
// room, which is bought if need be.
//
//	state     the pod                        waits for                        then
//	pending   has the condition              Config.After, and permission     seeking
//	                                         to be evicted
//	seeking   has a home (homes.Anticipate)  room for its home                asked
//	asked     is being evicted               the answer                       told, or refused
//	refused   may not be evicted now         twice as long as before          asked
//	told      leaves                         the pod to be gone               ended
//	any       –                              the resize to be carried out,    ended: the home is released
//	                                         or taken back
//
// A pod moves only if a controller replaces it and it may be evicted, as for the removal of its node
// (drainability), and if its disruption budgets allow it when its home is asked for; the API server is
// asked again when it is evicted. Of one controller's pods one moves at a time, and none for Config.After
// since the last. A pod that was created since they began to move waits for the time between their first move and its creation,
// if that is longer, up to a day: a replacement that has to move again waits twice as long each time.
//
// The home has room for what the pod's spec requests. A replacement that requests less, since its
// controller makes it from the template, is placed there all the same, and can be resized there.
//
// Nothing of this outlives the process: a new leader begins with the conditions.
package resizing
