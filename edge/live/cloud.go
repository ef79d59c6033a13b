package live

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
)

// cloud calls the provider (cloud_lanes.go says which calls are made at the same time), and reads
// its groups every so often.
//
// What must hold: what the core is told of a group is never older than an outcome of a call
// of that group which it was told before (step.GroupsSet). A list that was read while a call
// of a group was under way may be from before the call or from after it: it is given to the
// core without that group, which is named as busy. So is a group that the provider couldn't
// read. Nodes whose group has become known are given to the core before the groups are.
type cloud struct {
	provider nodegroup.Provider
	period   time.Duration    // between two readings of the groups
	put      func(step.Input) // takes the groups
	regroup  func()           // looks the nodes' groups up again
	log      *slog.Logger
	// calls has room for thousands, so that the loop hardly ever waits to send one.
	calls chan cloudCall
	// good, wrong and listed belong to the goroutine that reads the groups.
	good    map[string]nodegroup.Group // by ID, as each was when nothing was wrong with it
	wrong   map[string]string          // by ID, what was said to be wrong with a group last
	listed  map[string]time.Time       // by ID, when a list had the group last
	again   chan struct{}              // holds a token when the groups are to be read before the period is over
	lanes   groupLanes
	watcher Watcher // may be nil
}

func newCloud(provider nodegroup.Provider, period time.Duration, put func(step.Input), log *slog.Logger) *cloud {
	return &cloud{provider: provider, period: period, put: put, regroup: func() {}, log: log,
		calls: make(chan cloudCall, 1<<12), again: make(chan struct{}, 1), lanes: newGroupLanes(),
		good: map[string]nodegroup.Group{}, wrong: map[string]string{}, listed: map[string]time.Time{}}
}

// run starts two goroutines: one hands calls to their lanes, the other reads the groups. They end with
// ctx.
func (c *cloud) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case call := <-c.calls:
				c.lanes.add(ctx, wg, call)
			}
		}
	})
	wg.Go(func() {
		tick := time.NewTicker(c.period)
		defer tick.Stop()
		for ctx.Err() == nil {
			c.refresh(ctx)
			select {
			case <-ctx.Done():
			case <-tick.C:
			case <-c.again:
			}
		}
	})
}

// refresh reads the groups and gives them to the core, as far as they can be used. When
// they can't be read the core goes on with what it knows.
func (c *cloud) refresh(ctx context.Context) {
	c.lanes.beginList()
	began := time.Now()
	groups, err := c.provider.Groups(ctx)
	if c.watcher != nil && ctx.Err() == nil {
		c.watcher.GroupsRead(time.Since(began), err)
	}
	if err == nil {
		c.regroup()
	}
	c.lanes.endList(func(busy []string) {
		if err != nil {
			c.log.Warn("could not refresh the node groups; using the last known state", "err", err)
			return
		}
		in := step.GroupsSet{Busy: busy}
		for i := range groups {
			g, ok := c.usable(groups[i])
			switch {
			case !ok || slices.Contains(busy, g.ID):
			case g.Unreadable != "":
				in.Busy = append(in.Busy, g.ID)
			default:
				in.Groups = append(in.Groups, g)
			}
		}
		c.forget(groups)
		slices.Sort(in.Busy)
		c.put(in)
	})
}

// forget forgets the groups that the lists haven't had for nodegroup.GoneAfter.
func (c *cloud) forget(groups []nodegroup.Group) {
	now := time.Now()
	for i := range groups {
		c.listed[groups[i].ID] = now
	}
	maps.DeleteFunc(c.listed, func(_ string, at time.Time) bool { return now.Sub(at) >= nodegroup.GoneAfter })
	isGone := func(id string) bool { return c.listed[id].IsZero() }
	maps.DeleteFunc(c.good, func(id string, _ nodegroup.Group) bool { return isGone(id) })
	maps.DeleteFunc(c.wrong, func(id, _ string) bool { return isGone(id) })
}

// usable returns a group as the core may have it. Limits and options that can't be are refused:
// the last good ones hold, and without any the group is left out; ok is false then. So is
// a price, but without a good one it is unknown. A template that can't be is an error of the
// template. Each is said once, until it changes.
func (c *cloud) usable(g nodegroup.Group) (_ nodegroup.Group, ok bool) {
	if g.Unreadable != "" && g.ID != "" {
		c.say(g.ID, g.Unreadable)
		return g, true
	}
	err := g.Validate()
	why := g.TemplateError
	if err != nil {
		why = err.Error()
	}
	c.say(g.ID, why)
	if err == nil {
		if g.TemplateError == "" {
			c.good[g.ID] = g
		}
		return g, true
	}
	if g.ID == "" {
		return g, false
	}
	if g.ValidateLimits() != nil {
		good, known := c.good[g.ID]
		if !known {
			return g, false
		}
		g.Min, g.Max, g.Options = good.Min, good.Max, good.Options
	}
	if g.ValidatePrice() != nil {
		g.Price = c.good[g.ID].Price
	}
	if err := g.Validate(); err != nil {
		g.Template, g.TemplateError = nil, err.Error()
	}
	return g, true
}

// say logs what is wrong with a group, "" for nothing, when that has changed.
func (c *cloud) say(group, why string) {
	if c.wrong[group] == why {
		return
	}
	c.wrong[group] = why
	if why != "" {
		c.log.Warn("a node group is unusable", "group", group, "err", why)
	} else {
		c.log.Info("a node group is usable again", "group", group)
	}
}

// readAgain asks for the groups to be read before the period is over.
func (c *cloud) readAgain() {
	select {
	case c.again <- struct{}{}:
	default: // they will be anyway
	}
}

// scaleUp asks for more nodes.
func (c *cloud) scaleUp(ctx context.Context, order step.ScaleUp) error {
	err := c.provider.IncreaseSize(ctx, order.Group, order.Nodes)
	switch {
	case err == nil:
		c.log.Info("scaled up", "group", order.Group, "nodes", order.Nodes)
	case nodegroup.OutcomeUnknown(err):
		c.log.Warn("no answer to a scale-up; the provider's next list shows whether nodes were ordered", "group", order.Group, "nodes", order.Nodes, "err", err)
	default:
		c.log.Warn("scale-up failed", "group", order.Group, "nodes", order.Nodes, "class", nodegroup.ClassOf(err).String(), "err", err)
	}
	return err
}

// deleteNodes asks for the removal of nodes of one group, in one call. A provider that refuses a
// call may have refused one node of many. Then each half is asked for by itself, so that one node
// that can't go keeps no other, unless the nodes go together or not at all. A call that had no
// answer isn't repeated here: what became of its nodes only the groups that are read next tell.
//
// Nodes with the same outcome are one line of the log: a provider that refuses all of them has one reason.
func (c *cloud) deleteNodes(ctx context.Context, group string, deletions []deletion) {
	type outcome struct {
		err   error
		nodes []deletion
	}
	var outcomes []outcome // in the order in which they were first met
	met := map[string]int{}
	c.askToDelete(ctx, group, deletions, func(some []deletion, err error) {
		i, known := met[fmt.Sprint(err)]
		if !known {
			i, outcomes = len(outcomes), append(outcomes, outcome{err: err})
			met[fmt.Sprint(err)] = i
		}
		outcomes[i].nodes = append(outcomes[i].nodes, some...)
	})
	for _, o := range outcomes {
		c.logDeletion(group, o.nodes, o.err)
	}
	if len(outcomes) > 1 || outcomes[0].err != nil {
		c.readAgain()
	}
}

// askToDelete makes the calls of deleteNodes, and tells of the outcome of each.
func (c *cloud) askToDelete(ctx context.Context, group string, deletions []deletion, tell func([]deletion, error)) {
	instances := make([]nodegroup.Instance, len(deletions))
	for i, d := range deletions {
		instances[i] = nodegroup.Instance{ID: d.Instance, Node: d.Node}
	}
	err := c.provider.DeleteNodes(ctx, group, instances)
	if n := len(deletions); err != nil && n > 1 && !nodegroup.OutcomeUnknown(err) && !deletions[0].Atomic {
		c.askToDelete(ctx, group, deletions[:n/2], tell)
		c.askToDelete(ctx, group, deletions[n/2:], tell)
		return
	}
	tell(deletions, err)
	for _, d := range deletions {
		d.done(d.NodeDeletion, err)
	}
}

// logged is how many nodes a line of the log names.
const logged = 10

// logDeletion writes one line about an outcome, however many nodes it concerned.
func (c *cloud) logDeletion(group string, deletions []deletion, err error) {
	var names []string
	for _, d := range deletions[:min(len(deletions), logged)] {
		names = append(names, cmp.Or(d.Node, d.Instance))
	}
	if more := len(deletions) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	about := []any{"group", group, "nodes", len(deletions), "names", names}
	switch {
	case err == nil:
		c.log.Info("deleted nodes", about...)
	case nodegroup.OutcomeUnknown(err):
		c.log.Warn("no answer to a deletion of nodes; the provider's next list shows which of them are gone", append(about, "err", err)...)
	default:
		c.log.Warn("failed to delete nodes", append(about, "err", err)...)
	}
}

// decreaseTarget gives up nodes that were ordered and never made. The groups that are
// read then tell the core how that went.
func (c *cloud) decreaseTarget(ctx context.Context, decrease step.TargetDecrease) {
	if err := c.provider.DecreaseTargetSize(ctx, decrease.Group, decrease.Nodes); err != nil {
		c.log.Warn("failed to decrease the target size", "group", decrease.Group, "nodes", decrease.Nodes, "err", err)
	}
}
