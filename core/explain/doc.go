// Package explain answers people: where a pod stands and how each rule judges it now, why a
// node stays or how far it is on its way out, what a node group does, where the whole cluster
// and the autoscaler stand.
//
//	file               answers
//	pod.go             where one pod stands: in the queue, on the way to its node
//	podgroup.go        where one pod group stands, and why its members wait
//	too_large.go       whether a pod is larger than all nodes and node groups
//	scaling.go         what node groups do for a pod without a node
//	group.go           where a node group stands
//	node.go            where one node stands for scale-down, and why
//	blocks.go          which pods keep a node, and what would let each go
//	remedies.go        what would have a node go that stays
//	nodes.go           how many nodes stand where, and what they cost
//	node_lines.go      the nodes, one line each
//	overview.go        the cluster at a glance
//	pod_lines.go       the pods, one line each
//	inventory.go       nodes with all their resources, pod groups, devices
//	whatif.go          what would happen without nodes, or with more pods
//	scaling_status.go  the counts of the status ConfigMap and of the metrics
//
// An explanation decides nothing. It reads through a View, in which machines, queue, scheduler
// and records are interfaces that only describe (view.go). The state alone is whole, since a
// what-if changes it: within a mark that is rolled back before the answer.
package explain
