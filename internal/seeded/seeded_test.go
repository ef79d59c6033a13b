package seeded_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/berthproject/berth/internal/seeded"
)

func TestNumbersAreUniformAndOfTheirNames(t *testing.T) {
	const n = 100_000
	var sum float64
	var tenths [10]int
	for i := range n {
		x := seeded.Float(7, "pod", fmt.Sprint(i))
		sum += x
		tenths[int(x*10)]++
	}
	if math.Abs(sum/n-0.5) > 0.005 {
		t.Errorf("the mean is %.4f", sum/n)
	}
	for i, k := range tenths {
		if math.Abs(float64(k)-n/10) > 600 {
			t.Errorf("%d of %d numbers are in tenth %d", k, n, i)
		}
	}
	if seeded.Uint64(1, "ab", "c") == seeded.Uint64(1, "a", "bc") || seeded.Uint64(1, "a") == seeded.Uint64(2, "a") {
		t.Error("different names or seeds give one number")
	}
	const known = 0x31b800d7dc7cd458 // numbers must not change from one version to the next: recordings and digests stand on them
	if got := seeded.Uint64(1, "a"); got != known {
		t.Errorf("the number of (1, a) is %#x, it was %#x", got, uint64(known))
	}
	var mean time.Duration
	for i := range n {
		mean += seeded.Exp(time.Second, 3, fmt.Sprint(i)) / n
	}
	if mean < 980*time.Millisecond || mean > 1020*time.Millisecond {
		t.Errorf("the mean of durations around 1 s is %s", mean)
	}
}
