package observe

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
)

// This file serves /debug/explain: why a pod is where it is, where pod groups and node groups stand, and
// why nodes stay.

// Explained is what /debug/explain answers of a pod: where it stands, which nodes would do
// and which not, and what was decided about it.
type Explained struct {
	// At is when the core was asked.
	At time.Time `json:"at"`
	explain.Explanation
	// Decisions are the last about the pod, the oldest first.
	Decisions []step.Decision `json:"decisions,omitempty"`
}

// ExplainedPodGroup is what /debug/explain answers of a pod group.
type ExplainedPodGroup struct {
	At time.Time `json:"at"`
	explain.PodGroupExplanation
	// Decisions are the last about the group as a whole, the oldest first.
	Decisions []step.Decision `json:"decisions,omitempty"`
}

// ExplainedGroup is what /debug/explain answers of a node group.
type ExplainedGroup struct {
	At time.Time `json:"at"`
	explain.GroupExplanation
	// Decisions are the last about the group, the oldest first.
	Decisions []step.Decision `json:"decisions,omitempty"`
}

// ExplainedGroups is what /debug/explain answers of all node groups, by name. It has no
// decisions: those are answered for one group at a time.
type ExplainedGroups struct {
	At     time.Time                  `json:"at"`
	Groups []explain.GroupExplanation `json:"groups"`
}

// ExplainedNode is what /debug/explain answers of a node.
type ExplainedNode struct {
	At time.Time `json:"at"`
	explain.NodeExplanation
	// Decisions are the last about the node's removal, the oldest first.
	Decisions []step.Decision `json:"decisions,omitempty"`
}

// ExplainedNodes is what /debug/explain answers of all nodes together.
type ExplainedNodes struct {
	At time.Time `json:"at"`
	explain.NodesExplanation
}

// questionTimeout is how long a question waits for the core. A Step takes far less,
// unless the loop waits for an API server that can't keep up.
const questionTimeout = 10 * time.Second

// noGroups is why nothing is known of any node group.
const noGroups = "no node groups are known: Berth only schedules, or its provider has not listed its groups yet"

// onlySchedules is why nothing is known of nodes' removal.
const onlySchedules = "Berth only schedules here and does not remove nodes"

// explain serves /debug/explain?pod=NAMESPACE/NAME, ?podgroup=NAMESPACE/NAME, ?group=NAME, ?groups,
// ?node=NAME, ?nodes and ?names=KIND.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	answerTo, err := s.question(query)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	s.answerTo(w, r, answerTo)
}

// tooLong returns an error about a parameter that is longer than any name of its kind: whoever may
// only look must not make Berth compare such with all names.
func tooLong(query url.Values) error {
	for _, kind := range []string{"pod", "podgroup"} {
		for part := range strings.SplitSeq(query.Get(kind), "/") {
			if err := door.NameError(kind, part); err != nil {
				return err
			}
		}
	}
	return cmp.Or(door.NameError("node", query.Get("node")), door.GroupNameError(query.Get("group")),
		door.NameError("kind", query.Get("names")), door.GroupNameError(query.Get("prefix")))
}

// answerTo answers a request with what the core of the leader says between two Steps. Requests are
// answered one at a time, so that many of them take neither the core nor the processors. An instance
// that stands by answers 503 at once: its core may lag behind, and it has no plans.
func (s *Server) answerTo(w http.ResponseWriter, r *http.Request, question func(*core.Core) reply) {
	if !s.leader.Load() {
		fail(w, http.StatusServiceUnavailable, "this instance is standing by; query the leader")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), questionTimeout)
	defer cancel()
	x, busy := s.inTurn(ctx, question)
	switch {
	case busy != "":
		fail(w, http.StatusServiceUnavailable, busy)
	case x.missing != "":
		fail(w, http.StatusNotFound, x.missing)
	default:
		answer(w, http.StatusOK, x.value)
	}
}

// inTurn puts a question to the core when no other is being answered. The turn ends before the
// answer is written: whoever asked may read it as slowly as he likes. busy says why there is no
// answer, "" when there is one.
func (s *Server) inTurn(ctx context.Context, question func(*core.Core) reply) (x reply, busy string) {
	if !s.takesTurn(ctx) {
		return x, "other queries are being answered; try again"
	}
	defer func() { <-s.answering }()
	got := make(chan reply, 1)
	if !s.ask(ctx, func(c *core.Core) { got <- question(c) }) {
		return x, "the core is busy; try again"
	}
	x = <-got
	if x.missing != "" {
		x.missing = x.why()
	}
	return x, ""
}

// takesTurn waits until no other request is being answered, and reports whether that was before ctx
// was done.
func (s *Server) takesTurn(ctx context.Context) bool {
	select {
	case s.answering <- struct{}{}:
		return true
	default:
	}
	select {
	case s.answering <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// reply is what there is to say about what was asked for: a value, or why there is none. It is made in the
// goroutine that owns the core; whatever takes long of it comes later, in the request's.
type reply struct {
	value   any
	missing string // why there is nothing; "" when there is
	// name is what was asked for, and names are those that may have been meant; none when there is
	// something.
	name  string
	names []string
}

// why returns why there is nothing, with the names that are most like what was asked for. It isn't
// for the goroutine that owns the core: names may be many.
func (r *reply) why() string {
	return r.missing + api.Similar("", r.name, r.names)
}

// question returns what answers a request, of the core between two Steps. An error says what
// can be asked.
func (s *Server) question(query url.Values) (func(*core.Core) reply, error) {
	if err := tooLong(query); err != nil {
		return nil, err
	}
	switch {
	case query.Has("names"):
		list := namesOf(query.Get("names"))
		if list == nil {
			return nil, fmt.Errorf("names is %q; it must be pods, podgroups, nodes or groups", query.Get("names"))
		}
		return func(c *core.Core) reply { return explainNames(c, list, query.Get("prefix")) }, nil
	case query.Has("groups"):
		return s.explainGroups, nil
	case query.Has("group"):
		return func(c *core.Core) reply { return s.explainGroup(c, query.Get("group")) }, nil
	case query.Has("nodes"):
		return explainNodes, nil
	case query.Has("node"):
		return func(c *core.Core) reply { return s.explainNode(c, query.Get("node")) }, nil
	}
	if group := query.Get("podgroup"); query.Has("podgroup") {
		if strings.Count(group, "/") != 1 {
			return nil, fmt.Errorf("podgroup is %q; give it as ?podgroup=NAMESPACE/NAME", group)
		}
		return func(c *core.Core) reply { return s.explainPodGroup(c, group) }, nil
	}
	pod := query.Get("pod")
	if strings.Count(pod, "/") != 1 {
		return nil, fmt.Errorf("pod is %q; give it as ?pod=NAMESPACE/NAME, or query ?podgroup=NAMESPACE/NAME, ?group=NAME, ?groups, ?node=NAME or ?nodes", pod)
	}
	return func(c *core.Core) reply { return s.explainPod(c, pod) }, nil
}

// explainPod is about a pod that the core knows, or that there are decisions about: one that has gone
// can be explained by these.
func (s *Server) explainPod(c *core.Core, pod string) reply {
	namespace, name, _ := strings.Cut(pod, "/")
	x, _ := c.View().Explain(namespace, name) // without an outcome when it isn't known
	out := Explained{At: time.Now(), Explanation: x, Decisions: s.History.Of(pod)}
	if out.Outcome == "" && len(out.Decisions) == 0 {
		return reply{missing: fmt.Sprintf("pod %s not found; it may have finished", pod)}
	}
	return reply{value: out}
}

// explainPodGroup is about one pod group, with the names of all if there is none of that name. One that
// has gone can be explained by the decisions about it.
func (s *Server) explainPodGroup(c *core.Core, group string) reply {
	namespace, name, _ := strings.Cut(group, "/")
	x, ok := c.View().ExplainPodGroup(namespace, name)
	out := ExplainedPodGroup{At: time.Now(), PodGroupExplanation: x, Decisions: s.History.OfPodGroup(group)}
	if !ok && len(out.Decisions) == 0 {
		return reply{missing: fmt.Sprintf("pod group %s not found", group), name: group, names: c.View().PodGroupNames()}
	}
	return reply{value: out}
}

func (s *Server) explainGroups(c *core.Core) reply {
	groups := c.View().ExplainGroups()
	if len(groups) == 0 {
		return reply{missing: noGroups}
	}
	return reply{value: ExplainedGroups{At: time.Now(), Groups: groups}}
}

// explainGroup is about one node group, with the names of all if there is none of that name.
func (s *Server) explainGroup(c *core.Core, name string) reply {
	if x, ok := c.View().ExplainGroup(name); ok {
		return reply{value: ExplainedGroup{At: time.Now(), GroupExplanation: x, Decisions: s.History.OfGroup(name)}}
	}
	var names []string
	for _, g := range c.View().Groups() {
		names = append(names, g.ID)
	}
	if len(names) == 0 {
		return reply{missing: noGroups}
	}
	return reply{missing: fmt.Sprintf("node group %s not found", name), name: name, names: names}
}

// explainNodes sums all nodes up.
func explainNodes(c *core.Core) reply {
	x, ok := c.View().ExplainNodes()
	if !ok {
		return reply{missing: onlySchedules}
	}
	return reply{value: ExplainedNodes{At: time.Now(), NodesExplanation: x}}
}

// explainNode is about one node, with the names of all if there is none of that name.
func (s *Server) explainNode(c *core.Core, name string) reply {
	if x, ok := c.View().ExplainNode(name); ok {
		return reply{value: ExplainedNode{At: time.Now(), NodeExplanation: x, Decisions: s.History.OfNode(name)}}
	}
	names, autoscales := c.View().NodeNames()
	switch {
	case !autoscales:
		return reply{missing: onlySchedules}
	case len(names) == 0:
		return reply{missing: fmt.Sprintf("node %s not found; there are no nodes", name)}
	}
	return reply{missing: fmt.Sprintf("node %s not found", name), name: name, names: names}
}
