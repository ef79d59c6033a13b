package nodedeletion

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/draining"
)

// The states of a deletion, each a type that holds what exists in that state and
// nothing else. They are values: a transition sets a new one (Machine.set), and a change within
// a state assigns one to deletion.state. doc.go has the table.

// deletion is a node on its way out.
type deletion struct {
	group string // ID of its node group
	marking
	why string // why the node goes; once the provider has failed, why it stays
	// homes are the pods for whose replacements the plan has found room.
	homes map[types.UID]bool
	// with is what the nodes have in common whose pods leave together with its own; "" for none.
	with string
	// interrupted says that the cloud is about to take the node: it can't be recalled, and waits for no
	// other node.
	interrupted bool
	// changed is when the API showed something new of the node or its pods that it hasn't
	// been looked at since; zero for never.
	changed time.Time
	// instance is the provider ID of the machine that the provider was asked to delete. It is
	// "" before the provider is asked, when the node has none, and when the node stays.
	instance string
	state    state
}

// homesOf returns the pods of a removal.
func homesOf(r *autoscaler.Removal) map[types.UID]bool {
	out := make(map[types.UID]bool, len(r.Homes))
	for _, h := range r.Homes {
		out[h.Pod] = true
	}
	return out
}

// drains reports whether pods have to be evicted for the node to go.
func (d *deletion) drains() bool { return len(d.homes) > 0 }

// state is one of the types below.
type state interface {
	String() string
	// due returns when the deletion goes on without an input; zero for never.
	due(cfg *Config) time.Time
}

type (
	// tainting: the taint is in the state and is being written to the API.
	tainting struct{}

	// tainted: the API has the taint. The node gets some time for what was decided
	// about it elsewhere before the taint was seen there.
	tainted struct{ since time.Time }

	// resumed: a process before this one has put the taint there.
	resumed struct{ since time.Time }

	// drainingPods: pods are asked to leave, and waited for.
	drainingPods struct{ *draining.Drain }

	// delayed: all pods are gone; annotations ask to wait.
	delayed struct{ since time.Time }

	// batched: the provider is asked together with others of the group, or when all of an
	// atomic group are batched: until is zero before that is known. held is when it waits no
	// longer for pods that are being bound to the node; zero before it has waited for one.
	batched struct{ until, held time.Time }

	// deleting: the provider was asked to delete the node's instance.
	deleting struct{ called }

	// inDoubt: the provider says that it failed. Perhaps the node was deleted and only
	// the answer was lost.
	inDoubt struct{ called }

	// unanswered: the call had no answer, or one before it. Perhaps the provider has carried
	// it out, still does, or never got it. since is when the last call ended.
	unanswered struct {
		called
		since time.Time
	}

	// deleted: the provider has deleted the instance; the API is to show that the node
	// is gone.
	deleted struct {
		since time.Time // of the deletion, or of the last time that it was looked for
		// shown is what the API has shown of the node since; nil for nothing.
		shown *cluster.NodeInfo
		// listed says that the provider's last list has the node's instance, although
		// it was deleted. Only ever true when shown is set.
		listed bool
		// lingers reports that the ledger has the reason why the API may still show the node.
		lingers bool
	}

	// untainting: the node stays; the taint is being taken off in the API.
	untainting struct{}

	// untaintFailed: the node stays; the taint could not be taken off.
	untaintFailed struct{ since time.Time }
)

// called is what is known of a node while the outcome of its deletion is open or in
// doubt.
type called struct {
	node *cluster.NodeInfo // as the API showed it last; never nil
	gone bool              // the API has shown since that the node is gone
	// lowered says that the group's assumed target is lower by this node. It isn't for
	// a node whose instance was being deleted before the node was shown: there the
	// outcome of the instance's deletion lowers it. Nor is it for a node whose instance
	// is gone: the provider's target doesn't include it.
	lowered bool
	// unanswered is how many calls for the instance have had no answer.
	unanswered int
}

func (tainting) due(*Config) time.Time        { return time.Time{} }
func (s tainted) due(cfg *Config) time.Time   { return s.since.Add(cfg.DeleteDelayAfterTaint) }
func (s resumed) due(cfg *Config) time.Time   { return s.since.Add(cfg.DeleteDelayAfterTaint) }
func (s drainingPods) due(*Config) time.Time  { return s.Due() }
func (s delayed) due(cfg *Config) time.Time   { return s.since.Add(cfg.DeletionDelayTimeout) }
func (deleting) due(*Config) time.Time        { return time.Time{} }
func (inDoubt) due(*Config) time.Time         { return time.Time{} }
func (unanswered) due(*Config) time.Time      { return time.Time{} }
func (s deleted) due(*Config) time.Time       { return s.since.Add(lingerTime) }
func (untainting) due(*Config) time.Time      { return time.Time{} }
func (s untaintFailed) due(*Config) time.Time { return s.since.Add(untaintRetry) }

func (s batched) due(*Config) time.Time {
	if !s.held.IsZero() {
		return s.held
	}
	return s.until
}

func (tainting) String() string       { return "tainting" }
func (tainted) String() string        { return "tainted" }
func (resumed) String() string        { return "resumed" }
func (s drainingPods) String() string { return "draining" + s.Drain.String() }
func (delayed) String() string        { return "delayed" }
func (batched) String() string        { return "batched" }
func (deleting) String() string       { return "deleting" }
func (inDoubt) String() string        { return "in doubt" }
func (unanswered) String() string     { return "unanswered" }
func (deleted) String() string        { return "deleted" }
func (untainting) String() string     { return "untainting" }
func (untaintFailed) String() string  { return "untaint failed" }

// due returns when a deletion is looked at without a further input; zero for never.
func (d *deletion) due(cfg *Config) time.Time {
	switch d.state.(type) {
	case drainingPods, delayed, batched:
		return lifecycle.Earliest(d.changed, d.state.due(cfg))
	}
	return d.state.due(cfg)
}

// planned reports whether the group's assumed target still includes the node, which is on its
// way out.
func (d *deletion) planned() bool {
	switch d.state.(type) {
	case tainting, tainted, resumed, drainingPods, delayed, batched:
		return true
	}
	return false
}

// stays reports whether the deletion has failed.
func (d *deletion) stays() bool {
	switch d.state.(type) {
	case untainting, untaintFailed:
		return true
	}
	return false
}

// outOfState returns what the API last showed of a node that is kept out of the
// cluster state; nil for a node that is in the state, and for one that the API hasn't
// shown since it was deleted.
func (d *deletion) outOfState() *cluster.NodeInfo {
	switch s := d.state.(type) {
	case deleting:
		return s.node
	case inDoubt:
		return s.node
	case unanswered:
		return s.node
	case deleted:
		return s.shown
	}
	return nil
}

// asked reports whether the provider was asked to delete the node and its answer is
// open, missing or in doubt.
func (d *deletion) asked() (called, bool) {
	switch s := d.state.(type) {
	case deleting:
		return s.called, true
	case inDoubt:
		return s.called, true
	case unanswered:
		return s.called, true
	}
	return called{}, false
}
