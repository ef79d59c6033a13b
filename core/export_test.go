package core

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
)

// ReserveHomes has homes kept as a node deletion does when it begins.
func (c *Core) ReserveHomes(r *autoscaler.Removal) (why string) {
	return c.scale.homes.Reserve(c.turn, r)
}

// PodEvicted says that a pod was told to leave, as a node deletion does.
func (c *Core) PodEvicted(uid types.UID) { c.scale.homes.PodEvicted(c.turn, c.state.PodOn(uid)) }

// LookedForNoHelp returns how many pods were looked at in all to report that no group helps them.
func (c *Core) LookedForNoHelp() int { return c.scale.looked }
