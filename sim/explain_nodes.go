package sim

// This file explains the nodes of a world at a moment.

import (
	"errors"
	"fmt"
	"time"

	"github.com/berthproject/berth/core"
)

// ExplainedNode is the explanation of a node, with its virtual time.
type ExplainedNode struct {
	At time.Duration `json:"at"` // since the beginning
	core.NodeExplanation
}

// ExplainNode returns where a node stands now; an error says how to list those that there are.
func (w *World) ExplainNode(name string) (*ExplainedNode, error) {
	x, ok := w.berth.core().ExplainNode(name)
	if !ok {
		return nil, fmt.Errorf("there is no node %q now; --explain-nodes lists how many there are, with an example of each kind", name)
	}
	return &ExplainedNode{w.now, x}, nil
}

// ExplainedNodes sums up all nodes, with their virtual time.
type ExplainedNodes struct {
	At time.Duration `json:"at"` // since the beginning
	core.NodesExplanation
}

// ExplainNodes sums up where the nodes stand now.
func (w *World) ExplainNodes() (*ExplainedNodes, error) {
	x, ok := w.berth.core().ExplainNodes()
	if !ok {
		return nil, errors.New("the scenario has no autoscaler: no node is removed, nor kept")
	}
	return &ExplainedNodes{w.now, x}, nil
}
