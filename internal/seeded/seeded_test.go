package seeded_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/berthproject/berth/internal/seeded"
)

// This file specifies the distributions of numbers by name, and that they stay.

const n = 100_000

func TestFloatsAreUniform(t *testing.T) {
	var sum float64
	var tenths [10]int
	for i := range n {
		x := seeded.Float(7, "pod", fmt.Sprint(i))
		sum += x
		tenths[int(x*10)]++
	}
	if math.Abs(sum/n-0.5) > 0.005 {
		t.Errorf("the mean is %.4f, want 0.5", sum/n)
	}
	for i, k := range tenths {
		if math.Abs(float64(k)-n/10) > 600 {
			t.Errorf("%d of %d numbers are in tenth %d, want about %d", k, n, i, n/10)
		}
	}
}

func TestDurationsHaveTheirMean(t *testing.T) {
	var mean time.Duration
	for i := range n {
		mean += seeded.Exp(time.Second, 3, fmt.Sprint(i)) / n
	}
	if mean < 980*time.Millisecond || mean > 1020*time.Millisecond {
		t.Errorf("the mean of durations around 1 s is %s", mean)
	}
}

func TestSeedsAndNamesTellNumbersApart(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b uint64
	}{
		{"the parts of a name", seeded.Uint64(1, "ab", "c"), seeded.Uint64(1, "a", "bc")},
		{"the number of parts", seeded.Uint64(1, "a"), seeded.Uint64(1, "a", "")},
		{"the seed", seeded.Uint64(1, "a"), seeded.Uint64(2, "a")},
	} {
		if c.a == c.b {
			t.Errorf("%s makes no difference: both numbers are %#x", c.name, c.a)
		}
	}
}

// TestNumbersStay has the number of a version that has made recordings and digests.
func TestNumbersStay(t *testing.T) {
	const want = 0x31b800d7dc7cd458
	if got := seeded.Uint64(1, "a"); got != want {
		t.Errorf("the number of (1, a) is %#x, want %#x", got, uint64(want))
	}
}
