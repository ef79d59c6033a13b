package externalgrpc

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// This file is the part of Check that changes a group: it orders one node, gives it up, orders it
// again, waits for its instance and deletes that. In the end the group is as large as it was.

// pollEvery is how often the server is asked whether something has come about.
const pollEvery = time.Second

// change makes a group larger and smaller again.
func (c *check) change(id string) {
	grow, lower, del := &line{call: "NodeGroupIncreaseSize"}, &line{call: "NodeGroupDecreaseTargetSize"}, &line{call: "NodeGroupDeleteNodes"}
	c.changeGroup(id, grow, lower, del)
	for _, l := range []*line{grow, lower, del} {
		if l.calls == 0 && l.note == "" {
			l.note = "it depends on the check before"
		}
		c.print(l)
	}
}

// changeGroup orders a node, lowers the target again, which the server may refuse, and deletes the node.
// It ends at the first call that goes wrong: what comes after it would say nothing.
func (c *check) changeGroup(id string, grow, lower, del *line) {
	var limit int
	for _, g := range c.groups {
		if g.GetId() == id {
			limit = int(g.GetMaxSize())
		}
	}
	before := c.targets[id]
	if before >= limit {
		grow.wrongly("group %q does not exist, or its targetSize %d is at its maxSize %d; choose one that can be scaled up", id, before, limit)
		return
	}
	known := map[string]bool{}
	for _, in := range c.instances[id] {
		known[in.GetId()] = true
	}
	if !c.grow(grow, id, before) {
		return
	}
	// Whether there is an instance already is the server's business: it may refuse, and the target
	// is as it was then.
	if _, err := attempt(c, lower, c.server.NodeGroupDecreaseTargetSize, &protocol.NodeGroupDecreaseTargetSizeRequest{Id: id, Delta: -1}); err != nil {
		lower.note = "refused, since the instance exists: " + callError(lower.call, err).Error()
		c.expect(lower, id, before+1, "after it was refused")
	} else {
		lower.note = "the target is what it was before"
		c.expect(lower, id, before, "after it was lowered by 1")
		if lower.wrong != "" || !c.grow(grow, id, before) {
			return
		}
	}
	c.deleteNew(del, id, known, before)
}

// deleteNew waits for an instance that wasn't known, deletes it, and waits until it is gone.
func (c *check) deleteNew(del *line, id string, known map[string]bool, before int) {
	about := fmt.Sprintf("group %q: ", id)
	instance := c.await(del, func(l *line) *protocol.Instance {
		for _, in := range c.listed(l, id) {
			if !known[in.GetId()] {
				return in
			}
		}
		return nil
	})
	if instance == nil {
		del.wrongly("%sno new instance was listed within %s; list an instance as soon as it is requested, or set --wait to the time that this takes", about, c.what.Wait)
		return
	}
	node := &protocol.ExternalGrpcNode{ProviderID: instance.GetId(), Name: instance.GetId()}
	del.calls, del.slowest = 0, 0 // so far it was listed
	if _, ok := try(c, del, required, about, c.server.NodeGroupDeleteNodes, &protocol.NodeGroupDeleteNodesRequest{Id: id, Nodes: []*protocol.ExternalGrpcNode{node}}); !ok {
		del.wrong += fmt.Sprintf("; the request had its ID only, since check knows no nodes (Berth sends labels and annotations, too); delete %q manually if it exists", instance.GetId())
		return
	}
	c.expect(del, id, before, "after one node was deleted")
	del.note = fmt.Sprintf("instance %s was created and deleted", instance.GetId())
	gone := c.await(&line{}, func(l *line) *protocol.Instance {
		for _, in := range c.listed(l, id) {
			if in.GetId() == instance.GetId() && in.GetStatus().GetInstanceState() != protocol.InstanceStatus_instanceDeleting {
				return nil
			}
		}
		return instance
	})
	if gone == nil {
		del.wrongly("%sinstance %q is still listed unchanged %s after its deletion; stop listing it, or list it as instanceDeleting", about, instance.GetId(), c.what.Wait)
	}
}

// grow orders one node.
func (c *check) grow(l *line, id string, before int) bool {
	if _, ok := try(c, l, required, fmt.Sprintf("group %q: ", id), c.server.NodeGroupIncreaseSize, &protocol.NodeGroupIncreaseSizeRequest{Id: id, Delta: 1}); !ok {
		return false
	}
	l.note = "the target is raised at once"
	return c.expect(l, id, before+1, "after scaling up by one node")
}

// expect checks that a group's target is what it must be now, and reports whether it is.
func (c *check) expect(l *line, id string, want int, when string) bool {
	reading := &line{call: "NodeGroupTargetSize"}
	got, ok := c.target(reading, id)
	if !ok {
		l.wrongly("%s", reading.wrong)
		return false
	}
	if got != want {
		l.wrongly("group %q: targetSize is %d %s, and must be %d when the call returns", id, got, when, want)
	}
	return got == want
}

// await asks until there is an answer, nil when there is none in time. Each time it calls Refresh before, as Berth does
// when it reads the groups: servers may answer from a cache, and look for what is new only then.
func (c *check) await(l *line, ask func(*line) *protocol.Instance) *protocol.Instance {
	for until := time.Now().Add(c.what.Wait); ; {
		_, _ = attempt(c, &line{}, c.server.Refresh, &protocol.RefreshRequest{}) // a failure was found when the check began, or shows in the answer
		if in := ask(l); in != nil || l.wrong != "" || time.Now().After(until) {
			return in
		}
		select {
		case <-c.ctx.Done():
			return nil
		case <-time.After(pollEvery):
		}
	}
}

// someDefaults are options of flags, to ask with.
func someDefaults() *protocol.NodeGroupAutoscalingOptions {
	ratio, daemons := 0.5, false
	minutes := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }
	return optionsMessage(&cluster.GroupOptions{UtilizationThreshold: &ratio, GPUUtilizationThreshold: &ratio, UnneededTime: minutes(10), UnreadyTime: minutes(20), ProvisionTime: minutes(15), StartupTime: minutes(15), IgnoreDaemonSetsUtilization: &daemons},
		&protocol.NodeGroupAutoscalingOptions{ScaleDownUnneededDuration: durationpb.New(0)})
}
