package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestGroupDriver follows the CSI driver of a group through what becomes of its nodes and their CSINodes.
func TestGroupDriver(t *testing.T) {
	s := newState()
	node := func(name, group string) { s.SetNode(s.Schema.ParseNode(testkit.Node(name).Obj(), group)) }
	for _, c := range []struct {
		what string
		do   func()
		want string // of the groups g and h
	}{
		{"a CSINode without a node", func() { s.SetObject(testkit.CSINode("n").Driver("disks", 5).Obj()) }, "none none"},
		{"its node", func() { node("n", "g") }, "5 none"},
		{"another node without a CSINode", func() { node("m", "g") }, "5 none"},
		{"its CSINode, with a lower limit", func() { s.SetObject(testkit.CSINode("m").Driver("other", 9).Driver("disks", 3).Obj()) }, "3 none"},
		{"its CSINode, without a limit", func() { s.SetObject(testkit.CSINode("m").Driver("disks", -1).Obj()) }, "5 none"},
		{"the first node moves", func() { node("n", "h") }, "any 5"},
		{"the first node is in no group", func() { node("n", "") }, "any none"},
		{"the other loses its driver", func() { s.SetObject(testkit.CSINode("m").Obj()) }, "none none"},
		{"the first is back, and its CSINode goes", func() { node("n", "g"); s.RemoveObject(cluster.CSINodeKind, "", "n") }, "none none"},
		{"it has a CSINode, and goes", func() { s.SetObject(testkit.CSINode("n").Driver("disks", 1).Obj()); s.RemoveNode("n") }, "none none"},
	} {
		c.do()
		text := func(group string) string {
			switch d, ok := s.GroupDriver(group, "disks"); {
			case !ok:
				return "none"
			case d.Allocatable == nil:
				return "any"
			default:
				return fmt.Sprint(*d.Allocatable.Count)
			}
		}
		if got := text("g") + " " + text("h"); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
