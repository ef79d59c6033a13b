package externalgrpc

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// This file tells of which group a node is. A node's group is the one that lists its instance.
// The server is asked for a node that no group lists (NodeGroupForNode), when the groups are read:
// until then it is in no group. GroupOf asks nobody.

const (
	// answerHolds is how long the server's answer for a node counts.
	answerHolds = time.Minute
	// nodesKept is for how many readings of the groups a node is kept that nobody asks for.
	nodesKept = 3
)

// nodes are those of the cluster, and what is known of their groups. GroupOf is called for each change of a
// node, so it never waits for the server.
type nodes struct {
	mu              sync.Mutex
	lists           uint64                 // how often the groups were read; guarded by mu
	groupByInstance map[string]string      // the group of each instance, by its ID; guarded by mu
	groups          map[string]*knownGroup // the groups that were listed last; read only, guarded by mu
	byName          map[string]*node       // guarded by mu
}

// node is a node that somebody has asked for.
type node struct {
	obj   *v1.Node // as it was last
	asked uint64   // nodes.lists when somebody asked for it last
	// group is the server's answer of answered, which is zero when there is none. It counts while
	// the group is listed.
	group    string
	answered time.Time
}

func newNodes() nodes { return nodes{groupByInstance: map[string]string{}, byName: map[string]*node{}} }

// GroupOf implements nodegroup.Provider.
func (c *Client) GroupOf(n *v1.Node) string { return c.nodes.groupOf(n) }

func (s *nodes) groupOf(obj *v1.Node) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byName[obj.Name]
	if n == nil || n.obj.Spec.ProviderID != obj.Spec.ProviderID {
		n = &node{} // another machine may have the name of one that is gone
		s.byName[obj.Name] = n
	}
	n.obj, n.asked = obj, s.lists
	if group, ok := s.listing(obj); ok {
		return group
	}
	if s.groups[n.group] == nil {
		return ""
	}
	return n.group
}

// listing returns the group that lists a node's instance. The caller holds mu.
func (s *nodes) listing(obj *v1.Node) (group string, ok bool) {
	if id := obj.Spec.ProviderID; id != "" {
		if group, ok = s.groupByInstance[id]; ok {
			return group, true
		}
	}
	group, ok = s.groupByInstance[obj.Name]
	return group, ok
}

// listed records the group of each instance, by its ID, and the groups by theirs. Nodes for which
// nobody has asked for some readings are forgotten: they are gone.
func (s *nodes) listed(of map[string]string, groups map[string]*knownGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groupByInstance, s.groups = of, groups
	s.lists++
	for name, n := range s.byName {
		if n.asked+nodesKept < s.lists {
			delete(s.byName, name)
		}
	}
}

// unknown returns the nodes that no group lists and for which the server has no answer that
// counts still.
func (s *nodes) unknown(now time.Time) []*v1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*v1.Node
	for _, n := range s.byName {
		if _, ok := s.listing(n.obj); !ok && (n.answered.IsZero() || now.Sub(n.answered) >= answerHolds) {
			out = append(out, n.obj)
		}
	}
	return out
}

// answer records the server's answer for a node, unless the node has become another meanwhile.
func (s *nodes) answer(obj *v1.Node, group string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.byName[obj.Name]; n != nil && n.obj.Spec.ProviderID == obj.Spec.ProviderID {
		n.group, n.answered = group, at
	}
}

// message returns the message of an instance, with what is known of its node. One that isn't a
// node is named after its instance, as Cluster Autoscaler does.
func (s *nodes) message(in *nodegroup.Instance) *protocol.ExternalGrpcNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.byName[in.Node]; n != nil && (in.ID == "" || in.ID == n.obj.Spec.ProviderID || in.ID == n.obj.Name) {
		return nodeMessage(n.obj)
	}
	m := &protocol.ExternalGrpcNode{ProviderID: in.ID, Name: in.Node}
	if m.Name == "" {
		m.Name = in.ID
	}
	return m
}

// askForNodes asks the server for the group of nodes that no group lists. When it doesn't answer,
// the other nodes are left for the next time. The caller holds reading.
func (c *Client) askForNodes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxReading*c.timeout)
	defer cancel()
	now := c.now()
	unknown := c.nodes.unknown(now)
	var mu sync.Mutex
	var failed error
	stray := ""
	parallel(len(unknown), func(i int) {
		if ctx.Err() != nil {
			return
		}
		answer, err := invoke(ctx, c, "NodeGroupForNode", c.server.NodeGroupForNode, &protocol.NodeGroupForNodeRequest{Node: nodeMessage(unknown[i])})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if failed == nil {
				failed = fmt.Errorf("node %s: %w", unknown[i].Name, err)
			}
			if noAnswer(err) {
				cancel()
			}
			return
		}
		group := answer.GetNodeGroup().GetId()
		if c.known[group] == nil && group != "" && stray == "" {
			stray = fmt.Sprintf("NodeGroupForNode: node %s is in group %q, which NodeGroups does not list; until it does, the node counts as in no group", unknown[i].Name, group)
		}
		c.nodes.answer(unknown[i], group, now)
	})
	if failed != nil {
		stray = failed.Error()
	}
	c.warn("NodeGroupForNode", stray)
}
