package background

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A kernel before 6.12 ignores slices.
func TestTheThreadHasLongSlices(t *testing.T) {
	got := make(chan time.Duration)
	w := Start(t.Context())
	w.Do(t.Context(), func() { got <- slice(t) })
	want := time.Duration(0)
	if knowsSlices(t) {
		want = longSlice
		if mine := slice(t); mine == want {
			t.Errorf("another thread has slices of %v, too", mine)
		}
	}
	if slice := <-got; slice != want {
		t.Errorf("the worker's thread has slices of %v, want %v", slice, want)
	}
}

// slice returns the slice of the calling thread; 0 where the kernel doesn't say.
func slice(t *testing.T) time.Duration {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Error(err)
		return 0
	}
	return time.Duration(attr.Runtime)
}

// knowsSlices tells whether the kernel is 6.12 or newer.
func knowsSlices(t *testing.T) bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		t.Fatalf("the kernel's release is %q, want two numbers at least", release)
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 12
}
