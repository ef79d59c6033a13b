// Package nomination follows where pods are nominated: from the decision, over
// status.nominatedNodeName being written, to the API showing it. A decision nominates
// a pod in the cluster state, where rules see it at once; this machine has the API
// follow, and takes over what somebody else has written there.
//
//	state         the API has                     waits for          then
//	agreed        what was decided                –                  a decision: writing; somebody else's write: agreed on that
//	writing       not yet shown what was written  NominationDone,    shown: agreed; failed: write failed;
//	                                              the pod's update   another decision: writing
//	write failed  what it showed last             retryAfter         writing; a decision before that: writing;
//	                                                                 shown after all: agreed
//
// "No node" is a nomination like any other here: taking one back is written as well.
// A pod's part of the machine ends with its record, in any state: nominations mean
// nothing for a pod that has its node.
//
// While a pod that was given a node isn't bound for a while, that node is what the API is to
// have (Expect); in the state the pod is on it.
//
// Of a pod without such a nomination the state may have another, which is never written:
// to the place that is kept for it (core/lifecycle/reservation). Reserve and Release bring
// it and take it away.
package nomination
