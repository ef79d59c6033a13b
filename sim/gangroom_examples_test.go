package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim"
)

// TestAGangIsOvertakenForEverOrNot plays the stream of docs/pod-groups.md without and with room that is kept
// for the gang. Without, it is placed when the stream has run dry. With it, it is placed within the 15 minutes
// in which all others end, and jobs that end in time go ahead meanwhile.
func TestAGangIsOvertakenForEverOrNot(t *testing.T) {
	var kept, placed, last time.Time // last is when a job of the stream was last placed
	ahead := map[string]int{}
	count := drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for _, d := range r.Decisions {
			name, _, _ := strings.Cut(strings.TrimPrefix(d.Pod, "default/"), "-")
			switch {
			case d.Kind == step.RoomKept && kept.IsZero():
				kept = now
			case d.Kind == step.GroupPlaced:
				placed = now
			case d.Kind == step.Placed && name == "stream":
				last = now
			}
			if d.Kind == step.Placed && !kept.IsZero() && placed.IsZero() {
				ahead[name]++
			}
		}
	})
	play := func(replace ...string) {
		kept, placed = time.Time{}, time.Time{}
		clear(ahead)
		playExampleWith(t, sim.Options{Check: true, Hooks: []drive.Hook{count}}, "pod-groups/overtaken", replace...)
	}
	if play("schedulerConfig: overtaken-config.yaml", ""); !kept.IsZero() || placed.Before(last) {
		t.Errorf("without the configuration room is kept at %s, the gang placed at %s, and the last job of the stream at %s", kept, placed, last)
	}
	play()
	if wait := placed.Sub(kept); kept.IsZero() || wait <= 0 || wait > 15*time.Minute || placed.After(last) {
		t.Errorf("room is kept at %s, the gang placed at %s, and the last job of the stream at %s", kept, placed, last)
	}
	if ahead["quick"] < 3 || ahead["stream"] > ahead["quick"] {
		t.Errorf("meanwhile were placed: %v; want jobs that end in time, and few others", ahead)
	}
}
