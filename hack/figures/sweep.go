package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// This file compares adaptive launch control with every fixed limit, on infrastructures that bear
// different numbers of launches at a time.

// infrastructure is a scenario of examples/launch-control.
type infrastructure struct {
	Name  string // of the file
	Title string
	// Allowed is how many times the time of the best fixed limit the adaptive one may take.
	Allowed float64
	// BestFixed is the best fixed limit that a sweep found with the scenario's seed: tests
	// compare with it alone.
	BestFixed int
}

// infrastructures returns all of them: first the calibrated one, then three that the
// constants of launch control were checked on, then four that were first played when the
// constants were chosen.
func infrastructures() []infrastructure {
	return []infrastructure{
		{"night", "The calibrated night", 1.15, 104},
		{"half-bandwidth", "Half the bandwidth", 1.25, 84},
		{"throttled-registry", "A registry that throttles each connection", 1.25, 100},
		{"failing-launches", "5 % of the launches fail at random", 1.25, 104},
		{"double-bandwidth", "Twice the bandwidth", 1.25, 134},
		{"faster-registry", "A registry that throttles less", 1.25, 100},
		{"more-failures", "10 % of the launches fail at random", 1.25, 114},
		{"slow-boot", "A slow boot, a smaller image", 1.25, 168},
	}
}

// oneRun is how a batch went under one limit.
type oneRun struct {
	Limit            launching.Limit
	Seconds          float64 // until all pods run
	Launched, Failed int     // instances that became nodes, and that didn't
	Samples          []sim.Sample
	Summary          *scenario.Summary
}

// FailedShare returns the share of launches that failed.
func (r oneRun) FailedShare() float64 {
	return float64(r.Failed) / float64(max(r.Launched+r.Failed, 1))
}

// sweepOptions are how an infrastructure is played. Zero values are the scenario's.
type sweepOptions struct {
	Folder string // of the scenarios
	Seed   uint64
	// Until ends a run early, at a virtual time. Then Seconds is that time, unless all pods
	// run.
	Until time.Duration
}

// playUnder plays an infrastructure, or any scenario of the folder, under a limit.
func playUnder(ctx context.Context, name string, limit launching.Limit, o sweepOptions) (oneRun, error) {
	runs, err := scenario.Load([]string{filepath.Join(o.Folder, name+".yaml")})
	if err != nil {
		return oneRun{}, err
	}
	r := runs[0]
	r.Autoscale.MaxNodesLaunching = limit
	if o.Seed != 0 {
		r.Spec.Seed = o.Seed
	}
	r.Spec.End.At.Duration = cmp.Or(o.Until, r.Spec.End.At.Duration)
	w, err := sim.New(r, sim.Options{})
	if err != nil {
		return oneRun{}, err
	}
	s, err := w.Run(ctx)
	if err != nil {
		return oneRun{}, fmt.Errorf("playing %s under the limit %s: %w", name, limit, err)
	}
	if v := w.Stats().Violations; len(v) > 0 {
		return oneRun{}, fmt.Errorf("%s under the limit %s: %s", name, limit, v[0])
	}
	seconds := s.TimeToRunning.Max
	if s.Pods.Running+s.Pods.Completed < s.Pods.Total {
		seconds = r.Spec.End.Latest().Seconds()
	}
	return oneRun{limit, seconds, s.Nodes.Launched, s.Nodes.FailedLaunches, w.Stats().Samples, s}, nil
}

// bestOf returns the run in which all pods ran soonest.
func bestOf(runs []oneRun) oneRun {
	return slices.MinFunc(runs, func(a, b oneRun) int {
		if a.Seconds < b.Seconds {
			return -1
		}
		return 1
	})
}

// underFixed plays an infrastructure under fixed limits: tens first, and then each second one
// around the best of them. The runs are in the order of their limits.
func underFixed(ctx context.Context, name string, o sweepOptions) ([]oneRun, error) {
	var runs []oneRun
	play := func(limits ...int) error {
		for _, n := range limits {
			if slices.ContainsFunc(runs, func(r oneRun) bool { return int(r.Limit) == n }) {
				continue
			}
			r, err := playUnder(ctx, name, launching.Limit(n), o)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		return nil
	}
	for n := 20; n <= 160; n += 10 {
		if err := play(n); err != nil {
			return nil, err
		}
	}
	if err := play(200, 250, 300, 400, 500); err != nil {
		return nil, err
	}
	best := int(bestOf(runs).Limit)
	for n := best - 8; n <= best+8; n += 2 {
		if err := play(n); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(runs, func(a, b oneRun) int { return int(a.Limit - b.Limit) })
	return runs, nil
}
