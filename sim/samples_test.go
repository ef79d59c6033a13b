package sim

import (
	"testing"
	"time"

	"github.com/berthproject/berth/sim/scenario"
)

// TestEachStateThatLastsIsSampled plays pods that come a second apart and nodes that launch for minutes, in which nothing
// else happens: at most sampleEvery after a change there is a sample with it, unless another change came before.
func TestEachStateThatLastsIsSampled(t *testing.T) {
	run, err := scenario.Parse("test.yaml", []byte(`apiVersion: berth.dev/v1alpha1
kind: Scenario
spec:
  seed: 1
  nodeGroups: [{name: g, max: 9, launchDelay: {min: 4m, max: 6m}, pricePerHour: 3, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  workload: [{name: w, kind: Job, copies: 2, count: 3, arrive: {over: 20s}, runFor: {min: 8m, max: 9m}, template: {spec: {containers: [{resources: {requests: {cpu: "3", memory: 1Gi}}}]}}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	type counts struct{ pending, bound, running, launching, starting, ready, draining int }
	of := func(s Sample) counts {
		return counts{s.Pending, s.Bound, s.Running, s.Launching, s.Starting, s.Ready, s.Draining}
	}
	type state struct {
		counts
		from time.Duration
	}
	w, err := New(run, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var states []state
	for over := false; !over; {
		if over, err = w.Play(t.Context(), w.events[0].at); err != nil {
			t.Fatal(err)
		}
		if c := of(w.stats.now(w.now)); len(states) == 0 || states[len(states)-1].counts != c {
			states = append(states, state{c, w.now})
		}
	}
	long := 0
	for i, s := range states[:len(states)-1] {
		if states[i+1].from-s.from <= sampleEvery {
			continue
		}
		long++
		found := false
		for _, x := range w.stats.Samples {
			found = found || x.At >= s.from && x.At <= s.from+sampleEvery && of(x) == s.counts
		}
		if !found {
			t.Errorf("from %s to %s there was %+v, and no sample of it in the first %s", s.from, states[i+1].from, s.counts, sampleEvery)
		}
	}
	if long < 5 {
		t.Errorf("only %d states lasted for more than %s", long, sampleEvery)
	}
	for i, s := range w.stats.Samples[1:] {
		before := w.stats.Samples[i]
		if s.At < before.At || s.At < before.At+sampleEvery && i < len(w.stats.Samples)-2 {
			t.Errorf("a sample of %s follows one of %s", s.At, before.At)
		}
		// Money is spent all the time: where the price was the same at both ends and is 0 for neither, so is what was paid.
		if paid := before.Price * (s.At - before.At).Hours(); s.Price == before.Price && s.Cost < before.Cost+paid-1e-9 {
			t.Errorf("from %s to %s the cost rose by %f, want %f", before.At, s.At, s.Cost-before.Cost, paid)
		}
	}
}
