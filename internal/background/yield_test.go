package background

import (
	"testing"
	"time"
)

func TestYieldsAreRareWhereOthersTakeLong(t *testing.T) {
	now, took, yields := time.Unix(0, 0), time.Duration(0), 0
	w := newWorker(func() time.Time { return now }, func() {
		now = now.Add(took)
		yields++
	})
	const step = 10 * time.Microsecond
	compute := func(length time.Duration) {
		for range length / step {
			now = now.Add(step)
			w.Yield()
		}
	}
	tests := []struct {
		name string
		took time.Duration // of each yield
		want int           // in 10 ms
	}{
		{"nobody waits", 0, 100},
		{"the loop waits", 300 * time.Microsecond, 100},
		{"another program wants the processor", 2 * time.Millisecond, 1},
	}
	for _, x := range tests {
		took, yields = x.took, 0
		compute(10 * time.Millisecond)
		if yields != x.want {
			t.Errorf("%s: %d yields, want %d", x.name, yields, x.want)
		}
		compute(30 * time.Millisecond) // the last of the yields has no effect any more
	}
}
