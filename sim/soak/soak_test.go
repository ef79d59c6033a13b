package soak

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

var (
	seeds = flag.Int("seeds", 100, "how many random worlds to play")
	first = flag.Uint64("first", 1, "the first seed")
)

// seedsToPlay returns how many random worlds a test plays: a fifth with -short.
func seedsToPlay() uint64 {
	if testing.Short() {
		return uint64(*seeds) / 5
	}
	return uint64(*seeds)
}

const recalled = string(step.NodeRecalled)

// TestSoak plays random worlds with random faults. A broken invariant is
// reported with its seed, and a small scenario that shows it is written to
// soak-SEED.yaml in the folder given by SOAK_OUT, or a temporary one.
func TestSoak(t *testing.T) {
	sum := playWorlds(t, Generate)
	t.Logf("%d pods were preempted and %d evicted; %d nodes were recalled", sum.Pods.Preempted, sum.Pods.Evicted, sum.Decisions[recalled])
	if seedsToPlay() > 200 && (sum.Pods.Preempted == 0 || sum.Pods.Evicted == 0 || sum.Decisions[recalled] == 0) {
		t.Error("no world has preempted, or none evicted, or none recalled a node")
	}
}

// TestDraining is TestSoak with worlds in which nodes are drained.
func TestDraining(t *testing.T) {
	sum := playWorlds(t, GenerateDraining)
	t.Logf("%d nodes were drained of %d pods, of which %d had no home; %d were recalled", sum.Drain.Nodes, sum.Drain.Pods, sum.Drain.Homeless, sum.Decisions[recalled])
	if seedsToPlay() >= 100 && (sum.Drain.Nodes == 0 || sum.Decisions[recalled] == 0) {
		t.Error("no world has drained a node, or none recalled one")
	}
}

// playWorlds plays the worlds of the seeds asked for, as many at a time as there are
// processors, and returns the sums of their counts.
func playWorlds(t *testing.T, generate func(seed uint64) *scenario.Scenario) (sum scenario.Summary) {
	return playWorldsBy(t, generate, func(ctx context.Context, s *scenario.Scenario) (Outcome, error) { return Play(ctx, s, sim.Options{}) })
}

// playWorldsBy is playWorlds where a world is played by a function.
func playWorldsBy(t *testing.T, generate func(seed uint64) *scenario.Scenario, play func(context.Context, *scenario.Scenario) (Outcome, error)) (sum scenario.Summary) {
	sum.Decisions = map[string]int{}
	var next atomic.Uint64
	var failed atomic.Int32
	var adding sync.Mutex
	next.Store(*first)
	ctx := t.Context()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for ctx.Err() == nil && failed.Load() < 3 {
				seed := next.Add(1) - 1
				if seed >= *first+seedsToPlay() {
					return
				}
				s := generate(seed)
				out, err := play(ctx, s)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					failed.Add(1)
				} else if len(out.Problems) > 0 {
					failed.Add(1)
					report(ctx, t, seed, s, out, play)
				}
				if out.Summary != nil {
					adding.Lock()
					sum.Pods.Preempted += out.Summary.Pods.Preempted
					sum.Pods.Evicted += out.Summary.Pods.Evicted
					for kind, n := range out.Summary.Decisions {
						sum.Decisions[kind] += n
					}
					sum.Drain.Nodes += out.Summary.Drain.Nodes
					sum.Drain.Pods += out.Summary.Drain.Pods
					sum.Drain.Homeless += out.Summary.Drain.Homeless
					adding.Unlock()
				}
				if n := seed - *first + 1; n%500 == 0 {
					t.Logf("%d of %d worlds played", n, seedsToPlay())
				}
			}
		})
	}
	wg.Wait()
	return sum
}

// report writes the smaller scenario of a world that breaks an invariant, and fails the
// test with both.
func report(ctx context.Context, t *testing.T, seed uint64, s *scenario.Scenario, out Outcome, play func(context.Context, *scenario.Scenario) (Outcome, error)) {
	small := Shrink(ctx, s, func(c *scenario.Scenario) bool {
		o, err := play(ctx, c)
		return err == nil && len(o.Problems) > 0
	}, 400)
	dir := os.Getenv("SOAK_OUT")
	if dir == "" {
		dir = os.TempDir()
	}
	path := filepath.Join(dir, s.Metadata.Name+".yaml")
	if err := os.WriteFile(path, Text(small), 0o644); err != nil {
		t.Error(err)
	}
	again, _ := play(ctx, small)
	t.Errorf("seed %d breaks an invariant:\n  %s\nmade smaller (berth simulate --check %s):\n  %s\nrepeat: go test ./sim/soak -count=1 -run '^%s$' -seeds=1 -first=%d",
		seed, list(out.Problems), path, list(again.Problems), t.Name(), seed)
}

// list returns the first problems, a line each.
func list(problems []string) string {
	text := ""
	for i, p := range problems {
		if i == 5 {
			return text + fmt.Sprintf("… and %d more", len(problems)-i)
		}
		text += p + "\n  "
	}
	return text
}

// TestFoundBefore plays the worlds in testdata, each of which once broke an
// invariant that its first line names.
func TestFoundBefore(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no worlds: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			runs, err := scenario.Load([]string{path})
			if err != nil {
				t.Fatal(err)
			}
			w, err := sim.New(runs[0], sim.Options{Check: true})
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if v := w.Stats().Violations; len(v) > 0 || s.PDBViolations > 0 {
				t.Errorf("broken: %v, %d budgets", v, s.PDBViolations)
			}
		})
	}
}

// TestShrink takes away what a failure doesn't need, and nothing that it does.
func TestShrink(t *testing.T) {
	for seed := range uint64(20) {
		s := Generate(seed)
		kind := "none"
		if len(s.Spec.Faults) > 0 {
			kind = s.Spec.Faults[0].Kind
		}
		fails := func(c *scenario.Scenario) bool { // needs one kind of fault, and three pods of a workload
			faults, pods := kind == "none", 0
			for _, f := range c.Spec.Faults {
				faults = faults || f.Kind == kind
			}
			for _, w := range c.Spec.Workload {
				pods = max(pods, w.Count)
			}
			return faults && pods >= 3
		}
		if !fails(s) {
			continue
		}
		small := Shrink(t.Context(), s, fails, 2000)
		if !fails(small) || len(small.Spec.Workload) != 1 || small.Spec.Workload[0].Count != 3 || len(small.Spec.Faults) > 1 ||
			len(small.Spec.NodeGroups) != 1 || len(small.Spec.Nodes) != 0 || len(small.Spec.Policy.Flags) != 0 {
			t.Errorf("seed %d is shrunk to\n%s", seed, Text(small))
		}
		if _, err := scenario.Parse("small.yaml", Text(small)); err != nil {
			t.Errorf("seed %d is shrunk to what can't be read: %v", seed, err)
		}
	}
}
