package live

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestANodeKeepsItsGroupThroughOneList has the provider leave a node's group out of a list, of two that
// follow each other at once, and then for good.
func TestANodeKeepsItsGroupThroughOneList(t *testing.T) {
	synctest.Test(t, testANodeKeepsItsGroup)
}

func testANodeKeepsItsGroup(t *testing.T) {
	group := "g"
	var told []string
	put := func(inputs ...step.Input) {
		for _, in := range inputs {
			told = append(told, in.(step.NodeSet).Group)
		}
	}
	n := testkit.Node("n").Obj()
	n.UID = "1"
	feed := newNodeFeed(func(*v1.Node) string { return group }, put)
	show := func() { feed.deliver(func() []step.Input { return []step.Input{feed.set(n)} }) }
	want := func(what string, groups ...string) {
		t.Helper()
		if !slices.Equal(told, groups) {
			t.Errorf("%s: the core was told of the groups %q, want %q", what, told, groups)
		}
		told = nil
	}
	show()
	want("the node comes", "g")
	group = ""
	feed.regroup()
	show() // a heartbeat
	want("one list has no group for it", "g")
	group = "g"
	feed.regroup()
	group = ""
	feed.regroup()
	want("the next has one, and the one after hasn't")
	feed.regroup()
	want("nor has one that comes at once")
	time.Sleep(nodegroup.GoneAfter)
	feed.regroup()
	want("nor has one that comes later", "")
	show()
	want("the node is shown again", "")
	group = "h"
	feed.regroup()
	want("it is in another", "h")
	group = ""
	n = n.DeepCopy()
	n.UID = "2"
	show()
	want("another node has its name", "")
}
