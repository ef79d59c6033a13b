package queue

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// Stage is where the queue holds a pod.
type Stage uint8

// The stages.
const (
	InFlight      Stage = iota // popped, and not put back or removed: it is decided on, or has its node
	Active                     // tried in the order of the QueueSort plugin
	Backoff                    // tried when its backoff ends, or earlier when nothing is active
	Unschedulable              // waits with its class for a change that helps
	Gated                      // a plugin keeps it out of the queue
	Held                       // its victims are being asked to leave
	Grouped                    // it is decided on with its pod group, whose item stands for it
)

// String names the stage as kube-scheduler's metrics do.
func (s Stage) String() string {
	return [...]string{"in flight", "active", "backoff", "unschedulable", "gated", "held", "grouped"}[s]
}

// Item is a pod in the queue, or stands for a pod group (groups.go). Its fields are the queue's: others read them through
// the methods here, and change them through the queue's.
type Item struct {
	queued   framework.QueuedPod
	class    *engine.Class // nil until Queue.Classify, in a queue of which no pod is tried yet
	signed   uint64        // the queue's signing when the pod was classified
	unsigned bool          // the pod has changed since
	stage    Stage
	attempts int   // decisions that found no node, and errors
	failures int   // errors so far
	tried    int64 // when it was last tried, in nanoseconds; 0 for never
	until    int64 // end of the backoff, in nanoseconds
	// afterError says that it backs off from an error, not from a rejection: then
	// it isn't tried before the backoff ends.
	afterError bool
	// nominated pods wait for their node as well as with their class.
	nominated bool
	swept     bool // the last wake-up was the leftover sweep
	// diagnosis is the class's when the pod last came to wait or ceased to; nil
	// before its first rejection. While it waits, the class has the newer one.
	diagnosis *engine.Diagnosis
	probeOf   *WaitingClass // the woken class that it is tried for, nil for none
	heldWith  *WaitingClass // the class whose held pods it counts among; set when held
	at        int           // index in its heap in the order of trying
	listed    uint64        // the last Queue.listing that had it
	expires   int           // index in the heap of backoffs that end, or of unschedulable groups
	group     *Group        // the group that it stands for; nil when it is a pod's own
	in        *Group        // the group that a grouped or gated member waits with; nil for others
}

// Pod returns the pod, as it was last given to the queue.
func (i *Item) Pod() *cluster.Pod { return i.queued.Pod }

// Class returns the class that the pod had when it was last classified.
func (i *Item) Class() *engine.Class { return i.class }

// Stage returns where the pod is.
func (i *Item) Stage() Stage { return i.stage }

// Queued returns when the pod first came.
func (i *Item) Queued() time.Time { return time.Unix(0, i.queued.Queued) }

// Sequence numbers the pods in the order in which they first came.
func (i *Item) Sequence() uint64 { return i.queued.Sequence }

// Attempts returns how often the pod was tried without success.
func (i *Item) Attempts() int { return i.attempts }

// Tried returns when the pod was last tried without success, zero for never.
func (i *Item) Tried() time.Time {
	if i.tried == 0 {
		return time.Time{}
	}
	return time.Unix(0, i.tried)
}

// BackoffEnd returns when the pod's backoff ends, or has ended.
func (i *Item) BackoffEnd() time.Time { return time.Unix(0, i.until) }

// Nominated reports whether the pod waits for a node of its own (SetNominated).
func (i *Item) Nominated() bool { return i.nominated }

// Swept reports whether nothing but the leftover sweep has woken the pod since it was
// last tried. If it finds a node now, a wake-up was missed.
func (i *Item) Swept() bool { return i.swept }

// Diagnosis returns why the pod's class fitted on no node when the pod ceased to
// wait, nil when it never waited.
func (i *Item) Diagnosis() *engine.Diagnosis { return i.diagnosis }
