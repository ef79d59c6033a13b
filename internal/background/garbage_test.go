package background

import (
	"runtime/debug"
	"testing"
)

func TestGOGCSaysHowMuchGarbageThereMayBe(t *testing.T) {
	const before = 123
	usual := debug.SetGCPercent(before)
	defer debug.SetGCPercent(usual)
	for _, x := range []struct {
		set  bool
		want int
	}{{true, before}, {false, garbagePercent}} {
		LimitGarbage(func(name string) (string, bool) { return "50", x.set && name == "GOGC" })
		if got := debug.SetGCPercent(before); got != x.want {
			t.Errorf("with GOGC set %v the collector's percentage is %d, want %d", x.set, got, x.want)
		}
	}
}
