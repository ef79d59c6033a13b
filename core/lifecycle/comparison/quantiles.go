package comparison

import (
	"math"
	"slices"
	"time"
)

// times counts durations in buckets, each larger than the one before by an eighth of a
// doubling: a quantile is at most 9 % too high, however many there are.
type times struct {
	buckets []int // by bucketOf
	n       int
	max     time.Duration
	sum     time.Duration
}

// smallest is the end of the first bucket.
const smallest = 10 * time.Microsecond

const bucketsPerDoubling = 8

// bucketOf returns the first bucket whose end isn't below d.
func bucketOf(d time.Duration) int {
	if d <= smallest {
		return 0
	}
	return int(math.Ceil(bucketsPerDoubling * math.Log2(float64(d)/float64(smallest))))
}

func endOf(bucket int) time.Duration {
	return time.Duration(float64(smallest) * math.Exp2(float64(bucket)/bucketsPerDoubling))
}

func (x *times) add(d time.Duration) {
	d = max(d, 0)
	at := bucketOf(d)
	if at >= len(x.buckets) {
		x.buckets = slices.Grow(x.buckets, at+1-len(x.buckets))[:at+1]
	}
	x.buckets[at]++
	x.n++
	x.sum += d
	x.max = max(x.max, d)
}

// Quantiles are how long pods have waited for their nodes. All are 0 when there is no pod.
type Quantiles struct {
	Pods int           `json:"pods"`
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P99  time.Duration `json:"p99"`
	Max  time.Duration `json:"max"`
}

func (x *times) quantiles() Quantiles {
	return Quantiles{Pods: x.n, P50: x.at(0.5), P90: x.at(0.9), P99: x.at(0.99), Max: x.max}
}

// at returns a quantile.
func (x *times) at(q float64) time.Duration {
	left := int(math.Ceil(q * float64(x.n)))
	for i, n := range x.buckets {
		if left -= n; left <= 0 {
			return min(endOf(i), x.max)
		}
	}
	return x.max
}
