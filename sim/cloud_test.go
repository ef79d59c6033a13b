package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestEachStageOfALaunchIsAChange follows an instance whose stages are a minute apart: from
// each of them the run goes on for End.Quiet at least, and Berth's decisions are no
// decisions about nothing.
func TestEachStageOfALaunchIsAChange(t *testing.T) {
	const template = "template: {allocatable: {cpu: \"4\", memory: 8Gi, pods: \"10\"}}"
	for _, c := range []struct {
		name, group string
		want        []string // when lastChange moved, and what the group had then
	}{
		{"it becomes a node",
			"{name: g, max: 1, launchDelay: {min: 1m, max: 1m}, boot: {bytes: 60, rate: 1}, startup: {min: 1m, max: 1m}, " + template + "}",
			[]string{"0s ordered", "1m0s booting", "2m0s registered", "3m0s ready"}},
		{"its launch fails", "{name: g, max: 1, launchDelay: {min: 1m, max: 1m}, failureRate: 1, " + template + "}",
			[]string{"0s ordered", "1m0s failed"}},
	} {
		w := newTestWorld(t, "  nodeGroups: ["+c.group+"]\n  end: {at: 1h}\n")
		if err := w.increaseTarget("g", 1); err != nil {
			t.Fatal(err)
		}
		m := w.groups[0].instances[0]
		stage := func() string {
			if m.failed != "" {
				return "failed"
			}
			return [...]string{"ordered", "booting", "registered", "ready"}[m.state]
		}
		got := []string{"0s ordered"}
		for last := w.lastChange; w.next(10 * time.Minute); {
			if w.lastChange != last {
				last = w.lastChange
				got = append(got, fmt.Sprint(last.Round(time.Second), " ", stage()))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got changes %q, want %q", c.name, got, c.want)
		}
	}
}
