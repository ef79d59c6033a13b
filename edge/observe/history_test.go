package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
)

// TestHistoryIsBounded puts a burst through it: it keeps the last, and finds
// those of a pod or a node group among them.
func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory(keptDecisions)
	for i := range 200_000 {
		r := step.Ready{Decisions: []step.Decision{{Seq: uint64(i), Kind: step.Waits, Pod: fmt.Sprint("default/p", i%50_000)}, {Seq: uint64(i), Kind: step.ScaledUp, Group: "g"}}}
		h.Step(time.Time{}, 0, nil, &r)
	}
	if len(h.indices) > keptDecisions || len(h.ring) != keptDecisions {
		t.Errorf("%d pods and %d decisions are kept", len(h.indices), len(h.ring))
	}
	if got := h.Of("default/p49999"); len(got) != 1 || got[0].Seq != 199_999 {
		t.Errorf("the last: %v", got)
	}
	if got := h.Of("default/p0"); len(got) != 0 {
		t.Errorf("one that is long past: %v", got)
	}
	if got := h.OfGroup("g"); len(got) != shownDecisions || got[shownDecisions-1].Seq != 199_999 {
		t.Errorf("of the group: %v", got)
	}
	small := NewHistory(1000)
	for i := range 500 {
		r := step.Ready{Decisions: []step.Decision{{Seq: uint64(i), Pod: "default/p"}}}
		small.Step(time.Time{}, 0, nil, &r)
	}
	if got := small.Of("default/p"); len(got) != shownDecisions || got[0].Seq != 480 || got[shownDecisions-1].Seq != 499 {
		t.Errorf("of one pod: %v", got)
	}
}

// TestHistoryIsBoundedInBytes has decisions that were rejected for many reasons, long victims' names
// and small decisions between them: the last are kept, as many as have room.
func TestHistoryIsBoundedInBytes(t *testing.T) {
	h := NewHistory(1000)
	h.limit = 1 << 20
	var seq uint64
	add := func(d step.Decision) {
		seq++
		d.Seq = seq
		h.Step(time.Time{}, 0, nil, &step.Ready{Decisions: []step.Decision{d}})
	}
	for range 300 {
		large := step.Decision{Kind: step.Waits, Pod: "default/large", Reason: strings.Repeat("r", 10_000)}
		for range 32 {
			large.Rejected = append(large.Rejected, step.Why{Message: strings.Repeat("m", 1000)})
		}
		add(large)
		add(step.Decision{Kind: step.Preempts, Pod: "default/small", Victims: []string{strings.Repeat("v", 300)}})
	}
	kept, bytes := h.next-h.first, 0
	for i := range h.ring {
		for _, w := range h.ring[i].Rejected {
			bytes += len(w.Message)
		}
		bytes += len(h.ring[i].Reason)
	}
	if kept < 40 || bytes > h.limit || h.bytes > h.limit || bytes < h.limit/2 {
		t.Errorf("%d decisions with %d bytes of text are kept, which count %d; the limit is %d", kept, bytes, h.bytes, h.limit)
	}
	if small := h.Of("default/small"); len(small) != shownDecisions || small[shownDecisions-1].Seq != seq {
		t.Errorf("of the small pod %d decisions are kept, and the last is not among them", len(small))
	}
	if runs := h.Runs(1000); len(runs) != kept {
		t.Errorf("%d runs of %d decisions that differ", len(runs), kept)
	}
	add(step.Decision{Kind: step.Waits, Pod: "default/huge", Reason: strings.Repeat("r", 2<<20)})
	if got := h.Of("default/huge"); len(got) != 1 || h.next-h.first != 1 || len(h.indices) != 1 {
		t.Errorf("of one that is beyond the limit %d are kept beside %d, and %d subjects; want it alone", len(got), h.next-h.first-1, len(h.indices))
	}
	for range 2000 {
		add(step.Decision{Kind: step.Placed, Pod: "default/p"})
	}
	if n := h.next - h.first; n != len(h.ring) || h.bytes != n*bytesOf(&h.ring[0]) {
		t.Errorf("%d small decisions are kept, which count %d bytes; want %d", n, h.bytes, len(h.ring))
	}
}

// TestHistoryOfANodeIsAboutItsRemoval: and about room that was given away twice. The many decisions about pods that
// come to a node don't push it out of the history.
func TestHistoryOfANodeIsAboutItsRemoval(t *testing.T) {
	h := NewHistory(100)
	var r step.Ready
	for i, d := range []step.Decision{
		{Kind: step.NodeStays, Node: "n", Group: "g", Pod: "default/db"}, {Kind: step.NodeStays, Reason: "ClusterUnhealthy"},
		{Kind: step.NodeUnneeded, Node: "n", Group: "g"}, {Kind: step.NodeTainted, Node: "n", Group: "g"}, {Kind: step.NodeTainted, Node: "other", Group: "g"},
		{Kind: step.PodEvicted, Node: "n", Pod: "default/web"}, {Kind: step.Placed, Node: "n", Pod: "default/late"},
		{Kind: step.NodeKept, Node: "n"}, {Kind: step.NodeNeeded, Node: "n"}, {Kind: step.NodeRemoved, Node: "n", Group: "g"},
		{Kind: step.PodSurged, Node: "n", Pod: "default/one"}, {Kind: step.RoomTakenTwice, Node: "n", Pod: "default/others"},
	} {
		d.Seq = uint64(i)
		r.Decisions = append(r.Decisions, d)
	}
	h.Step(time.Time{}, 0, nil, &r)
	numbers := func(list []step.Decision) (out []uint64) {
		for i := range list {
			out = append(out, list[i].Seq)
		}
		return out
	}
	for _, x := range []struct {
		of        string
		got, want []uint64
	}{
		{"the node", numbers(h.OfNode("n")), []uint64{0, 2, 3, 5, 7, 8, 9, 10, 11}},
		{"the pod that keeps it", numbers(h.Of("default/db")), []uint64{0}},
		{"a pod that was evicted", numbers(h.Of("default/web")), []uint64{5}},
		{"the group", numbers(h.OfGroup("g")), []uint64{2, 3, 4, 9}},
	} {
		if !slices.Equal(x.got, x.want) {
			t.Errorf("of %s: %v, want %v", x.of, x.got, x.want)
		}
	}
}
