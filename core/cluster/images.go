package cluster

// This file holds container images: what a node's object says of those that it has, and
// on how many nodes each one is. It must hold that an image counts once for each node in
// the state that lists it, under each of its names.

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ImageID is an interned name of a container image. Names are interned for the life of a
// schema, from 0 on.
type ImageID int32

// Image is a container image on a node, under one of its names.
type Image struct {
	ID   ImageID
	Size int64 // bytes
}

// parseImages returns a node's images, one for each name of each. Where two images have
// the same name, the size of the last counts, as in kube-scheduler.
func (s *Schema) parseImages(n *v1.Node) []Image {
	if len(n.Status.Images) == 0 {
		return nil
	}
	out := make([]Image, 0, 2*len(n.Status.Images))
	at := make(map[ImageID]int, cap(out))
	for i := range n.Status.Images {
		image := &n.Status.Images[i]
		for _, name := range image.Names {
			id := s.imageID(name)
			if k, ok := at[id]; ok {
				out[k].Size = image.SizeBytes
				continue
			}
			at[id] = len(out)
			out = append(out, Image{id, image.SizeBytes})
		}
	}
	return out
}

func (s *Schema) imageID(name string) ImageID {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.images[name]
	if !ok {
		id = ImageID(len(s.images))
		s.images[strings.Clone(name)] = id // a name that was cut from a larger text would keep all of it in memory
	}
	return id
}

// images counts, for each ImageID, the nodes that have the image. The list ends with the
// highest ID that any node has had.
type images struct{ nodes []int32 }

func (b *images) nodeAdded(n *NodeInfo) {
	for _, i := range n.Images {
		for len(b.nodes) <= int(i.ID) {
			b.nodes = append(b.nodes, 0)
		}
		b.nodes[i.ID]++
	}
}

func (b *images) nodeRemoved(n *NodeInfo) {
	for _, i := range n.Images {
		b.nodes[i.ID]--
	}
}

// Image returns the ID of an image; ok is false when no node has it under this name.
func (s *State) Image(name string) (id ImageID, ok bool) {
	s.Schema.mu.RLock()
	id, ok = s.Schema.images[name]
	s.Schema.mu.RUnlock()
	return id, ok && s.NodesWithImage(id) > 0
}

// NodesWithImage returns how many nodes have the image, in O(1).
func (s *State) NodesWithImage(id ImageID) int32 {
	if int(id) >= len(s.images.nodes) {
		return 0
	}
	return s.images.nodes[id]
}
