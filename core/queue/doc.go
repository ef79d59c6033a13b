// Package queue decides which pod is tried next and what wakes a waiting class.
//
// The queue holds every pod that has no node, and those that were just given one.
// A pod is at one stage at a time: as in kube-scheduler active (in the order of the
// profile's QueueSort plugin), in backoff, unschedulable or gated; besides held,
// while its victims are asked to leave, and in flight, while it is decided on or
// bound.
//
// Unschedulable pods wait by class: a change is put to a class once, whatever the
// number of its pods, and while a class waits its other pods fail at once, for the
// same reason. A woken class is tried one pod at a time.
//
// The queue has no clock: times come in and must not go back. It is used by one
// goroutine, the one that owns the core.
package queue
