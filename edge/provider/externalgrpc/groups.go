package externalgrpc

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// This file reads the groups: Refresh, NodeGroups, and then each group with calls of its own, many
// groups at a time. What must hold: only a failure of NodeGroups fails the list. What fails of one
// group is said of that group: without its target or its instances it is Unreadable, without its
// template it has a TemplateError, and options and price that can't be read are what they were.

const (
	// parallelCalls is how many groups are read, or nodes asked for, at a time.
	parallelCalls = 32
	// maxReading is how many deadlines the reading of all groups may take, and then again the
	// asking for nodes: a server that hangs in the calls of many groups holds up the others no
	// longer.
	maxReading = 3
)

// knownGroup is what was last read of a group that a failure of the call leaves as it is.
// It is replaced as a whole with each reading; a group that is gone has none.
type knownGroup struct {
	options *cluster.GroupOptions
	ignored string // what of its options isn't honoured, "" for nothing
	price   float64
	ids     []string // of its instances
}

// Groups implements nodegroup.Provider.
// Readings follow each other: a lock keeps two from mixing what they remember.
func (c *Client) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.refresh(ctx)
	answer, err := invoke(ctx, c, "NodeGroups", c.server.NodeGroups, &protocol.NodeGroupsRequest{})
	if err != nil {
		// A server that was restarted may implement calls that the one before didn't.
		c.serverMayBeAnother(err)
		return nil, err
	}
	groups := c.listed(answer)
	reads := c.readAll(ctx, groups)
	known := map[string]*knownGroup{}
	for i := range reads {
		r := &reads[i]
		known[r.ID] = &r.knownGroup
		c.remember(r.absent)
		for _, x := range []struct{ call, err string }{{"NodeGroupGetOptions", r.optionsErr}, {"PricingNodePrice", r.priceErr}} {
			c.warn(x.call+" of "+r.ID, x.err)
		}
		c.warn("options of "+r.ID, r.ignored)
		// What one group's reading says never depends on another group's.
		groups[i] = r.Group
	}
	c.known = known
	c.forgetAbsent()
	// Which node is in which group is decided when all groups are known.
	c.nodes.listed(c.claims(groups), known)
	c.askForNodes(ctx)
	return groups, nil
}

// refresh makes the server bring up to date what it keeps. When that fails, what it has kept may do.
// Its failure is logged, and nothing else.
func (c *Client) refresh(ctx context.Context) {
	const call = "Refresh"
	_, err := optional(ctx, c, call, "", c.server.Refresh, &protocol.RefreshRequest{})
	// note needs a place to record that the call is absent; it is about no group.
	var all read
	if err = all.note(call, err); err != nil {
		c.warn(call, err.Error())
		return
	}
	c.remember(all.absent)
	c.warn(call, "")
}

// remember records calls that turned out not to be implemented.
func (c *Client) remember(absent []string) {
	for _, call := range absent {
		c.absent[call] = true
	}
}

// forgetAbsent forgets what wasn't implemented for groups that are gone: one that comes back is
// another.
func (c *Client) forgetAbsent() {
	maps.DeleteFunc(c.absent, func(key string, _ bool) bool {
		_, group, _ := strings.Cut(key, " of ")
		return group != "" && c.known[group] == nil
	})
}

// listed returns the groups of an answer, by ID. Of two with the same ID the first counts.
func (c *Client) listed(answer *protocol.NodeGroupsResponse) []nodegroup.Group {
	var out []nodegroup.Group
	twice := ""
	seen := map[string]bool{}
	for _, m := range answer.GetNodeGroups() {
		if seen[m.GetId()] {
			twice = fmt.Sprintf("NodeGroups lists %q twice; IDs must be unique, and the first is used", m.GetId())
			continue
		}
		seen[m.GetId()] = true
		out = append(out, nodegroup.Group{ID: m.GetId(), Min: int(m.GetMinSize()), Max: int(m.GetMaxSize())})
	}
	c.warn("NodeGroups", twice)
	slices.SortFunc(out, func(a, b nodegroup.Group) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// read is what was read of a group, by one of several goroutines. What it is to change in the client is
// collected here and taken over when all groups are read.
// It embeds what was known, so that a failed call leaves it as it was.
type read struct {
	nodegroup.Group
	knownGroup
	absent []string // calls that turned out not to be implemented
	// optionsErr and priceErr say why these are still what they were; "" when they could be read.
	optionsErr, priceErr string
}

// readAll reads the groups, each with what was known of it before.
// A deadline for all groups together: each call has its own besides.
func (c *Client) readAll(ctx context.Context, groups []nodegroup.Group) []read {
	ctx, cancel := context.WithTimeout(ctx, maxReading*c.timeout)
	defer cancel()
	reads := make([]read, len(groups))
	parallel(len(groups), func(i int) {
		r := &reads[i]
		r.Group = groups[i]
		if old := c.known[r.ID]; old != nil {
			r.knownGroup = *old
		}
		if r.ID != "" { // one without is refused by who asked
			c.read(ctx, r)
		}
	})
	return reads
}

// parallel calls f with 0 to n-1, parallelCalls of them at a time.
// It returns when all calls have.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	// No more goroutines than there is work for.
	for range min(n, parallelCalls) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// read reads one group. Several are read at the same time: nothing of the client is changed.
// Its first two calls are needed; without either the group isn't usable, and the rest isn't
// asked.
func (c *Client) read(ctx context.Context, r *read) {
	target, err := invoke(ctx, c, "NodeGroupTargetSize", c.server.NodeGroupTargetSize, &protocol.NodeGroupTargetSizeRequest{Id: r.ID})
	if err == nil && target.GetTargetSize() < 0 {
		err = fmt.Errorf("NodeGroupTargetSize: %d; it must not be negative", target.GetTargetSize())
	}
	if err != nil {
		r.Unreadable = err.Error()
		return
	}
	nodes, err := invoke(ctx, c, "NodeGroupNodes", c.server.NodeGroupNodes, &protocol.NodeGroupNodesRequest{Id: r.ID})
	if err != nil {
		r.Unreadable = err.Error()
		return
	}
	r.Target = int(target.GetTargetSize())
	r.Instances, r.ids = instances(nodes)
	c.readTemplate(ctx, r)
	c.readOptions(ctx, r)
	c.readPrice(ctx, r)
	r.Options, r.Price = r.options, r.price
}

// optional makes a call of a group, "" for none, that the server may leave out: its answer is nil
// then. A call that is left out isn't made again for the group until the server was away, or the
// group.
// Absent calls are kept by group: a server may implement one for some groups only.
func optional[Q any, A any](ctx context.Context, c *Client, name, group string, call func(context.Context, Q, ...grpc.CallOption) (*A, error), request Q) (*A, error) {
	if c.absent[name+" of "+group] {
		return nil, nil
	}
	return invoke(ctx, c, name, call, request)
}

// note remembers that a call isn't implemented, and returns any other error of it.
// leftOut tells it by the status code.
func (r *read) note(call string, err error) error {
	if leftOut(err) {
		r.absent = append(r.absent, call+" of "+r.ID)
		return nil
	}
	return err
}

// readTemplate reads what new nodes look like. Without that the group can't grow from
// nothing, but it stays.
func (c *Client) readTemplate(ctx context.Context, r *read) {
	const call = "NodeGroupTemplateNodeInfo"
	answer, err := optional(ctx, c, call, r.ID, c.server.NodeGroupTemplateNodeInfo, &protocol.NodeGroupTemplateNodeInfoRequest{Id: r.ID})
	if err = r.note(call, err); err == nil && answer == nil {
		r.TemplateError = call + ": the server does not implement it; the group can't be scaled up from zero"
		return
	}
	if err == nil {
		if r.Template, err = template(answer); err != nil {
			err = fmt.Errorf("%s: %w", call, err)
		}
	}
	if err != nil {
		r.TemplateError = err.Error()
	}
}

// readOptions reads the options; none when they are those of the flags.
func (c *Client) readOptions(ctx context.Context, r *read) {
	const call = "NodeGroupGetOptions"
	answer, err := optional(ctx, c, call, r.ID, c.server.NodeGroupGetOptions, &protocol.NodeGroupAutoscalingOptionsRequest{Id: r.ID, Defaults: c.defaultOptions()})
	if err = r.note(call, err); err == nil {
		var o *cluster.GroupOptions
		if o, err = options(answer.GetNodeGroupAutoscalingOptions()); err == nil {
			if err = o.Validate(); err == nil {
				// Many servers answer with the defaults that they were sent; then the flags
				// apply, even when they change.
				if r.options = o; o != nil && c.saysNoMore(o) {
					r.options = nil
				}
				r.ignored = ignoredOption(answer.GetNodeGroupAutoscalingOptions())
				return
			}
		}
	}
	// A failure keeps the last options: to fall back to the flags could remove nodes that
	// the server wants kept.
	r.optionsErr = err.Error() + "; the last known options are used"
}

// saysNoMore reports whether options are those of the flags, or those of them that a server knows
// which has no start-up time.
func (c *Client) saysNoMore(o *cluster.GroupOptions) bool {
	flags := c.defaults
	if o.StartupTime == nil {
		flags.StartupTime = nil
	}
	return reflect.DeepEqual(o, &flags)
}

// defaultOptions returns the message of the flags.
// Durations that aren't set must not be nil: servers don't expect that.
func (c *Client) defaultOptions() *protocol.NodeGroupAutoscalingOptions {
	none := durationpb.New(0)
	return optionsMessage(&c.defaults, &protocol.NodeGroupAutoscalingOptions{ScaleDownUnneededDuration: none, ScaleDownUnreadyDuration: none, MaxNodeProvisionDuration: none})
}

// readPrice reads what a node like the template costs for an hour from now on.
func (c *Client) readPrice(ctx context.Context, r *read) {
	const call = "PricingNodePrice"
	if r.Template == nil {
		return // there is nothing to ask for
	}
	answer, err := optional(ctx, c, call, r.ID, c.server.PricingNodePrice, priceRequest(r.Template, c.now(), time.Hour))
	if err = r.note(call, err); err == nil {
		// Written so that NaN is refused.
		if price := answer.GetPrice(); price >= 0 && !math.IsInf(price, 1) {
			r.price = price
			return
		}
		err = fmt.Errorf("%s: %v; it must be a number of at least 0", call, answer.GetPrice())
	}
	r.priceErr = err.Error() + "; the last known price is used"
}

// priceRequest asks for the price of a node for a time.
// Both the current and the older fields of the protocol are set, since servers read the one
// or the other.
func priceRequest(n *v1.Node, from time.Time, lasting time.Duration) *protocol.PricingNodePriceRequest {
	start, end := timestamppb.New(from), timestamppb.New(from.Add(lasting))
	return &protocol.PricingNodePriceRequest{Node: nodeMessage(n), StartTimestamp: start, EndTimestamp: end, StartLegacy: start, EndLegacy: end}
}

// claims returns the group of each instance, by its ID, those of groups that couldn't be read
// included. An instance that two groups have belongs to the first by ID, and is taken off the
// other.
// Which of two groups is right can't be known; the order by ID makes it the same each time.
func (c *Client) claims(groups []nodegroup.Group) map[string]string {
	of := map[string]string{}
	claimed := ""
	for i := range groups {
		g := &groups[i]
		if g.ID == "" {
			continue
		}
		another := map[string]bool{}
		for _, id := range c.known[g.ID].ids {
			if first, ok := of[id]; ok && first != g.ID {
				another[id] = true
				if claimed == "" {
					claimed = fmt.Sprintf("instance %q is listed by the groups %q and %q; it is counted in the first by ID", id, first, g.ID)
				}
				continue
			}
			of[id] = g.ID
		}
		if len(another) > 0 {
			g.Instances = slices.DeleteFunc(g.Instances, func(in nodegroup.Instance) bool { return another[in.ID] })
		}
	}
	c.warn("NodeGroupNodes", claimed)
	return of
}
