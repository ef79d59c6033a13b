package live

import (
	"testing"
	"time"
)

// TestTheCoresTimeCanBeRecorded writes a time out and reads it again: what the core
// saw is what a recording holds. Nor does it go back.
func TestTheCoresTimeCanBeRecorded(t *testing.T) {
	c := newClock()
	last := c.now()
	for range 1000 {
		now := c.now()
		if read := time.Unix(0, now.UnixNano()); read != now {
			t.Fatalf("the core saw %#v, a recording has %#v", now, read)
		}
		if now.Before(last) {
			t.Fatalf("%s comes after %s", now, last)
		}
		last = now
	}
}
