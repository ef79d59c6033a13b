package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/sim/replay"
	printing "github.com/berthproject/berth/sim/report"
)

// This file is berth simulate --replay: it plays a recording, and under another policy
// a second time, and prints what differs. What must hold: the command fails when the
// replay has decided otherwise than the recording says.

// playRecording replays a recording, and a second time under the policy of the flags, if
// they give one.
func (f *simulateFlags) playRecording(cmd *cobra.Command) error {
	p, err := f.policy()
	if err != nil {
		return term.Usage(err)
	}
	r, err := replay.Play(cmd.Context(), f.replay, replay.Policy{})
	exact := !errors.Is(err, replay.ErrOtherRules)
	if !exact && p != (replay.Policy{}) {
		r, err = replay.Play(cmd.Context(), f.replay, p)
	}
	if err != nil {
		return term.FileError(cmd.Context(), err)
	}
	if f.decisions != "" {
		if err := r.WriteDecisions(f.decisions); err != nil {
			return fmt.Errorf("--decisions: %w", err)
		}
	}
	report := r.Report()
	if exact && p != (replay.Policy{}) {
		other, err := replay.Play(cmd.Context(), f.replay, p)
		if err != nil {
			return term.FileError(cmd.Context(), err)
		}
		report.Compare(r, other)
	}
	write, out := report.Print, printing.PrintableWriter(cmd.OutOrStdout())
	if f.output == "json" {
		write, out = report.PrintJSON, cmd.OutOrStdout()
	}
	if err := write(out); err != nil {
		return err
	}
	if exact && r.Recorded != "" && r.Recorded != r.Digest {
		return fmt.Errorf("the recording ends with digest %s; the replay decided differently (was the recording made by another version of Berth?)", r.Recorded)
	}
	return nil
}

// policy returns the policy that --config and --autoscaler-flag give; the zero value
// stands for that of the recording.
func (f *simulateFlags) policy() (p replay.Policy, err error) {
	p.Version, p.Scheduler = f.emulated.Or(0), f.config
	if len(f.flags) > 0 {
		a, err := config.ParseAutoscaler(f.flags)
		if err != nil {
			return p, fmt.Errorf("--autoscaler-flag: %w", err)
		}
		p.Autoscale = &a
	}
	return p, nil
}
