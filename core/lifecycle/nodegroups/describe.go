package nodegroups

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/lifecycle"
)

// Description is what is known of a node group at one moment, for people.
type Description struct {
	ID       string
	Min, Max int
	// Target is how many nodes the group is assumed to have: what the provider said last,
	// orders and deletions that it hasn't answered included.
	Target int
	// Coming is how many of them were ordered and aren't usable yet.
	Coming int
	// Unanswered is how many were ordered and have no answer of the provider's yet, or will have
	// none.
	Unanswered int
	// LastScaleUp is when nodes were ordered last, zero for never.
	LastScaleUp time.Time
	// MaxOrder is how many nodes one order may have after one that failed, 0 for any number.
	MaxOrder int
	// TemplateError is why the provider can't say what a new node looks like, "" when it can.
	TemplateError string
	Backoff       *Backoff // nil when the group may be asked for nodes
	// Instances are those that aren't nodes, by ID.
	Instances []Instance
}

// Backoff says why a node group isn't asked for nodes.
type Backoff struct {
	Class  nodegroup.ErrorClass // of the failure
	Code   string               // the kind of the failure (step.ScaleUpFailure)
	Reason string               // in the provider's words, or Berth's own
	Until  time.Time
}

// Instance is an instance that the provider lists and the API doesn't show as a node.
type Instance struct {
	ID    string    `json:"id"`
	Node  string    `json:"node,omitempty"` // "" when the provider doesn't know its name
	State string    `json:"state"`          // coming, late, deleting, in doubt, unanswered or deleted, as doc.go has them
	Since time.Time `json:"since"`          // when it was first listed; of a deleted one, when it was deleted
}

// Describe returns what is known of a group; ok is false when the provider doesn't list it.
// It costs O(nodes).
func (m *Machine) Describe(t *lifecycle.Turn, id string) (d Description, ok bool) {
	in := t.State.Group(id)
	if in == nil {
		return Description{}, false
	}
	d = Description{ID: id, Min: in.Min, Max: in.Max, Target: in.Target, TemplateError: in.TemplateError, Coming: m.Coming(t).Of(id)}
	if g := m.groups[id]; g != nil {
		d.Unanswered, d.MaxOrder = g.unanswered+g.doubt.nodes(), g.maxOrder
		if g.asked != nil {
			d.LastScaleUp = g.asked.At
		}
	}
	d.Backoff = m.BackingOff(t.Now, id)
	for _, i := range m.instances.ids(id) {
		x := m.instances.get(i)
		d.Instances = append(d.Instances, Instance{ID: i, Node: x.node, State: x.state.String(), Since: x.since})
	}
	return d, true
}

// BackingOff returns why a group isn't asked for nodes now, nil when it may be.
func (m *Machine) BackingOff(now time.Time, id string) *Backoff {
	if g := m.groups[id]; g != nil {
		if class, b := g.backoffs.longest(); b.active(now) {
			return &Backoff{Class: class, Code: b.code, Reason: b.reason, Until: b.until}
		}
	}
	return nil
}
