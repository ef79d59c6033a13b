package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyMembersAreTriedWithTheirGroup puts random histories of members of pod groups, and pods
// without a group, into the queue. It must always hold that
//
//   - the queue's invariants hold;
//   - a member is never popped: its group is, with all members that are grouped;
//   - a group that is held isn't popped.
func TestPropertyMembersAreTriedWithTheirGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := queue.DefaultConfig()
		cfg.PodGroups = true
		h := &groupHistory{t: t, kit: newKit(), queue: queue.New(cfg, framework.ByPriority), now: time.Unix(1000, 0)}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			h.step()
			if broken := h.queue.Invariants(); broken != nil {
				t.Fatalf("broken invariants: %q\nafter %q", broken, h.did)
			}
		}
	})
}

type groupHistory struct {
	t        *rapid.T
	kit      *kit
	queue    *queue.Queue
	now      time.Time
	pods     []types.UID // in the queue
	inFlight []types.UID // of them, those that were given nodes
	did      []string
}

func (h *groupHistory) note(format string, args ...any) {
	h.did = append(h.did, fmt.Sprintf(format, args...))
}

func (h *groupHistory) pod(name string) *cluster.Pod {
	b := testkit.Pod(name).Priority(int32(rapid.IntRange(0, 1).Draw(h.t, "priority")))
	if group := rapid.IntRange(0, 3).Draw(h.t, "group"); group > 0 {
		b.PodGroup(fmt.Sprint("g", group))
	}
	return h.kit.schema.ParsePod(b.Obj())
}

func (h *groupHistory) class() *engine.Class {
	return h.kit.class(rapid.SampledFrom(classes).Draw(h.t, "class"))
}

func (h *groupHistory) step() {
	groups := h.queue.Groups()
	switch op := rapid.IntRange(0, 10).Draw(h.t, "op"); {
	case op <= 1:
		p := h.pod(fmt.Sprint("p", len(h.did)))
		h.queue.Add(h.now, p, h.class(), gateOf(rapid.IntRange(0, 4).Draw(h.t, "gate") == 0))
		h.pods = append(h.pods, p.UID)
		h.note("add %s of %v", p.UID, p.Group)
	case op == 2 && len(h.pods) > 0:
		uid := rapid.SampledFrom(h.pods).Draw(h.t, "pod")
		item := h.queue.Get(uid)
		if item.Stage() == queue.InFlight {
			return
		}
		h.queue.Update(item, item.Pod(), h.class(), gateOf(rapid.Bool().Draw(h.t, "gate")))
		h.note("update %s", uid)
	case op == 3 && len(h.pods) > 0:
		uid := rapid.SampledFrom(h.pods).Draw(h.t, "pod")
		h.queue.Remove(uid)
		h.pods = slices.DeleteFunc(h.pods, func(x types.UID) bool { return x == uid })
		h.inFlight = slices.DeleteFunc(h.inFlight, func(x types.UID) bool { return x == uid })
		h.note("remove %s", uid)
	case op == 4 && len(groups) > 0:
		g := rapid.SampledFrom(groups).Draw(h.t, "group")
		h.queue.HoldGroup(g, "why")
		h.note("hold %s", g.Key())
	case op == 5 && len(groups) > 0:
		g := rapid.SampledFrom(groups).Draw(h.t, "group")
		if g.Gated() == 0 {
			h.queue.ReleaseGroup(h.now, g)
			h.note("release %s", g.Key())
		}
	case op == 6 && len(h.inFlight) > 0:
		uid := rapid.SampledFrom(h.inFlight).Draw(h.t, "pod")
		h.inFlight = slices.DeleteFunc(h.inFlight, func(x types.UID) bool { return x == uid })
		h.queue.Fail(h.now, h.queue.Get(uid))
		h.note("fail %s", uid)
	case op == 7:
		helps := rapid.Bool().Draw(h.t, "helps")
		h.queue.WakeGroups(h.now, func(*engine.Class, bool) bool { return helps })
		h.queue.Sweep(h.now)
		h.note("wake %t", helps)
	case op == 8:
		h.now = h.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(h.t, "seconds")) * time.Second)
		h.note("tick")
	default:
		h.pop()
	}
}

// pop takes what is next, and decides on it.
func (h *groupHistory) pop() {
	item := h.queue.Pop(h.now)
	if item == nil {
		return
	}
	g := item.Group()
	if g == nil {
		if item.Pod().Group != nil {
			h.t.Fatalf("%s is tried without its group\nafter %q", item.Pod().UID, h.did)
		}
		h.queue.Placed(item)
		h.inFlight = append(h.inFlight, item.Pod().UID)
		h.note("place %s", item.Pod().UID)
		return
	}
	if g.Held() != "" {
		h.t.Fatalf("%s is held, and tried\nafter %q", g.Key(), h.did)
	}
	members := slices.Clone(g.Members())
	placed := members[:rapid.IntRange(0, len(members)).Draw(h.t, "placed")]
	h.queue.MembersPlaced(g, placed)
	for _, m := range placed {
		h.inFlight = append(h.inFlight, m.Pod().UID)
	}
	if len(placed) < len(members) || len(members) == 0 {
		h.queue.RejectGroup(h.now, g, []queue.GroupWait{{Class: h.class()}})
	}
	h.note("place %d of %d of %s", len(placed), len(members), g.Key())
}
