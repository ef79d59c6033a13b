// Package expander chooses which node group grows for pending pods, among several that
// could: Cluster Autoscaler's expanders, and chains of them.
//
// A plan chooses in rounds: each has the options that are left, and one of them becomes
// part of the plan. A chain asks one strategy after the other (chain.go); each narrows
// the options down to those that it holds to be best. Strategies that read nothing but
// their options are here, and priority, whose configuration its caller provides; grpc,
// which asks a server, is edge/expander's.
package expander

import (
	"iter"
	"math/bits"

	"github.com/berthproject/berth/core/cluster"
)

// Option is what growing one node group, or several similar ones together, would bring.
// The options of a round are sorted by the ID of their group, which no two share.
type Option struct {
	// Group is the one that the option is known by. Its price and template stand for
	// all nodes but those of Similar.
	Group *cluster.NodeGroup
	// Similar are other groups that would grow with it, to balance their sizes; may be
	// empty.
	Similar []Share
	Nodes   int  // new ones in all, those of Similar included; at least 1
	Pods    Pods // that would be placed on them, in order
	// Allocatable is what one of its nodes has; nil where the group's template says it. A group that
	// grows after a live node may have no template of the provider's.
	Allocatable *cluster.Resources
	// Wasted is the share of the new nodes' CPU plus that of their memory which the pods
	// leave unused: 0 to 2.
	Wasted float64
}

// Pods are pods in their order, in pieces: a hundred options may have the same million
// pods, and share them.
type Pods [][]*cluster.Pod

// Add adds a piece, which isn't changed from then on.
func (p *Pods) Add(pods []*cluster.Pod) {
	if len(pods) > 0 {
		*p = append(*p, pods)
	}
}

// Len returns how many pods there are, in O(pieces).
func (p Pods) Len() (n int) {
	for _, piece := range p {
		n += len(piece)
	}
	return n
}

// All goes through the pods.
func (p Pods) All() iter.Seq[*cluster.Pod] {
	return func(yield func(*cluster.Pod) bool) {
		for _, piece := range p {
			for _, pod := range piece {
				if !yield(pod) {
					return
				}
			}
		}
	}
}

// Share is how many of an option's nodes one more group would get.
type Share struct {
	Group *cluster.NodeGroup
	Nodes int
}

// Round says which choice is being made. The options and the round determine what the
// strategies of this package choose.
type Round struct {
	Seed    uint64 // as configured
	Request uint64 // number of the plan's request
	Number  int    // of the round in its plan, from 0
	Nodes   int    // of the cluster, when the plan was begun
	Schema  *cluster.Schema
	// Answers, when not nil, gets what each strategy has left that a chain was provided
	// with, in the order in which they were asked: the IDs of the groups. What decided
	// it isn't among the options, so a replay needs it.
	Answers *[][]string
	// By, when not nil, gets the name of the strategy after which one option was left:
	// RandomName when several were and one was drawn, "" when there was one from the start.
	By *string
}

// Strategy narrows options down.
type Strategy interface {
	// Best returns those of the options that are best, in their order. It changes
	// neither the options nor the slice. Of some it returns at least one; but for a
	// strategy that asks somebody outside, who may forbid them all.
	Best(r *Round, options []Option) []Option
}

// draw returns a number from 0 to n-1, each as likely as the others over many rounds.
// It depends on the seed and on which round of which request it is.
func (r *Round) draw(n int) int {
	h := mix(mix(mix(r.Seed)^r.Request) ^ uint64(r.Number))
	i, _ := bits.Mul64(h, uint64(n))
	return int(i)
}

// mix is one step of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
