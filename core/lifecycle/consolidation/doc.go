// Package consolidation follows a consolidation from the order of its new nodes to the end of
// its last old one. There is at most one at a time.
//
//	state     the old nodes                     waits for                             then
//	resting   –                                 the first plan or the last order is   ordered
//	                                            Settle ago, the last search or
//	                                            failure its time; then a plan with a
//	                                            consolidation
//	ordered   stay; passes look at them first   a plan that could remove all of       draining
//	                                            them together
//	                                            patience                              resting: given up
//	draining  are due at once, as plans say     the last of them is gone              resting: done
//	          that they could go                patience, since one went or began to  resting: given up
//
// The machine doesn't know which nodes have come for the order, and needn't: when the passes
// find homes for the pods of all old nodes, on whatever nodes, these may go. They go as any
// other node does: candidates, homes, evictions, and all limits are those of scale-down.
//
// What was ordered for a consolidation that is given up goes as empty in its time, or what pods
// have come to it keep it. So that this doesn't happen again and again, the next one is looked
// for after afterFailure only. A consolidation isn't remembered across restarts: old nodes that
// have the taint of removal go, the others stay.
package consolidation
