// Package v1alpha1 is Berth's read API: the types of all answers below /api/v1alpha1/.
//
//	meta.go       who answers, and what it can do
//	overview.go   the cluster at a glance, and what needs attention
//	money.go      what nodes cost, and why they stay
//	nodes.go      nodes
//	pods.go       pods, and what pending ones wait for
//	groups.go     node groups
//	podgroups.go  pod groups, and devices
//	decisions.go  the decision ledger, and the events of the stream
//	series.go     gauges over time
//	shadow.go     what a shadow has compared
//	whatif.go     read-only evaluations
//	values.go     what all of them share
//
// Conventions: times are RFC 3339 in UTC, durations are Go's ("1m30s"), quantities are Kubernetes'
// ("500m", "8Gi"), shares are numbers from 0 to 1, prices are an hour's in the currency of Meta. A
// field that is left out doesn't apply, or isn't known. Fields are added within this version; a client
// must ignore those that it doesn't know.
//
// A viewer who may not list pods in a namespace gets no names of its pods: lists leave them out and
// count them in hidden, and a field that would name one is left out.
package v1alpha1
