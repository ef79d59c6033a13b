package cluster_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// image is one image under its names.
func image(megabytes int64, names ...string) v1.ContainerImage {
	return v1.ContainerImage{Names: names, SizeBytes: megabytes << 20}
}

func TestImages(t *testing.T) {
	s := newState()
	with := func(name string, images ...v1.ContainerImage) {
		b := testkit.Node(name)
		b.Status.Images = images
		setNode(s, b)
	}
	// spread prints how many nodes have an image, and in which sizes.
	spread := func(name string) string {
		if s.NodesWithImage(name) == 0 {
			return "nowhere"
		}
		var sizes []int64
		s.Nodes(func(n *cluster.Node) {
			if size, ok := n.ImageSize(name); ok {
				sizes = append(sizes, size>>20)
			}
		})
		return fmt.Sprint(s.NodesWithImage(name), " nodes: ", sizes)
	}
	for _, c := range []struct {
		name        string
		do          func()
		web, digest string
	}{
		{"no nodes", func() {}, "nowhere", "nowhere"},
		{"one node", func() { with("a", image(5, "web:1", "web@sha256:1")) }, "1 nodes: [5]", "1 nodes: [5]"},
		{"another size elsewhere", func() { with("b", image(7, "web:1")) }, "2 nodes: [5 7]", "1 nodes: [5]"},
		{"of two with one name the last counts", func() { with("c", image(1, "web:1"), image(2, "x"), image(3, "web:1")) }, "3 nodes: [5 7 3]", "1 nodes: [5]"},
		{"a node drops it", func() { with("a", image(2, "x")) }, "2 nodes: [7 3]", "nowhere"},
		{"a node goes", func() { s.RemoveNode("b") }, "1 nodes: [3]", "nowhere"},
		{"the last goes", func() { s.RemoveNode("c") }, "nowhere", "nowhere"},
		{"and it comes again", func() { with("d", image(9, "web@sha256:1")) }, "nowhere", "1 nodes: [9]"},
	} {
		c.do()
		if web, digest := spread("web:1"), spread("web@sha256:1"); web != c.web || digest != c.digest {
			t.Errorf("%s: web:1 is on %s, its digest on %s; want %s and %s", c.name, web, digest, c.web, c.digest)
		}
	}
	if s.NodesWithImage("unheard:of") != 0 {
		t.Error("an image that nobody has heard of is on some node")
	}
}
