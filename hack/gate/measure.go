package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/berthproject/berth/internal/test/gate"
)

// benchmark is a run of benchmarks of a package.
type benchmark struct {
	dir, pkg, which string
	long            string // of each: a time, or a number of operations for what is counted
	figures         func(io.Reader) ([]gate.Figure, error)
}

// counts are the same in each run of the same code.
var counts = []benchmark{
	// The first placements allocate as often in each run, but not those of a time.
	{".", "./core/engine", "Place$/nodes=5000$|Refusal", "20000x", gate.AllocsOf},
	{".", "./core/autoscaler/planner", "Plan$|PlanWhileLaunching", "1x", gate.CountsOf},
	{".", "./core/autoscaler/scaledown", "Pass/1000", "1x", gate.CountsOf},
	{".", "./drive", "Scan", "20x", gate.CountsOf},
}

// ratios are between Berth and kube-scheduler's own algorithm in one run.
var ratios = []benchmark{
	{"devcluster", "./conformance", "Placement/case=(plain|service|hostname|hard_zone_spread,_3|500_classes_of_8)", "500ms", gate.Ratios},
}

// times are of the machine.
var times = []benchmark{
	{".", "./core/autoscaler/planner", "Plan$|PlanWhileLaunching|PlanForNothing", "3x", gate.TimesOf},
	{".", "./core/autoscaler/scaledown", "Pass", "2x", gate.TimesOf},
	{".", "./drive", "Scan", "50x", gate.TimesOf},
}

// measure returns the figures that the settings ask for.
func measure(ctx context.Context, s settings) (out []gate.Figure, err error) {
	var all []benchmark
	if !s.counts {
		all = append(all, ratios...)
	}
	all = append(all, counts...)
	full := !s.counts && (s.record || s.night)
	if full {
		all = append(all, times...)
	}
	for _, b := range all {
		printed, err := b.run(ctx)
		if err != nil {
			return nil, err
		}
		figures, err := b.figures(bytes.NewReader(printed))
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", b.pkg, err)
		}
		out = append(out, figures...)
	}
	if full && s.devcluster {
		rates, err := rates(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, rates...)
	}
	return out, nil
}

// run runs the benchmarks five times, since the smallest of the results count, and returns what they
// print, which people see as well.
func (b benchmark) run(ctx context.Context) ([]byte, error) {
	return output(ctx, b.dir, "go", "test", b.pkg, "-run", "^$", "-bench", b.which, "-benchtime", b.long, "-count", "5", "-benchmem", "-timeout", "30m")
}

// rates lets Berth place the pods of each case of the dev cluster's benchmark.
func rates(ctx context.Context) ([]gate.Figure, error) {
	printed, err := output(ctx, ".", "devcluster/bin/devcluster", "bench", "--scheduler", "berth", "--ceiling=false", "-o", "json")
	if err != nil {
		return nil, fmt.Errorf("%w (make build devcluster builds what it needs)", err)
	}
	return gate.RatesOf(bytes.NewReader(printed))
}

// output runs a command and returns what it prints.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, io.MultiWriter(&out, os.Stdout), os.Stderr
	// An interrupt goes to the go command, which ends the tests that it runs and removes its files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("measuring %s in %s: %w", args, dir, err)
	}
	return out.Bytes(), nil
}
