package observe

import (
	"unsafe"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// bytesOf returns how much memory a decision keeps, as if it shared none with others. Constants and
// objects' names, which it does share, are left out where they are of the decision itself.
func bytesOf(d *step.Decision) int {
	n := int(unsafe.Sizeof(*d)) + len(d.Reason) + len(d.Headroom) + len(d.Scores)*int(unsafe.Sizeof(engine.PluginScore{}))
	if d.RunnerUp != nil {
		n += int(unsafe.Sizeof(*d.RunnerUp))
	}
	for i := range d.Rejected {
		w := &d.Rejected[i]
		n += int(unsafe.Sizeof(*w)) + len(w.Message)
		if w.Short != nil {
			n += int(unsafe.Sizeof(*w.Short))
		}
	}
	for _, v := range d.Victims {
		n += int(unsafe.Sizeof(v)) + len(v)
	}
	if d.Choice != nil {
		n += int(unsafe.Sizeof(*d.Choice)) + len(d.Choice.Options)*int(unsafe.Sizeof(autoscaler.Option{}))
		if d.Choice.Next != nil { // and with it the dearest
			n += 2 * int(unsafe.Sizeof(autoscaler.Alternative{}))
		}
		for i := range d.Choice.Options {
			n += len(d.Choice.Options[i].With) * int(unsafe.Sizeof(""))
		}
	}
	if w := d.Weighed; w != nil {
		n += int(unsafe.Sizeof(*w)+unsafe.Sizeof(weighing.Preemption{})+unsafe.Sizeof(weighing.Node{})) + len(w.Why)
	}
	return n
}
