package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/berthproject/berth/core/step"
)

// This file is the bind of a pod whose claims are written first. What must hold:
//
//   - each write is a call of its own, so that Berth may crash between any two of them;
//   - what was written is taken back when the bind comes to nothing, before Berth learns that;
//   - Berth has seen what became of the claims when it learns that (step.Bind.DeviceClaims).

// deviceBind is such a bind under way.
type deviceBind struct {
	workers
	x    *step.Bind
	life int
	bind func() error // the binding itself, as the API server does it
	done func(error)
}

// start writes the claims, waits for their devices, and binds the pod.
func (d *deviceBind) start() {
	var writes []func() error
	for _, c := range d.x.DeviceClaims {
		if c.UID == "" {
			writes = append(writes, func() error { return d.w.createClaim(d.x, c) })
		}
		writes = append(writes, func() error { return d.w.reserveClaim(d.x, c) })
	}
	d.write(writes)
}

// given up reports whether the process that binds has crashed, or takes the bind back.
func (d *deviceBind) givenUp() bool {
	switch {
	case d.berth.life != d.life:
		return true
	case d.cancels[d.x.UID]:
		delete(d.cancels, d.x.UID)
		d.takeBack(errors.New("taken back for another pod"))
		return true
	}
	return false
}

// write does what is left to write, one call after the other.
func (d *deviceBind) write(left []func() error) {
	if d.givenUp() {
		return
	}
	if len(left) == 0 {
		d.await(d.w.now + d.x.DeviceTimeout)
		return
	}
	d.call(left[0], func(err error) {
		if err != nil {
			d.takeBack(err)
			return
		}
		d.write(left[1:])
	})
}

// await binds the pod when its devices are ready.
func (d *deviceBind) await(deadline time.Duration) {
	switch {
	case d.givenUp():
	case d.w.devicesReady(d.x.DeviceClaims):
		d.call(d.bind, func(err error) {
			if err != nil {
				d.takeBack(err)
				return
			}
			d.done(nil)
		})
	case d.w.now >= deadline:
		d.takeBack(fmt.Errorf("device binding timeout after %s", d.x.DeviceTimeout))
	default:
		d.w.stats.Devices.NotReady++
		d.w.after(conditionPoll, phaseCalls, func() { d.await(deadline) })
	}
}

// takeBack takes back what was written, however often it takes, and reports why there is no bind.
func (d *deviceBind) takeBack(why error) {
	var undo func(k int)
	undo = func(k int) {
		if d.berth.life != d.life {
			return
		}
		if k == len(d.x.DeviceClaims) {
			d.w.after(max(d.w.caughtUp(claimWatch)-d.w.now, 0), phaseWatch, func() { d.done(why) })
			return
		}
		d.call(func() error {
			d.w.unreserveClaim(d.x, d.x.DeviceClaims[k])
			return nil
		}, func(err error) {
			if err != nil {
				d.w.after(time.Second, phaseCalls, func() { undo(k) })
				return
			}
			undo(k + 1)
		})
	}
	undo(0)
}
