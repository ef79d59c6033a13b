package scenario

import "slices"

// The kinds of faults. Those of calls hit each call with probability Rate, those of launches
// each instance, those of pods and controllers each of them; events come PerHour or At.
const (
	APIError       = "APIError"       // a call of Berth's is refused
	APIConflict    = "APIConflict"    // a call of Berth's is refused with a conflict
	APITimeout     = "APITimeout"     // a call of Berth's isn't served, which Berth learns after 30 s
	AnswerLost     = "AnswerLost"     // a call of Berth's is served, but Berth learns of a failure
	CloudError     = "CloudError"     // a call to the cloud is refused
	CloudLost      = "CloudLost"      // a call to the cloud is served, but Berth learns of a failure
	StockOut       = "StockOut"       // orders are refused while the fault lasts; without a rate
	LaunchFails    = "LaunchFails"    // an instance fails, and the cloud says so
	LaunchVanishes = "LaunchVanishes" // an instance is never made, and the cloud doesn't say
	NeverRegisters = "NeverRegisters" // an instance runs and never becomes a node
	NeverReady     = "NeverReady"     // a node registers and never becomes ready
	WrongShape     = "WrongShape"     // a node has half of the CPU and memory that its group's template says
	ExtraInstance  = "ExtraInstance"  // for an instance that was ordered the cloud makes two, up to the group's maximum
	NoTemplate     = "NoTemplate"     // the cloud can't say what a group's nodes look like while the fault lasts; without a rate
	SpotReclaim    = "SpotReclaim"    // event: the cloud takes an instance back
	SpotWarning    = "SpotWarning"    // event: a termination handler taints a node, and the cloud takes its instance back `for` later (2 min when absent)
	CrashBerth     = "CrashBerth"     // event: Berth is down `for` a while (5 s when absent)
	WatchStall     = "WatchStall"     // event: changes aren't seen `for` a while (30 s when absent)
	DeletePod      = "DeletePod"      // event: somebody deletes a pod
	EvictPod       = "EvictPod"       // event: somebody evicts a pod, within its budget
	Cordon         = "Cordon"         // event: a node is cordoned `for` a while (10 min when absent)
	Relabel        = "Relabel"        // event: a node moves to another zone

	// Those that concern nodes which are being drained.

	ForbidEvictions  = "ForbidEvictions"  // event: `for` a while (10 min when absent) a new disruption budget forbids every eviction of a controller's pods; of one with pods on a node that is being drained, if there is such
	SlowStop         = "SlowStop"         // a pod that is asked to terminate takes its whole grace period, and `for` longer
	ControllerStalls = "ControllerStalls" // a controller makes no pods while the fault lasts
	DeletionFails    = "DeletionFails"    // the cloud reports that it could not delete an instance; in half of the cases it has
	CloudNoAnswer    = "CloudNoAnswer"    // an order or a deletion has no answer within a deadline of 5 s: it is carried out at once, `for` later (30 s when absent), or never
	ReclaimDraining  = "ReclaimDraining"  // event: the cloud takes back an instance whose node is being drained

	// Those that concern what the cloud and the API server say.

	GroupUnlisted = "GroupUnlisted" // a list of the cloud's lacks a node group, which the list before it and the one after it have
	GroupRenamed  = "GroupRenamed"  // event: the cloud has a node group under another name `for` a while (for good when absent), with its nodes and instances
	GroupTwice    = "GroupTwice"    // a list of the cloud's has a node group twice: the same twice, or one of them as the list before had it
	GroupsOverlap = "GroupsOverlap" // a list of the cloud's has an instance in another node group as well
	ListedLate    = "ListedLate"    // an instance that was ordered is listed `for` later (2 min when absent), or when it is a node
	InstanceAgain = "InstanceAgain" // an instance that is ordered has the name and the ID of one that has been gone for 5 min or longer
	NodeMoves     = "NodeMoves"     // event: the cloud has a node in another node group from then on: one that is being drained, or when there is none, in a quarter of the cases, any
	SpotReplaced  = "SpotReplaced"  // event: the cloud takes an instance back and makes another in its place; the Node object of the first stays `for` a while (5 min when absent)
	NodeLingers   = "NodeLingers"   // the Node object of an instance that is gone stays `for` a while (for good when absent), some with finalizers
	TaintNode     = "TaintNode"     // event: somebody puts a taint on a node `for` a while (for good when absent)
	FutureStamp   = "FutureStamp"   // a node says that it was created `for` later than it was (an hour when absent)
	ClockAhead    = "ClockAhead"    // the API server's clock is `for` ahead of Berth's (an hour when absent), and its answers say so; without a rate

	// Those that concern devices.

	DevicesLate      = "DevicesLate"      // a new node's devices are published `for` later (10 min when absent)
	DevicesWithdrawn = "DevicesWithdrawn" // event: a node's drivers withdraw its devices `for` a while (2 min when absent)
	DevicesChanged   = "DevicesChanged"   // event: a node's drivers publish its devices anew without the last of each slice, if that takes no counters, and as they were `for` later (5 min when absent)
	DeviceTainted    = "DeviceTainted"    // event: a DeviceTaintRule taints a device, with the effect NoSchedule, `for` a while (10 min when absent)
	ClaimEdited      = "ClaimEdited"      // event: somebody edits a resource claim: labels it, reserves it for a pod that isn't there, or takes the devices away from one that no pod uses
	DeviceFailed     = "DeviceFailed"     // event: as DeviceTainted, with the effect NoExecute: pods that have the device and don't tolerate that are evicted
)

// faultKind says what a kind of fault needs: a time, for an event, or a rate. The others
// last from From to Until.
type faultKind struct {
	event, rate bool
	// late says that the kind came after the random worlds (sim/soak): they don't draw it,
	// since all would be others.
	late bool
	// ungrouped says that what the kind hits is in no node group.
	ungrouped bool
}

// faultKinds has every kind.
var faultKinds = map[string]faultKind{
	APIError: {rate: true}, APIConflict: {rate: true}, APITimeout: {rate: true}, AnswerLost: {rate: true},
	CloudError: {rate: true}, CloudLost: {rate: true}, StockOut: {},
	LaunchFails: {rate: true}, LaunchVanishes: {rate: true}, NeverRegisters: {rate: true}, NeverReady: {rate: true},
	SpotReclaim: {event: true}, CrashBerth: {event: true}, WatchStall: {event: true}, DeletePod: {event: true},
	EvictPod: {event: true}, Cordon: {event: true}, Relabel: {event: true},
	WrongShape: {rate: true, late: true}, ExtraInstance: {rate: true, late: true}, NoTemplate: {late: true},
	ForbidEvictions: {event: true, late: true}, ReclaimDraining: {event: true, late: true}, SlowStop: {rate: true, late: true},
	ControllerStalls: {rate: true, late: true, ungrouped: true}, DeletionFails: {rate: true, late: true},
	CloudNoAnswer: {rate: true, late: true}, SpotWarning: {event: true, late: true},
	GroupRenamed: {event: true, late: true}, GroupTwice: {rate: true, late: true}, GroupsOverlap: {rate: true, late: true},
	GroupUnlisted: {rate: true, late: true}, ListedLate: {rate: true, late: true}, InstanceAgain: {rate: true, late: true},
	NodeMoves: {event: true, late: true}, SpotReplaced: {event: true, late: true}, NodeLingers: {rate: true, late: true},
	TaintNode: {event: true, late: true}, FutureStamp: {rate: true, late: true}, ClockAhead: {late: true, ungrouped: true},
	DevicesLate: {rate: true, late: true}, DevicesWithdrawn: {event: true, late: true}, DevicesChanged: {event: true, late: true}, DeviceTainted: {event: true, late: true}, DeviceFailed: {event: true, late: true},
	ClaimEdited: {event: true, late: true, ungrouped: true},
}

// DrawnFaultKinds returns the kinds that random worlds draw, sorted.
func DrawnFaultKinds() []string {
	return slices.DeleteFunc(FaultKinds(), func(kind string) bool { return faultKinds[kind].late })
}

// IsEvent reports whether a kind of fault comes PerHour or At, rather than
// hitting calls or launches.
func IsEvent(kind string) bool { return faultKinds[kind].event }
