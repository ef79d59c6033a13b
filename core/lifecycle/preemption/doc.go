// Package preemption follows pods that take the place of others in two steps, as KEP-4832
// has it: the decision nominates the preemptor to a node and returns, and the victims are
// asked to leave by the edge. Meanwhile the preemptor is held out of the queue. Then it
// waits for its node as for any other change: since the core sees every victim go, and
// looks at the node once more when the last call is answered, no order of the two loses
// the wake-up.
//
// Of a preemptor:
//
//	state      waits for                     then
//	idle       a decision with victims       asking; still idle when all victims are on their way out already
//	asking     an outcome of each victim     the last one: idle, and released to be tried or to wait; if one
//	                                         has failed: idle, without its nomination, backing off
//
// Of a victim:
//
//	state          was                            waits for                    then
//	leaving        waiting for permission         its wait to be ended         off its node: ended
//	cancelling     being bound                    BindDone, its update         bind failed: ended; bound: asked
//	asked          running                        PreemptionDone               done: terminating; failed: ended, it stays
//	terminating    running                        PodGone                      ended
//	gone early     asked, and went before that    PreemptionDone               an event is written; ended
//	               was answered
//
// A pod group preempts, too (groups.go). It is held for nobody: its members are nominated, and it waits in
// the queue as any group does.
//
// PodGone ends a victim in any state; in state asked it is gone early then. Until a victim has
// ended and the status of the disruption budgets that select it counts it, the state has them drawn
// down by it (budgets.go).
package preemption
