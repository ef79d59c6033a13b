package engine

import (
	"fmt"

	"github.com/berthproject/berth/core/framework"
)

// How candidates are compared, and the limits that follow from it: the only
// place that states them. New checks them for every profile, wherever it was
// made; config refuses files by the same constants.

// scoreKey orders candidates: by score, then by rank. It is one word, so that
// the index of a group is a tree of words:
//
//	bit 63          40 39           0
//	    | score + 1   | rank        |
//
// The score is the sum of what the plugins give, each weighted. The rank says
// which of equally good nodes wins (column.rank). 0 is no candidate: that is
// what the 1 is added for.
type scoreKey uint64

const (
	rankBits  = 40
	scoreBits = 64 - rankBits

	// maxTotal is the highest total score that a key holds.
	maxTotal = 1<<scoreBits - 2

	// MaxWeights is how much the weights of a profile's plugins may add up to. A
	// plugin gives up to MaxScore with its local rule and as much again with its
	// group rule, so a total is at most MaxWeights·2·MaxScore <= maxTotal. Partial
	// sums stay below that too, since no weight and no score is negative; int32
	// holds them.
	MaxWeights = maxTotal / (2 * framework.MaxScore)

	// MaxBonus is how much HTTP extenders may add to a node's score. A bonus isn't
	// part of a key (PlaceAmong compares plain int64), so the limit is what leaves
	// room for the total.
	MaxBonus = 1 << 62

	// MaxExtenderWeights is how much the weights of a profile's extenders may add
	// up to: each adds up to MaxScore times its weight.
	MaxExtenderWeights = MaxBonus / framework.MaxScore
)

// newKey returns the key of a candidate. Score is 0 to maxTotal, rank has at most
// rankBits bits.
func newKey(score int32, rank uint64) scoreKey { return scoreKey(score+1)<<rankBits | scoreKey(rank) }

// score returns the score of a key that isn't 0.
func (k scoreKey) score() int64 { return int64(k>>rankBits) - 1 }

// plus returns the key, which isn't 0, with something added to its score. The sum
// of both is 0 to maxTotal.
func (k scoreKey) plus(score int64) scoreKey { return k + scoreKey(score)<<rankBits }

// checkLimits returns an error if scores of the profile might not fit into keys,
// or bonuses of its extenders not into an int64.
func checkLimits(p *framework.Profile) error {
	total := int64(0)
	for i := range p.Plugins {
		w := &p.Plugins[i]
		if w.Weight < 0 {
			return fmt.Errorf("profile %q: plugin %s has the weight %d; it must be at least 0 (0 means that the plugin does not score)", p.SchedulerName, w.Name(), w.Weight)
		}
		if w.Weight > MaxWeights { // or the sum might overflow
			return fmt.Errorf("profile %q: plugin %s has the weight %d; the weights of all plugins together must be at most %d; lower them in proportion", p.SchedulerName, w.Name(), w.Weight, MaxWeights)
		}
		total += w.Weight
	}
	if total > MaxWeights {
		return fmt.Errorf("profile %q: the weights of its plugins add up to %d; together they must be at most %d; lower them in proportion", p.SchedulerName, total, MaxWeights)
	}
	left := int64(MaxExtenderWeights)
	for i := range p.Extenders {
		w := p.Extenders[i].Weight
		if w < 0 || w > left {
			return fmt.Errorf("profile %q: extender %d has the weight %d; weights of extenders must be at least 0 and together at most %d", p.SchedulerName, i+1, w, int64(MaxExtenderWeights))
		}
		left -= w
	}
	return nil
}
