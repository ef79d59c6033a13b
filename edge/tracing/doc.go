// Package tracing makes spans of what a core decides (--tracing-config-file): of each pod from the queue to its
// node, of plans with their orders of nodes, and of removals of nodes. The core knows nothing of it: a hook reads the
// Steps, whose decisions have their times.
//
//	config.go    the file, and the provider of spans
//	tracer.go    the hook: what is open, and which spans come of it
//	pods.go      from queued to bound
//	plans.go     plans and orders
//	removals.go  from the taint to the deletion
//
// What must hold:
//   - without the file there is no hook, so that tracing costs nothing;
//   - a span is made when it ends, with the times of the Steps: nothing is left open when Berth ends, and what is
//     remembered until then is bounded;
//   - the hook never waits: spans that the collector doesn't take are dropped by the SDK.
package tracing
