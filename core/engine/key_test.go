package engine

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/framework"
)

func TestPropertyKeysOrderByScoreAndThenByRank(t *testing.T) {
	score := rapid.Int32Range(0, maxTotal/2)
	rank := rapid.Uint64Range(0, 1<<rankBits-1)
	rapid.Check(t, func(t *rapid.T) {
		s, o := score.Draw(t, "score"), score.Draw(t, "other")
		r, q := rank.Draw(t, "rank"), rank.Draw(t, "other's")
		add := rapid.Int64Range(0, maxTotal/2).Draw(t, "added")
		a, b := newKey(s, r), newKey(o, q)
		if want := s > o || s == o && r > q; (a > b) != want {
			t.Fatalf("score %d with rank %d is above %d with %d: %v, want %v", s, r, o, q, a > b, want)
		}
		if a == 0 || a.score() != int64(s) {
			t.Fatalf("the key of score %d and rank %d is %d, of score %d", s, r, a, a.score())
		}
		if got := a.plus(add); got != newKey(s+int32(add), r) {
			t.Fatalf("key of score %d plus %d has score %d", s, add, got.score())
		}
	})
}

// The extremes that the derivation of MaxWeights speaks of.
func TestKeysHoldTheHighestTotal(t *testing.T) {
	highest := newKey(maxTotal, 1<<rankBits-1)
	if highest != ^scoreKey(0) || highest.score() != maxTotal {
		t.Errorf("the highest key is %x with score %d, want all ones and %d", uint64(highest), highest.score(), maxTotal)
	}
	if lowest := newKey(0, 0); lowest == 0 || lowest.score() != 0 {
		t.Errorf("the lowest candidate has key %d and score %d; 0 is no candidate", lowest, lowest.score())
	}
	const total = 2 * framework.MaxScore * MaxWeights
	if total > maxTotal || total+2*framework.MaxScore <= maxTotal {
		t.Errorf("weights of %d make a total of %d, the limit is %d: not the most that fits", MaxWeights, total, maxTotal)
	}
}
