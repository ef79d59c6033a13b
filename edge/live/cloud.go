package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
)

// cloud calls the provider, one call at a time and in the order in which calls were
// handed out. So the groups that it reads are never older than the last scale-up
// whose outcome it reported, which the core relies on (step.GroupsSet).
type cloud struct {
	provider nodegroup.Provider
	period   time.Duration // between two readings of the groups
	calls    chan func(context.Context)
	put      func(step.Input) // takes the groups
	log      *slog.Logger
}

func newCloud(provider nodegroup.Provider, period time.Duration, put func(step.Input), log *slog.Logger) *cloud {
	return &cloud{provider: provider, period: period, put: put, log: log, calls: make(chan func(context.Context), 1<<12)}
}

func (c *cloud) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		tick := time.NewTicker(c.period)
		defer tick.Stop()
		c.refresh(ctx)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.refresh(ctx)
			case call := <-c.calls:
				call(ctx)
			}
		}
	})
}

// refresh reads the groups and gives those that are valid to the core. When they
// can't be read the core goes on with what it knows.
func (c *cloud) refresh(ctx context.Context) {
	groups, err := c.provider.Groups(ctx)
	if err != nil {
		c.log.Warn("the node groups could not be read; going on with what was known", "err", err)
		return
	}
	valid := groups[:0]
	for i := range groups {
		if err := groups[i].Validate(); err != nil {
			c.log.Warn("a node group is left out", "err", err)
			continue
		}
		valid = append(valid, groups[i])
	}
	c.put(step.GroupsSet{Groups: valid})
}

// scaleUp asks for more nodes.
func (c *cloud) scaleUp(ctx context.Context, order step.ScaleUp) error {
	err := c.provider.IncreaseSize(ctx, order.Group, order.Nodes)
	if err != nil {
		c.log.Warn("a scale-up failed", "group", order.Group, "nodes", order.Nodes, "err", err)
	} else {
		c.log.Info("scaled up", "group", order.Group, "nodes", order.Nodes)
	}
	return err
}

// deleteNodes asks for the removal of nodes, each with an outcome of its own.
func (c *cloud) deleteNodes(ctx context.Context, deletions []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	removed := 0
	for _, d := range deletions {
		err := c.provider.DeleteNodes(ctx, d.Group, []nodegroup.Instance{{ID: d.Instance, Node: d.Node}})
		if err != nil {
			c.log.Warn("a node could not be removed", "group", d.Group, "node", d.Node, "instance", d.Instance, "err", err)
		} else {
			removed++
		}
		done(d, err)
	}
	if removed > 0 {
		c.log.Info("removed nodes", "nodes", removed)
	}
}

// decreaseTarget gives up nodes that were ordered and never made. The groups that it
// reads then tell the core how that went.
func (c *cloud) decreaseTarget(ctx context.Context, decrease step.TargetDecrease) {
	if err := c.provider.DecreaseTargetSize(ctx, decrease.Group, decrease.Nodes); err != nil {
		c.log.Warn("a target size could not be lowered", "group", decrease.Group, "nodes", decrease.Nodes, "err", err)
	}
	c.refresh(ctx)
}
