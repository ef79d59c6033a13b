// Package reporting decides what is said to people, and when again: conditions and
// events of pods that wait, and events about objects with values that can't be taken as
// they stand. Everything is said once, until it changes. Nothing is waited for: a report
// that is lost misleads people only.
//
// Of a pod:
//
//	state              event                                   then
//	nothing said       it finds no node, or a gate holds it    condition; with an event FailedScheduling
//	                                                           unless it is gated
//	condition said     the same again                          nothing
//	condition said     another message                         condition, as above
//	                   a plan helps it, or doesn't             event, unless it is the last one's message
//
// Of the messages of waiting classes, which are woken only by what lets them in, while
// what their pods say grows old as nodes change:
//
//	state        event                        then
//	current      a node has changed           outdated
//	outdated     refreshEvery after the last  refreshing: all classes that wait now are to be
//	             refresh                      diagnosed again, classesPerStep in each Step
//	refreshing   no class is left             current, or outdated when nodes have changed since
package reporting
