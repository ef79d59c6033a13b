package soak

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

var variants = flag.Int("worlds", 40, "how many random worlds to play in every variant")

// history is what went into the core of a world, Step by Step.
type history struct {
	run   *scenario.Run
	steps []recordedStep
}

type recordedStep struct {
	now time.Time
	in  []step.Input
}

// record plays a world, up to the first crash, and keeps its history.
func record(t *testing.T, seed uint64) *history {
	s := Generate(seed)
	s.Spec.Faults = slices.DeleteFunc(s.Spec.Faults, func(f scenario.Fault) bool { return f.Kind == scenario.CrashBerth })
	run, err := scenario.Parse("world.yaml", Text(s))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	// How long a pod backs off depends on how often it was tried, which classes
	// change; so nothing backs off here.
	run.Scheduler.Queue.InitialBackoff, run.Scheduler.Queue.MaxBackoff = 0, 0
	h := &history{run: run}
	w, err := sim.New(run, sim.Options{Hooks: []drive.Hook{drive.HookFunc(func(now time.Time, _ time.Duration, in []step.Input, _ *step.Ready) {
		h.steps = append(h.steps, recordedStep{now, slices.Clone(in)})
	})}})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return h
}

// planned answers requests for plans only, at once: all other outcomes are in the
// history.
type planned struct{ drive.Unanswered }

func (planned) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) { done(compute()) }

// play puts the history into a fresh core and returns its decisions as text.
// Plans are its own planner's. Attempts without success are left out where a
// variant makes other ones.
func (h *history) play(t *testing.T, how engine.Options, oneByOne, attempts bool) []string {
	schema, profiles := h.run.Scheduler.Build()
	how.Seed = h.run.Spec.Seed
	var out []string
	decisions := func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for i := range r.Decisions {
			d := &r.Decisions[i]
			if attempts || d.Kind != step.Waits {
				out = append(out, fmt.Sprintf("%s %s (score %d)", d.Time.Format(time.TimeOnly), d, d.Score))
			}
		}
	}
	var plan step.Input // made, and delivered where the history has one
	cfg := core.DefaultConfig(profiles...)
	cfg.Engine, cfg.Queue, cfg.Autoscale = how, h.run.Scheduler.Queue, &h.run.Autoscale
	d, err := drive.New(drive.Config{
		Schema: schema, Core: cfg,
		Workers: planned{}, Inbox: func(in step.Input) { plan = in }, Hooks: []drive.Hook{drive.HookFunc(decisions)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.steps {
		in := slices.Clone(s.in)
		for i := range in {
			if _, ok := in[i].(step.PlanMade); ok {
				in[i] = plan
			}
		}
		if oneByOne {
			for _, x := range in {
				d.Core().Take(s.now, door.Must(x)...)
			}
			in = nil
		}
		if _, err := d.Step(s.now, in...); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestMetamorphic puts the histories of random worlds into cores that find
// their answers in other ways: the decisions are identical, in order and time.
func TestMetamorphic(t *testing.T) {
	var worlds []*history
	n := *variants
	if testing.Short() {
		n /= 5
	}
	for seed := range uint64(n) {
		worlds = append(worlds, record(t, seed))
	}
	for _, v := range []struct {
		name     string
		how      engine.Options
		oneByOne bool
		attempts bool // those without success must be identical too
	}{
		{"every pod a class of its own", engine.Options{Unclassed: true}, false, false},
		{"every column rebuilt for every decision", engine.Options{Rebuilt: true}, false, true},
		{"two columns at a time", engine.Options{Columns: 2}, false, true},
		{"eight workers", engine.Options{Workers: 8}, false, true},
		{"inputs one by one", engine.Options{}, true, true},
	} {
		t.Run(v.name, func(t *testing.T) {
			decided := 0
			for seed, h := range worlds {
				plain := h.play(t, engine.Options{}, false, v.attempts)
				other := h.play(t, v.how, v.oneByOne, v.attempts)
				decided += len(plain)
				for i := range max(len(plain), len(other)) {
					a, b := "nothing", "nothing"
					if i < len(plain) {
						a = plain[i]
					}
					if i < len(other) {
						b = other[i]
					}
					if a != b {
						t.Fatalf("seed %d, decision %d is\n%s\nand in the variant\n%s", seed, i, a, b)
					}
				}
			}
			if decided < 10*n {
				t.Errorf("only %d decisions in %d worlds", decided, n)
			}
		})
	}
}

// TestSeedDiffers shows that the seed decides where there are ties, and that
// equal seeds give equal digests.
func TestSeedDiffers(t *testing.T) {
	text := `apiVersion: berth.dev/v1alpha1
kind: Scenario
spec:
  nodes: [{name: n, count: 20, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  workload:
  - name: w
    count: 10
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
`
	digests := map[string]bool{}
	for seed := range uint64(4) {
		var last string
		for range 2 {
			run, err := scenario.Parse("ties.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			run.Spec.Seed = seed
			w, err := sim.New(run, sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if last != "" && s.Digest != last {
				t.Errorf("seed %d gives %s and then %s", seed, last, s.Digest)
			}
			last = s.Digest
		}
		digests[last] = true
	}
	if len(digests) < 4 {
		t.Errorf("4 seeds give %d digests", len(digests))
	}
}
