package live

import (
	"runtime"
	"testing"
)

// TestWorkersTakeLittleMemoryAtRest makes the workers, with room in their backlogs for what a Step
// may bring: that room is allocated at once and lives as long as Berth.
func TestWorkersTakeLittleMemoryAtRest(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := newWorkers(t.Context(), Options{}, &clients{}, &load{})
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(w)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 6 {
		t.Errorf("the workers take %d MiB, want 6 at most", mib)
	}
}
