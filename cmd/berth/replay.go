package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/tools/replay"
)

// This file is berth simulate --replay: it plays a recording, and under another policy
// a second time, and prints what differs. What must hold: the command fails when the
// replay has decided otherwise than the recording says.

// maxDifferences is how many differences text output lists; JSON has all.
const maxDifferences = 50

// replayed is what -o json prints of a replay. Fields may be added, not renamed.
type replayed struct {
	Steps       int                 `json:"steps"`
	Decisions   map[string]int      `json:"decisions"`
	Digest      string              `json:"digest"`
	Recorded    string              `json:"recorded,omitempty"` // the digest that the recording has
	Note        string              `json:"note"`
	Differences []replay.Difference `json:"differences,omitempty"`
}

// playRecording replays a recording, and a second time under the policy of the flags, if
// they give one.
func (f *simulateFlags) playRecording(cmd *cobra.Command) error {
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
	compared := p != (replay.Policy{})
	if compared {
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
		err = enc.Encode(out)
	} else {
		fmt.Fprintf(w, "replayed %d steps with %d decisions, digest %s\n%s\n", r.Steps, len(r.Decisions), r.Digest, r.Note)
		if compared {
			err = printDifferences(w, out.Differences)
		}
	}
	if err != nil {
		return err
	}
	if r.Recorded != "" && r.Recorded != r.Digest {
		return fmt.Errorf("the recording ends with digest %s; the replay decided differently (was the recording made by another version of Berth?)", r.Recorded)
	}
	return nil
}

// printDifferences lists where the other policy decides otherwise.
func printDifferences(w io.Writer, differences []replay.Difference) error {
	fmt.Fprintf(w, "%d decision(s) differ under the other policy\n", len(differences))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for i, d := range differences {
		if i == maxDifferences {
			fmt.Fprintf(t, "… and %d more (-o json lists all)\n", len(differences)-i)
			break
		}
		fmt.Fprintf(t, "%s\trecorded: %s\tnow: %s\n", d.What, d.Recorded, d.Now)
	}
	return t.Flush()
}

// policy returns the policy that --config and --autoscaler-flag give; the zero value
// stands for that of the recording.
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

// byKind counts decisions by their kind.
func byKind(list []step.Decision) map[string]int {
	out := map[string]int{}
	for i := range list {
		out[string(list[i].Kind)]++
	}
	return out
}

// writeDecisions writes a ledger, a line of JSON for each decision.
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
