// Package binding follows a pod from the decision that placed it on a node in the state
// until the API has it there, or the node is taken away from it again
// (kube-scheduler's binding cycle).
//
//	state     the pod is            waits for                       then
//	none      on no node            a decision                      its plugins Reserve and Permit: all allow: binding;
//	                                                                one has it wait: waiting; one refuses: none
//	waiting   on it in the state    permission of some plugins      all allow: binding; one rejects, its time is over,
//	                                                                the node is gone or the pod is preempted: none
//	binding   on it in the state    BindDone, the pod's update      done or shown there: bound; failed: none
//	bound     on it in the API      the pod's update                the core forgets the pod
//
// Whatever leads from waiting or binding to none goes through unplace: the pod is taken
// off the node in the state, the plugins that reserved something let go of it in the
// reverse order, objects that were assumed for it are as the API has them, but for what other
// pods hold of its resource claims (claims.go), and the pod backs off. Until its bind is out a pod is stopped here; afterwards the outcome tells.
//
// A pod that is deleted, or that somebody else binds elsewhere, leaves in any state (Release). In
// state binding its bind is cancelled: nobody waits for the outcome.
package binding
