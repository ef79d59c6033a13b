package sim

// This file explains the nodes of a world at a moment.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/explain"
)

// ExplainedNode is the explanation of a node, with its virtual time.
type ExplainedNode struct {
	At time.Duration `json:"at"` // since the beginning
	explain.NodeExplanation
}

// maxNamed is how many nodes an error names.
const maxNamed = 20

// ExplainNode returns where a node stands now; an error names nodes that there are.
func (w *World) ExplainNode(name string) (*ExplainedNode, error) {
	x, ok := w.berth.core().View().ExplainNode(name)
	if ok {
		return &ExplainedNode{w.now, x}, nil
	}
	names, autoscales := w.berth.core().View().NodeNames()
	switch {
	case !autoscales:
		return nil, errNoAutoscaler
	case len(names) == 0:
		return nil, fmt.Errorf("node %q not found; there are no nodes now", name)
	}
	slices.Sort(names)
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		list += ", …"
	}
	return nil, fmt.Errorf("node %q not found; the nodes now are %s", name, list)
}

var errNoAutoscaler = errors.New("the scenario has no autoscaler, so nodes are never removed")

// ExplainedNodes sums up all nodes, with their virtual time.
type ExplainedNodes struct {
	At time.Duration `json:"at"` // since the beginning
	explain.NodesExplanation
}

// ExplainNodes sums up where the nodes stand now.
func (w *World) ExplainNodes() (*ExplainedNodes, error) {
	x, ok := w.berth.core().View().ExplainNodes()
	if !ok {
		return nil, errNoAutoscaler
	}
	return &ExplainedNodes{w.now, x}, nil
}
