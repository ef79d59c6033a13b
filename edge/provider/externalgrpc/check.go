package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// This file tries out what Berth relies on against a server, for the authors of servers: each call
// has one line, with the first thing that is wrong, its value and the remedy.

// Checking says what Check does beside reading.
type Checking struct {
	// Change is the ID of a group that is made larger and smaller again by one node; "" for none.
	Change string
	// Wait is how long the server has to show an instance that was ordered, or deleted.
	Wait time.Duration
}

// ErrWrong says that a server doesn't do what Berth relies on. What that is was printed.
var ErrWrong = errors.New("the server does not meet all of Berth's requirements")

// unknownName is that of a group and a node which no server has.
const unknownName = "berth-check-no-such-thing"

// samples is of how many instances of a group the server is asked for the group.
const samples = 3

// Check tries out a server, and prints a line for each call. It returns ErrWrong when something
// is wrong.
func Check(ctx context.Context, cfg *Config, what Checking, out io.Writer) error {
	conn, err := cfg.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	c := &check{ctx: ctx, server: protocol.NewCloudProviderClient(conn), timeout: cfg.timeout(), out: out, what: what}
	c.run()
	if c.failed {
		return ErrWrong
	}
	return nil
}

// check is one run of Check, in one goroutine. What earlier calls have answered is what later ones ask
// about.
type check struct {
	ctx     context.Context
	server  protocol.CloudProviderClient
	timeout time.Duration
	out     io.Writer
	what    Checking
	failed  bool

	// groups are those that are in order; a group that isn't is asked about no further.
	groups []*protocol.NodeGroup
	// targets, instances and templates are by the ID of the group.
	targets   map[string]int
	instances map[string][]*protocol.Instance
	templates map[string]*v1.Node
}

// line is the outcome of one call, made for several groups or nodes.
type line struct {
	call    string
	calls   int
	slowest time.Duration
	left    bool   // the server leaves the call out
	wrong   string // the first thing that is
	note    string // what there is to say when nothing is
}

// wrongly notes what is wrong, unless something was before.
func (l *line) wrongly(format string, args ...any) {
	if l.wrong == "" {
		l.wrong = fmt.Sprintf(format, args...)
	}
}

// print prints a line.
func (c *check) print(l *line) {
	outcome, text := "ok", l.note
	switch {
	case l.wrong != "":
		outcome, text, c.failed = "wrong", l.wrong, true
	case l.left:
		outcome = "left out"
	case l.calls == 0:
		outcome = "not tried"
	}
	if l.calls > 0 && outcome != "left out" {
		took := l.slowest.Round(100 * time.Microsecond)
		if l.calls == 1 {
			text = fmt.Sprintf("%s (in %s)", text, took)
		} else {
			text = fmt.Sprintf("%s (%d calls, the slowest in %s)", text, l.calls, took)
		}
	}
	fmt.Fprintf(c.out, "%-9s  %-27s  %s\n", outcome, l.call, strings.TrimSpace(text))
}

// duty says whether a server may leave a call out.
type duty bool

const (
	required   duty = false
	optionally duty = true
)

// attempt makes a call within its deadline, and counts it. Its error is the server's, unchanged.
func attempt[Q, A any](c *check, l *line, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) (A, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	began := time.Now()
	answer, err := call(ctx, request)
	l.calls++
	l.slowest = max(l.slowest, time.Since(began))
	return answer, err
}

// try makes a call about something; ok is false when there is no answer. What is wrong with that
// is noted.
func try[Q, A any](c *check, l *line, d duty, about string, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) (answer A, ok bool) {
	answer, err := attempt(c, l, call, request)
	switch {
	case err == nil:
		return answer, true
	case status.Code(err) == codes.Unimplemented && d == optionally:
		l.left = true
	case status.Code(err) == codes.Unimplemented:
		l.wrongly("%s%v; Berth requires this call", about, callError(l.call, err))
	default:
		l.wrongly("%s%v", about, callError(l.call, err))
	}
	return answer, false
}

// run makes the calls in the order in which Berth makes them.
func (c *check) run() {
	c.refresh()
	if !c.nodeGroups() {
		return // nothing more can be asked
	}
	c.targetSizes()
	c.listNodes()
	c.groupsForNodes()
	c.readTemplates()
	c.readOptions()
	c.prices()
	c.gpus()
	if c.what.Change != "" && !c.failed {
		c.change(c.what.Change)
	} else {
		why := "it changes a group; use --change GROUP to try it"
		if c.what.Change != "" {
			why = "an earlier check failed"
		}
		for _, call := range []string{"NodeGroupIncreaseSize", "NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes"} {
			c.print(&line{call: call, note: why})
		}
	}
	c.print(&line{call: "Cleanup", note: "it would make the server think that its client is shutting down"})
}

// refresh is the first call of each reading, as with Cluster Autoscaler; a server without a cache has
// no use for it.
func (c *check) refresh() {
	l := &line{call: "Refresh"}
	try(c, l, optionally, "", c.server.Refresh, &protocol.RefreshRequest{})
	c.print(l)
}

// nodeGroups reads the groups. It reports whether there was an answer: without one there is nothing to
// ask about.
func (c *check) nodeGroups() bool {
	l := &line{call: "NodeGroups"}
	answer, ok := try(c, l, required, "", c.server.NodeGroups, &protocol.NodeGroupsRequest{})
	seen := map[string]bool{}
	for _, g := range answer.GetNodeGroups() {
		switch id := g.GetId(); {
		case id == "":
			l.wrongly("a group has no id; give each one")
		case seen[id]:
			l.wrongly("group %q is listed twice; ids must be unique", id)
		case g.GetMinSize() < 0:
			l.wrongly("group %q has minSize %d; it must not be negative", id, g.GetMinSize())
		case g.GetMinSize() > g.GetMaxSize():
			l.wrongly("group %q has minSize %d and maxSize %d; minSize must be at most maxSize", id, g.GetMinSize(), g.GetMaxSize())
		default:
			c.groups = append(c.groups, g)
		}
		seen[g.GetId()] = true
	}
	l.note = fmt.Sprintf("%d groups", len(c.groups))
	c.print(l)
	return ok
}

// targetSizes reads the targets, and asks for a group that doesn't exist: a server that makes up a
// target for it would hide that a group was deleted.
func (c *check) targetSizes() {
	l := &line{call: "NodeGroupTargetSize"}
	c.targets = map[string]int{}
	sum := 0
	for _, g := range c.groups {
		n, ok := c.target(l, g.GetId())
		if ok && n < 0 {
			l.wrongly("group %q: targetSize is %d; it must not be negative", g.GetId(), n)
		}
		c.targets[g.GetId()] = n
		sum += n
	}
	answer, err := attempt(c, l, c.server.NodeGroupTargetSize, &protocol.NodeGroupTargetSizeRequest{Id: unknownName})
	if err == nil {
		l.wrongly("group %q, which does not exist, has targetSize %d; answer NOT_FOUND for a group that does not exist", unknownName, answer.GetTargetSize())
	}
	l.note = fmt.Sprintf("%d nodes are wanted", sum)
	c.print(l)
}

// target returns a group's target.
func (c *check) target(l *line, id string) (int, bool) {
	answer, ok := try(c, l, required, fmt.Sprintf("group %q: ", id), c.server.NodeGroupTargetSize, &protocol.NodeGroupTargetSizeRequest{Id: id})
	return int(answer.GetTargetSize()), ok
}

// listNodes reads the instances. IDs must tell them apart across all groups, since a node is found in
// its group by them.
func (c *check) listNodes() {
	l := &line{call: "NodeGroupNodes"}
	c.instances = map[string][]*protocol.Instance{}
	of := map[string]string{}
	for _, g := range c.groups {
		id := g.GetId()
		for _, in := range c.listed(l, id) {
			if first, ok := of[in.GetId()]; ok {
				l.wrongly("instance %q is listed by the groups %q and %q; list it once", in.GetId(), first, id)
				continue
			}
			of[in.GetId()] = id
			c.instances[id] = append(c.instances[id], in)
			s := in.GetStatus()
			switch state, class := s.GetInstanceState(), s.GetErrorInfo().GetInstanceErrorClass(); {
			case in.GetId() == "":
				l.wrongly("group %q: an instance has no id; it must be spec.providerID of its node", id)
			case state < protocol.InstanceStatus_unspecified || state > protocol.InstanceStatus_instanceDeleting:
				l.wrongly("group %q: instance %q has instanceState %d; it must be 0 (unspecified), 1 (running), 2 (creating) or 3 (deleting)", id, in.GetId(), state)
			case s.GetErrorInfo().GetErrorCode() != "" && class != classOutOfResources && class != classOther:
				l.wrongly("group %q: instance %q has instanceErrorClass %d; it must be %d (out of resources) or %d (other)", id, in.GetId(), class, classOutOfResources, classOther)
			}
		}
	}
	l.note = fmt.Sprintf("%d instances", len(of))
	c.print(l)
}

// listed returns a group's instances.
func (c *check) listed(l *line, id string) []*protocol.Instance {
	answer, _ := try(c, l, required, fmt.Sprintf("group %q: ", id), c.server.NodeGroupNodes, &protocol.NodeGroupNodesRequest{Id: id})
	return answer.GetInstances()
}

// groupsForNodes asks for the groups of some instances and of a node that no group can have: two calls
// that disagree would make a node's group change from reading to reading.
func (c *check) groupsForNodes() {
	l := &line{call: "NodeGroupForNode"}
	for _, g := range c.groups {
		for _, in := range c.instances[g.GetId()][:min(samples, len(c.instances[g.GetId()]))] {
			if in.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceDeleting {
				continue
			}
			node := &protocol.ExternalGrpcNode{ProviderID: in.GetId(), Name: in.GetId()}
			answer, ok := try(c, l, required, fmt.Sprintf("instance %q: ", in.GetId()), c.server.NodeGroupForNode, &protocol.NodeGroupForNodeRequest{Node: node})
			// A server may tell nodes by their labels, which aren't known here.
			if got := answer.GetNodeGroup().GetId(); ok && got != "" && got != g.GetId() {
				l.wrongly("instance %q of group %q is in group %q by NodeGroupForNode; both calls must agree", in.GetId(), g.GetId(), got)
			}
		}
	}
	answer, err := attempt(c, l, c.server.NodeGroupForNode, &protocol.NodeGroupForNodeRequest{Node: &protocol.ExternalGrpcNode{ProviderID: unknownName + "://x", Name: unknownName}})
	switch id := answer.GetNodeGroup().GetId(); {
	case err == nil && id != "":
		l.wrongly("node %q, which does not exist, is in group %q; answer with an empty id for a node in no group", unknownName, id)
	case status.Code(err) == codes.Unimplemented:
		l.wrongly("%v; Berth requires this call", callError(l.call, err))
	case err != nil:
		l.note = "a node in no group is an error here; an empty id would be better"
	}
	c.print(l)
}

// readTemplates reads what new nodes look like, as a server must say for groups that may be empty.
func (c *check) readTemplates() {
	l := &line{call: "NodeGroupTemplateNodeInfo", note: "templates are complete"}
	c.templates = map[string]*v1.Node{}
	for _, m := range c.groups {
		answer, ok := try(c, l, optionally, fmt.Sprintf("group %q: ", m.GetId()), c.server.NodeGroupTemplateNodeInfo, &protocol.NodeGroupTemplateNodeInfoRequest{Id: m.GetId()})
		if !ok {
			continue
		}
		n, err := template(answer)
		if err != nil {
			l.wrongly("group %q: %v", m.GetId(), err)
			continue
		}
		g := nodegroup.Group{ID: m.GetId(), Template: n}
		if err := g.Validate(); err != nil {
			l.wrongly("%v", err)
		}
		c.templates[m.GetId()] = n
	}
	if l.left {
		l.note = "a group without nodes can't be scaled up"
	}
	c.print(l)
}

// readOptions reads the options that replace flags for a group.
func (c *check) readOptions() {
	l := &line{call: "NodeGroupGetOptions"}
	for _, g := range c.groups {
		answer, ok := try(c, l, optionally, fmt.Sprintf("group %q: ", g.GetId()), c.server.NodeGroupGetOptions, &protocol.NodeGroupAutoscalingOptionsRequest{Id: g.GetId(), Defaults: someDefaults()})
		if !ok {
			continue
		}
		o, err := options(answer.GetNodeGroupAutoscalingOptions())
		if err == nil {
			err = o.Validate()
		}
		if err != nil {
			l.wrongly("group %q: %v", g.GetId(), err)
		}
	}
	if l.left {
		l.note = "the autoscaler's flags apply to all groups"
	}
	c.print(l)
}

// prices asks for the price of one hour and of two: a price that falls as the time grows isn't
// one of a period, which is what the call is about.
func (c *check) prices() {
	l := &line{call: "PricingNodePrice"}
	now := time.Now()
	for _, g := range c.groups {
		n := c.templates[g.GetId()]
		if n == nil {
			continue
		}
		var prices [2]float64
		for i := range prices {
			answer, ok := try(c, l, optionally, fmt.Sprintf("template of group %q: ", g.GetId()), c.server.PricingNodePrice, priceRequest(n, now, time.Duration(i+1)*time.Hour))
			if !ok {
				break
			}
			if prices[i] = answer.GetPrice(); !(prices[i] >= 0) || math.IsInf(prices[i], 1) {
				l.wrongly("template of group %q: price is %v; it must be a number of at least 0", g.GetId(), prices[i])
			} else if prices[1] < prices[0] && i == 1 {
				l.wrongly("template of group %q: an hour costs %v and two cost %v; two must cost no less", g.GetId(), prices[0], prices[1])
			}
		}
	}
	if l.left {
		l.note = "the expander price can't distinguish groups"
	}
	if l.calls == 0 {
		l.note = "there is no template to query the price of"
	}
	c.print(l)
}

// gpus makes the calls that Berth doesn't rely on: it tells GPUs by their resources.
func (c *check) gpus() {
	pods := &line{call: "PricingPodPrice", note: "Berth does not call it"}
	if raw, err := (&v1.Pod{}).Marshal(); err == nil {
		r := priceRequest(&v1.Node{}, time.Now(), time.Hour)
		try(c, pods, optionally, "", c.server.PricingPodPrice, &protocol.PricingPodPriceRequest{PodBytes: raw, StartTimestamp: r.StartTimestamp, EndTimestamp: r.EndTimestamp})
		pods.wrong = ""
	}
	c.print(pods)
	label := &line{call: "GPULabel", note: "Berth does not call it"}
	try(c, label, optionally, "", c.server.GPULabel, &protocol.GPULabelRequest{})
	label.wrong = ""
	c.print(label)
	kinds := &line{call: "GetAvailableGPUTypes", note: "Berth does not call it"}
	try(c, kinds, optionally, "", c.server.GetAvailableGPUTypes, &protocol.GetAvailableGPUTypesRequest{})
	kinds.wrong = ""
	c.print(kinds)
}
