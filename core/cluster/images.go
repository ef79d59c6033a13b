package cluster

// This file holds container images: what a node's object says about those that it has, and
// on how many nodes each one is. Invariants:
//
//   - an image counts once for each node in the state that lists it, under each of its names;
//   - no count of 0 is kept, so that a name which no node lists any more costs nothing.

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Image is a container image on a node, under one of its names.
type Image struct {
	Name string // with a tag or a digest, as the node lists it
	Size int64  // bytes
}

// parseImages returns a node's images, one for each name of each, by name. Where two images
// have the same name, the size of the last counts, as in kube-scheduler.
func parseImages(n *v1.Node) []Image {
	if len(n.Status.Images) == 0 {
		return nil
	}
	out := make([]Image, 0, 2*len(n.Status.Images))
	for i := range n.Status.Images {
		image := &n.Status.Images[i]
		for _, name := range image.Names {
			out = append(out, Image{name, image.SizeBytes})
		}
	}
	slices.SortStableFunc(out, func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	slices.Reverse(out)
	out = slices.CompactFunc(out, func(a, b Image) bool { return a.Name == b.Name }) // keeps the last of those in the node's order
	slices.Reverse(out)
	return slices.Clip(out)
}

// ImageSize returns the size of an image that the node has; ok is false when it hasn't.
func (i *NodeBasics) ImageSize(name string) (bytes int64, ok bool) {
	at, ok := slices.BinarySearchFunc(i.Images, name, func(image Image, name string) int { return strings.Compare(image.Name, name) })
	if !ok {
		return 0, false
	}
	return i.Images[at].Size, true
}

// images counts the nodes that have an image, by its name.
type images struct {
	nodes map[string]int
	known uint64 // how often one has come to be on some node, or on none
}

func (b *images) init() { b.nodes = map[string]int{} }

// replace has a node list other images than before.
func (b *images) replace(old, now []Image) {
	if slices.EqualFunc(old, now, func(a, b Image) bool { return a.Name == b.Name }) {
		return
	}
	b.count(now, 1)
	b.count(old, -1) // last: an image that stays doesn't come to be on none
}

// count counts the images of a node (sign is 1), or uncounts them (-1).
func (b *images) count(list []Image, sign int) {
	for i := range list {
		addTo(b.nodes, list[i].Name, sign)
		if n := b.nodes[list[i].Name]; n == 0 || n == 1 && sign > 0 {
			b.known++
		}
	}
}

// NodesWithImage returns how many nodes have an image under this name, in O(1).
func (s *State) NodesWithImage(name string) int { return s.images.nodes[name] }
