// Package queue decides which pod is next and what wakes a waiting class.
//
// Pods are in one of four places, as in kube-scheduler: active (by the
// profile's order), backing off, unschedulable, or gated. Unschedulable pods
// wait by class: a change is put to a class once, whatever the number of its
// pods, and while a class waits its other pods fail at once, for the same
// reason.
package queue
