package framework

import "fmt"

// Code is a rule's answer for a node (kube-scheduler's status code).
type Code uint8

// The codes. Final means that taking pods away from the node wouldn't help
// (kube-scheduler's UnschedulableAndUnresolvable), so preemption leaves the node out. Error means that
// the rule can't say: it ends the attempt to place the pod, whatever other nodes say, unless a rule
// before it rejects the node. Only local rules that read nothing but a node's object return it.
const (
	OK Code = iota
	Reject
	Final
	Error
)

// Reason is why a rule said no, with the quantity that fell short. Reasons are made
// on demand: one for every node would cost more than the whole evaluation.
type Reason struct {
	Plugin   string
	Messages []string // each as kube-scheduler words it
	Final    bool     // taking pods away wouldn't help
	// OfPod says that nothing but a change of the pod itself can help. It is
	// for reasons that reject a class everywhere.
	OfPod bool
	// Deficits are what the messages are about: one for each message, or none.
	Deficits []Deficit
}

// LeftOut is the reason of the nodes that plugins leave out by naming others (Narrower). The
// plugins are sorted.
func LeftOut(plugins ...string) *Reason {
	return &Reason{Plugin: plugins[0], Messages: []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", plugins)}, Final: true}
}

// NoneLeft is the reason of a class that plugins narrow to no node at all: each names others. The
// plugins are sorted.
func NoneLeft(plugins ...string) *Reason {
	message := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v simultaneously", plugins)
	if len(plugins) == 1 {
		message = "node(s) didn't satisfy plugin " + plugins[0]
	}
	return &Reason{Plugin: plugins[0], Messages: []string{message}, Final: true, OfPod: true}
}

// Deficit is a resource that a node has too little of, in its base unit
// (milli-CPU, bytes, counts).
type Deficit struct {
	Resource          string
	Needed, Available int64
}
