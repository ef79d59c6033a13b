// Package core is the state machine: inputs in, a batch of work out.
//
// The caller does the work in Ready and feeds each outcome back as an input.
// Success is assumed at once and forgotten on failure, so a decision never
// waits for the API. Core has no goroutine, no clock and no lock: the same
// inputs at the same times with the same seed give the same Ready.
//
//	file                       has
//	core.go                    configuration, the machines, what metrics count
//	step.go, route.go          the calls that drive a core, the order of a Step, which part takes which input
//	mode*.go                   what becomes of a decision: deciding, beside another scheduler, shadowing, standing by
//	pods.go, nodes.go          pods, nodes and workloads as the API shows them
//	decisions.go               what follows from the decision about a pod
//	headroom.go, homes.go      stand-ins, and the room that is kept for evicted pods
//	weigh.go, weigh_costs.go   whether a pod preempts or asks for a node
//	eligible.go                for which pods nodes may be bought
//	autoscale.go               the autoscaler's machines, and what the provider answers
//	plan_request.go            when a plan is asked for, and what it is to know
//	plan_commit.go             what becomes of a plan
//	consolidation.go           consolidations in requests and plans
//	nodebudgets.go             node budgets, when removals begin
//	view.go                    what core/explain reads
//	status.go                  what isn't settled, and what must hold
package core
