package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/step"
)

// drawDecision draws one about a pod or pod group of a few, with few texts or many, short or long.
func drawDecision(t *rapid.T, seq uint64, longest int) step.Decision {
	text := func(what string) string {
		return strings.Repeat("x", rapid.IntRange(0, 1<<rapid.IntRange(0, longest).Draw(t, "digits of "+what)).Draw(t, what))
	}
	d := step.Decision{Seq: seq, Kind: step.Waits, Reason: text("reason")}
	if name := fmt.Sprint("default/p", rapid.IntRange(0, 3).Draw(t, "name")); rapid.Bool().Draw(t, "about a pod group") {
		d.PodGroup = name
	} else {
		d.Pod = name
	}
	for range rapid.IntRange(0, 4).Draw(t, "reasons") {
		d.Rejected = append(d.Rejected, step.Why{Message: text("message")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "victims") {
		d.Victims = append(d.Victims, text("victim"))
	}
	return d
}

// textOf returns how many bytes of text a decision has.
func textOf(d *step.Decision) int {
	n := len(d.Reason) + len(strings.Join(d.Victims, ""))
	for i := range d.Rejected {
		n += len(d.Rejected[i].Message)
	}
	return n
}

// TestPropertyHistoryIsTheLastThatHaveRoom compares a history with a list that loses its first decision
// as long as it is too long or has too many bytes, unless it is the last one.
func TestPropertyHistoryIsTheLastThatHaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHistory(rapid.IntRange(1, 40).Draw(t, "decisions"))
		h.limit = rapid.IntRange(1<<10, 1<<16).Draw(t, "bytes")
		var kept []step.Decision
		for seq := range rapid.IntRange(1, 100).Draw(t, "steps") {
			d := drawDecision(t, uint64(seq), 12)
			h.Step(time.Time{}, 0, nil, &step.Ready{Decisions: []step.Decision{d}})
			kept = append(kept, d)
			bytes, text := 0, 0
			for i := range kept {
				bytes += bytesOf(&kept[i])
				text += textOf(&kept[i])
			}
			for len(kept) > 1 && (len(kept) > len(h.ring) || bytes > h.limit) {
				bytes, text = bytes-bytesOf(&kept[0]), text-textOf(&kept[0])
				kept = kept[1:]
			}
			if text > h.limit && len(kept) > 1 {
				t.Fatalf("%d decisions with %d bytes of text count %d, and the limit is %d", len(kept), text, bytes, h.limit)
			}
		}
		for pod := range 4 {
			name := fmt.Sprint("default/p", pod)
			wantKept(t, "pod "+name, h.Of(name), kept, func(d *step.Decision) bool { return d.Pod == name })
			wantKept(t, "pod group "+name, h.OfPodGroup(name), kept, func(d *step.Decision) bool { return d.PodGroup == name })
		}
	})
}

// wantKept compares decisions with the last of those that are kept and about something.
func wantKept(t *rapid.T, what string, decisions, kept []step.Decision, about func(*step.Decision) bool) {
	var want, got []uint64
	for i := range kept {
		if about(&kept[i]) {
			want = append(want, kept[i].Seq)
		}
	}
	for i := range decisions {
		got = append(got, decisions[i].Seq)
	}
	if want = want[max(0, len(want)-shownDecisions):]; !slices.Equal(got, want) {
		t.Fatalf("decisions %v of %s are kept, want %v", got, what, want)
	}
}
