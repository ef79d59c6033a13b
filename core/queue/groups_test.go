package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestGroupsBackOffBySize: a group of n members backs off for up to the square root of n times as long as
// a pod.
func TestGroupsBackOffBySize(t *testing.T) {
	for members, want := range map[int]time.Duration{1: 10 * time.Second, 9: 30 * time.Second} {
		k, now := newKit(), time.Unix(1000, 0)
		cfg := queue.DefaultConfig()
		cfg.PodGroups = true
		q := queue.New(cfg, framework.ByPriority)
		for i := range members {
			q.Add(now, k.schema.ParsePod(testkit.Pod(fmt.Sprint("m", i)).PodGroup("gang").Obj()), k.class("small"), nil)
		}
		q.ReleaseGroup(now, q.Groups()[0])
		for range 20 {
			g := q.Pop(now).Group()
			q.RejectGroup(now, g, []queue.GroupWait{{Class: k.class("small")}})
			if got := g.Item().BackoffEnd().Sub(now); got > want {
				t.Fatalf("%d members back off for %s, want at most %s", members, got, want)
			}
			now = g.Item().BackoffEnd()
			q.WakeGroups(now, func(*engine.Class, bool) bool { return true })
		}
		q.RejectGroup(now, q.Pop(now).Group(), nil)
		if got := q.Groups()[0].Item().BackoffEnd().Sub(now); got != want {
			t.Errorf("in the end %d members back off for %s, want %s", members, got, want)
		}
	}
}

// TestAGroupIsTriedWhenAMemberIsReclassified: what it waits for is not what the member waits for now.
func TestAGroupIsTriedWhenAMemberIsReclassified(t *testing.T) {
	k, now := newKit(), time.Unix(1000, 0)
	cfg := queue.DefaultConfig()
	cfg.PodGroups = true
	q := queue.New(cfg, framework.ByPriority)
	q.Add(now, k.schema.ParsePod(testkit.Pod("m").PodGroup("gang").Obj()), k.class("small"), nil)
	q.ReleaseGroup(now, q.Groups()[0])
	q.RejectGroup(now, q.Pop(now).Group(), []queue.GroupWait{{Class: k.class("small")}})
	for _, class := range []string{"small", "large"} {
		q.Reclassify(func(*cluster.Pod) *engine.Class { return k.class(class) }, func(*cluster.Pod) bool { return true })
		want := queue.Unschedulable
		if class == "large" {
			want = queue.Backoff
		}
		if got := q.Groups()[0].Item().Stage(); got != want {
			t.Errorf("with a member of the class %s it is %s, want %s", class, got, want)
		}
	}
	if broken := q.Invariants(); broken != nil {
		t.Error(broken)
	}
}
