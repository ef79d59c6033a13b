// Package draining follows the pods of one node on their way out, tier by tier: those of the
// lowest priority leave first, and the next tier isn't asked before all of them are gone
// (--drain-priority-config; without it all pods are one tier).
//
//	a pod is   and waits for             then
//	waiting    its tier's turn           surging, if its Deployment is to make a successor
//	                                     first; else asked; leaving: somebody else has deleted it
//	surging    its deletion by the       leaving. SurgeDone says that the Deployment doesn't,
//	           Deployment                or MaxEviction is over: asked
//	asked      EvictionDone              done: leaving; failed: refused
//	refused    retryAfter, then twice    asked; failed: MaxEviction since it was first asked
//	           as long each time, but    is over
//	           no longer than maxRetry
//	leaving    its disappearance         failed: it is still there terminationHeadroom after
//	                                     its grace period
//	gone       –                         when all of the tier are, the next tier's turn comes
//
// Whatever refuses an eviction, it is asked for again: a disruption budget, an admission
// webhook, a server that doesn't answer. The eviction API alone decides whether a budget
// allows it, so no budget is ever overrun. When a pod fails, so does the drain, and the node
// stays.
//
// A surging pod isn't evicted, and no disruption budget is asked: the Deployment deletes it
// when its successor is available, as in any of its rollouts.
//
// Members of pod groups that go together and ask for successors are in one tier. They wait in "waiting",
// with all of that tier, until Release: the drains of their groups' other nodes are as far then. Whatever
// keeps one of them from a successor fails the drain: none of them is evicted. Alone ends all that.
//
// Pods of DaemonSets are asked once, as a courtesy: the tier waits for the answer, and neither
// a refusal nor their staying keeps the node.
package draining
