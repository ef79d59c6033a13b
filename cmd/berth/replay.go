package main

import (
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/berthproject/berth/core/step"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/tools/replay"
)

// replayed is what -o json prints of a replay.
type replayed struct {
	Steps       int                 `json:"steps"`
	Decisions   map[string]int      `json:"decisions"`
	Digest      string              `json:"digest"`
	Recorded    string              `json:"recorded,omitempty"`
	Note        string              `json:"note"`
	Differences []replay.Difference `json:"differences,omitempty"`
}

// again replays a recording, and under another policy says what differs.
func (f *simulateFlags) again(cmd *cobra.Command) error {
	p, err := f.policy()
	if err != nil {
		return err
	}
	r, err := replay.Play(cmd.Context(), f.replay, replay.Policy{})
	if err != nil {
		return err
	}
	if f.decisions != "" {
		if err := writeDecisions(f.decisions, r.Decisions); err != nil {
			return err
		}
	}
	out := replayed{Steps: r.Steps, Decisions: byKind(r.Decisions), Digest: r.Digest, Recorded: r.Recorded, Note: r.Note}
	if p != (replay.Policy{}) {
		other, err := replay.Play(cmd.Context(), f.replay, p)
		if err != nil {
			return err
		}
		out.Differences = replay.Diff(r.Decisions, other.Decisions)
	}
	w := cmd.OutOrStdout()
	if f.output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(out); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w, "replayed %d steps with %d decisions, digest %s\n%s\n", r.Steps, len(r.Decisions), r.Digest, r.Note)
		if p != (replay.Policy{}) {
			fmt.Fprintf(w, "under the other policy %d decisions differ\n", len(out.Differences))
			t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
			for i, d := range out.Differences {
				if i == 50 {
					fmt.Fprintf(t, "… and %d more (-o json has all)\n", len(out.Differences)-i)
					break
				}
				fmt.Fprintf(t, "%s\trecorded: %s\tnow: %s\n", d.What, d.Recorded, d.Now)
			}
			if err := t.Flush(); err != nil {
				return err
			}
		}
	}
	if r.Recorded != "" && r.Recorded != r.Digest {
		return fmt.Errorf("the recording ends with digest %s; the replay has decided otherwise (was it made by another version of Berth?)", r.Recorded)
	}
	return nil
}

func (f *simulateFlags) policy() (p replay.Policy, err error) {
	if f.config != "" {
		s, err := config.Load(f.config)
		if err != nil {
			return p, err
		}
		p.Scheduler = &s
	}
	if len(f.flags) > 0 {
		a, err := config.ParseAutoscaler(f.flags)
		if err != nil {
			return p, fmt.Errorf("--autoscaler-flag: %w", err)
		}
		p.Autoscale = &a
	}
	return p, nil
}

func byKind(list []step.Decision) map[string]int {
	out := map[string]int{}
	for i := range list {
		out[string(list[i].Kind)]++
	}
	return out
}

func writeDecisions(path string, list []step.Decision) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--decisions: %w", err)
	}
	l := step.Ledger{To: file}
	l.Add(list)
	if err := file.Close(); err != nil {
		return fmt.Errorf("--decisions: %w", err)
	}
	return l.Err()
}
