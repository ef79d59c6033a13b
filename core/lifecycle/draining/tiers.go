package draining

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Config says how pods are evicted. Names are those of Cluster Autoscaler's flags;
// core.Autoscale has the defaults.
type Config struct {
	// Tiers are by rising priority; none stands for one tier with MaxGrace.
	Tiers []autoscaler.DrainTier
	// MaxGrace bounds how long a pod may take to terminate; 0 for as long as it says itself.
	MaxGrace time.Duration
	// MaxEviction is how long an eviction is tried, and a successor waited for.
	MaxEviction time.Duration
	// Surge has Deployments make a successor first, where their pods ask for it.
	Surge bool
}

// tiers returns the tiers, at least one.
func (c *Config) tiers() []autoscaler.DrainTier {
	if len(c.Tiers) > 0 {
		return c.Tiers
	}
	return []autoscaler.DrainTier{{Grace: c.MaxGrace}}
}

// tierOf returns the index of a pod's tier: the highest from whose priority on the pod's is,
// the lowest when its priority is below all.
func tierOf(tiers []autoscaler.DrainTier, priority int32) int {
	at := 0
	for i := range tiers {
		if tiers[i].Priority <= priority {
			at = i
		}
	}
	return at
}

// grace returns how long a pod of a tier may take to terminate, and whether that is less than
// it says itself.
func grace(tier autoscaler.DrainTier, pod *cluster.Pod) (_ time.Duration, less bool) {
	own := time.Duration(pod.Eviction.Grace) * time.Second
	if tier.Grace > 0 && tier.Grace < own {
		return tier.Grace, true
	}
	return own, false
}
