package soak

import (
	"context"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// This file plays one world and collects what it breaks.

// Outcome is how a world ended. A world has passed when Problems is empty.
type Outcome struct {
	Digest   string
	Problems []string // broken invariants; nil when all hold
	Unused   []string // sim.Stats.Unused
	Devices  sim.DeviceStats
	Summary  *scenario.Summary
}

// Text writes a scenario as a file, which scenario.Parse reads to the same scenario.
func Text(s *scenario.Scenario) []byte {
	raw, err := yaml.Marshal(s)
	if err != nil {
		panic(err) // plain data
	}
	return raw
}

// Play runs a world with every check on. A scenario that can't be read is an
// error, a world that breaks an invariant an Outcome. That it goes through the text finds scenarios
// which a file can't express. Once ctx is done the outcome means nothing.
func Play(ctx context.Context, s *scenario.Scenario, o sim.Options) (out Outcome, err error) {
	run, err := scenario.Parse(s.Metadata.Name+".yaml", Text(s))
	if err != nil {
		return out, err
	}
	return playRun(ctx, run, o)
}

// playRun is Play of a scenario that was read. A panic is a problem of the world like any other, so
// that one world doesn't end the test and can be shrunk.
func playRun(ctx context.Context, run *scenario.Run, o sim.Options) (out Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			out.Problems = append(out.Problems, fmt.Sprintf("panic: %v", p))
		}
	}()
	o.Check = true
	w, err := sim.New(run, o)
	if err != nil {
		return out, err
	}
	sum, err := w.Run(ctx)
	if ctx.Err() != nil {
		return out, err
	}
	if err != nil {
		out.Problems = append(out.Problems, err.Error())
		return out, nil
	}
	out.Digest, out.Summary, out.Unused, out.Devices = sum.Digest, sum, w.Stats().Unused, w.Stats().Devices
	out.Problems = append(out.Problems, w.Stats().Violations...)
	if sum.PDBViolations > 0 {
		out.Problems = append(out.Problems, fmt.Sprintf("%d violations of disruption budgets", sum.PDBViolations))
	}
	return out, nil
}
