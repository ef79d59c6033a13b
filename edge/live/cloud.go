package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// cloud talks to the provider, one call at a time: so the groups it reports
// are never older than the last scale-up it reported.
type cloud struct {
	provider nodegroup.Provider
	period   time.Duration // between looks at the groups
	work     chan any      // step.ScaleUp, []step.NodeDeletion or step.TargetDecrease
	done     func(step.Input)
	log      *slog.Logger
}

func (c *cloud) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		tick := time.NewTicker(c.period)
		defer tick.Stop()
		c.look(ctx)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.look(ctx)
			case job := <-c.work:
				switch j := job.(type) {
				case step.ScaleUp:
					c.scaleUp(ctx, j)
				case []step.NodeDeletion:
					c.remove(ctx, j)
				case step.TargetDecrease:
					c.giveUp(ctx, j)
				}
			}
		}
	})
}

func (c *cloud) look(ctx context.Context) {
	groups, err := c.provider.Groups(ctx)
	if err != nil {
		c.log.Warn("the node groups could not be read; going on with what was known", "err", err)
		return
	}
	good := groups[:0]
	for i := range groups {
		if err := groups[i].Validate(); err != nil {
			c.log.Warn("a node group is left out", "err", err)
			continue
		}
		good = append(good, groups[i])
	}
	c.done(step.GroupsSet{Groups: good})
}

func (c *cloud) scaleUp(ctx context.Context, j step.ScaleUp) {
	err := c.provider.IncreaseSize(ctx, j.Group, j.Nodes)
	if err != nil {
		c.log.Warn("a scale-up failed", "group", j.Group, "nodes", j.Nodes, "err", err)
	} else {
		c.log.Info("scaled up", "group", j.Group, "nodes", j.Nodes)
	}
	c.done(step.ScaleUpDone{Group: j.Group, Nodes: j.Nodes, Err: err})
}

// remove deletes nodes, each with its own outcome.
func (c *cloud) remove(ctx context.Context, jobs []step.NodeDeletion) {
	for _, j := range jobs {
		err := c.provider.DeleteNodes(ctx, j.Group, []nodegroup.Instance{{ID: j.Instance, Node: j.Node}})
		if err != nil {
			c.log.Warn("a node could not be removed", "group", j.Group, "node", j.Node, "instance", j.Instance, "err", err)
		}
		c.done(step.NodeDeletionDone{Node: j.Node, Instance: j.Instance, Err: err})
	}
	c.log.Info("removed nodes", "nodes", len(jobs))
}

func (c *cloud) giveUp(ctx context.Context, j step.TargetDecrease) {
	if err := c.provider.DecreaseTargetSize(ctx, j.Group, j.Nodes); err != nil {
		c.log.Warn("a target size could not be lowered", "group", j.Group, "nodes", j.Nodes, "err", err)
	}
	c.look(ctx)
}
