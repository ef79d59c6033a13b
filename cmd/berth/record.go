package main

import (
	"errors"
	"log/slog"

	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/sim/replay"
)

// This file records a live run for berth simulate --replay (--record).

// recorded calls run, with a recorder among the hooks if the flags ask for a recording.
// A recording has to begin with the first input of the core, so a process that records
// is idle until it is the leader, where another would watch the cluster.
func (f *runFlags) recorded(o live.Options, log *slog.Logger, run func(live.Options) error) error {
	if f.record == "" {
		return run(o)
	}
	r, err := f.recorder(o)
	if err != nil {
		return err
	}
	r.Ended = func(err error) { log.Warn("recording", "err", err) }
	o.Hooks, o.StandBy = append(o.Hooks, r), live.Idle
	if err := errors.Join(run(o), r.Close()); err != nil {
		return err
	}
	log.Info("recorded", "digest", r.Digest())
	return nil
}

// recorder creates the file that the flags name and writes its header: what a replay
// needs to make the same core.
func (f *runFlags) recorder(o live.Options) (*replay.Recorder, error) {
	rules, _, err := f.gates.Check(o.Schema.Version())
	if err != nil {
		return nil, err
	}
	cfg := o.Core
	h := replay.Header{Seed: f.seed, Kubernetes: rules.Version.String(), Gates: rules.Gates, Autoscale: cfg.Autoscale, ExternalScheduler: cfg.ExternalScheduler, Shadow: cfg.Shadow}
	if f.config.Path != "" {
		if h.Scheduler, err = f.config.Text(); err != nil {
			return nil, err
		}
	}
	return replay.Create(f.record, f.recordLimit, h)
}
