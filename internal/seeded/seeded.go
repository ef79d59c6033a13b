// Package seeded draws random numbers by name rather than in sequence: the number for one
// thing doesn't depend on which numbers were drawn before, so that two runs of one workload
// under different policies see the same failures and delays.
//
// Equal seeds and names must give equal numbers in every version of Berth and on every
// machine: digests and recordings rely on it.
package seeded

import (
	"math"
	"time"
)

// Uint64 returns the number of a name, which may have several parts: FNV-1a over the parts,
// each with an end mark, then mixed so that all bits depend on all parts.
func Uint64(seed uint64, name ...string) uint64 {
	h := uint64(14695981039346656037) ^ seed*0x9E3779B97F4A7C15
	for _, part := range name {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	h ^= h >> 30 // from here on the finaliser of splitmix64
	h *= 0xBF58476D1CE4E5B9
	h ^= h >> 27
	h *= 0x94D049BB133111EB
	return h ^ h>>31
}

// Float returns the number of a name, uniform in [0, 1).
func Float(seed uint64, name ...string) float64 {
	return float64(Uint64(seed, name...)>>11) / (1 << 53)
}

// Exp returns a duration with the given mean, exponentially distributed, but 73 years at most.
func Exp(mean time.Duration, seed uint64, name ...string) time.Duration {
	return time.Duration(min(-math.Log(1-Float(seed, name...))*float64(mean), math.MaxInt64/4))
}
