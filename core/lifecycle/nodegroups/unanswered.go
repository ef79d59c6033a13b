package nodegroups

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file settles orders that had no answer by what the provider lists next. What must hold: no
// group is ordered beyond its maximum, even if every such order is carried out late.

// lateCall is how long an order or a deletion that had no answer may still be carried out, though the
// list after it doesn't show it.
const lateCall = 2 * time.Minute

// doubt is the orders of one group that had no answer. The zero value has none.
type doubt struct {
	orders []unansweredOrder // whose outcome no list has shown yet, in the order in which they were placed
	late   []lateNodes       // of orders that the list doesn't show, or perhaps doesn't
	inRow  int               // orders without an answer that came to nothing since the last that was taken
}

// unansweredOrder is an order that had no answer. Its Growth is the zero value when this process
// doesn't know the order.
type unansweredOrder struct {
	Growth
	nodes int
	why   string // there was no answer
}

// lateNodes are nodes that may still be ordered until a time.
type lateNodes struct {
	nodes int
	until time.Time
}

func (d *doubt) add(o unansweredOrder) { d.orders = append(d.orders, o) }

// nodes returns how many nodes were ordered without an answer and aren't settled.
func (d *doubt) nodes() (n int) {
	for i := range d.orders {
		n += d.orders[i].nodes
	}
	return n
}

// mayCome returns how many nodes that the group's target doesn't include may still be ordered, or
// were since the last list.
func (d *doubt) mayCome() (n int) {
	for _, l := range d.late {
		n += l.nodes
	}
	return n
}

// mayBeLate keeps nodes free below the maximum for orders that may still be carried out.
func (d *doubt) mayBeLate(now time.Time, nodes int) {
	if nodes > 0 {
		d.late = append(d.late, lateNodes{nodes, now.Add(lateCall)})
	}
}

// groupGone settles the orders of a group that is gone: no list will show what became of them.
func (d *doubt) groupGone(now time.Time) {
	d.mayBeLate(now, d.nodes())
	d.orders, d.inRow = nil, 0
}

// settleOrders compares the target that the provider lists with the assumed one, which includes
// all orders that had no answer. The group has fewer by those that weren't carried out; calls of a
// group are made one after the other, so the latest orders are the first to be missing.
func (m *Machine) settleOrders(t *lifecycle.Turn, listed *nodegroup.Group) {
	g := m.group(listed.ID)
	g.doubt.late = slices.DeleteFunc(g.doubt.late, func(l lateNodes) bool { return !t.Now.Before(l.until) }) // the list shows those that came
	if len(g.doubt.orders) == 0 {
		return
	}
	short := 0
	if in := t.State.Group(listed.ID); in != nil {
		short = in.Target - m.assumed(listed)
	}
	late := max(short, 0)
	if g.unanswered > 0 { // the list may show some of those instead
		late = g.doubt.nodes()
	}
	g.doubt.mayBeLate(t.Now, min(late, g.doubt.nodes()))
	orders := g.doubt.orders
	g.doubt.orders = nil
	for _, o := range slices.Backward(orders) {
		if short < o.nodes {
			m.orderTaken(t, listed.ID, o.Growth, o.nodes)
			t.Ready.SettledScaleUps = append(t.Ready.SettledScaleUps, step.ScaleUpDone{Group: listed.ID, Nodes: o.nodes})
			continue
		}
		short -= o.nodes
		m.orderVanished(t, listed.ID, o)
	}
}

// assumed returns the target that the state has of a group when the provider lists it.
func (m *Machine) assumed(g *nodegroup.Group) int {
	return g.Target + m.group(g.ID).unanswered - m.deletions.Unanswered(g.ID)
}

// orderVanished records that an order which had no answer came to nothing, as far as the list
// shows. The first such order in a row is no failure; the provider may still carry it out.
func (m *Machine) orderVanished(t *lifecycle.Turn, id string, o unansweredOrder) {
	d := &m.group(id).doubt
	why := fmt.Sprintf("the provider did not answer, and lists no more nodes than before: %s", o.why)
	if d.inRow++; d.inRow > 1 {
		m.orderFailed(t, id, o.nodes, nodegroup.OtherError, why)
		return
	}
	m.launches.OrderRefused(id, o.nodes)
	t.Decide(step.Decision{Kind: step.ScaleUpUnanswered, Group: id, Nodes: o.nodes, Reason: why})
}
