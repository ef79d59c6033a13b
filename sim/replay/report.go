package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/berthproject/berth/core/step"
)

// This file says what a replay has shown.

// Report is what berth simulate --replay prints. Fields may be added, not renamed.
type Report struct {
	Steps       int            `json:"steps"`
	Decisions   map[string]int `json:"decisions"`
	Digest      string         `json:"digest"`
	Recorded    string         `json:"recorded,omitempty"` // the digest that the recording has
	Note        string         `json:"note"`
	Warning     string         `json:"warning,omitempty"` // the rules followed aren't the recording's
	Differences []Difference   `json:"differences,omitempty"`

	compared bool // another policy was played, too
}

// Report returns what a replay has shown, compared with nothing yet.
func (r *Result) Report() *Report {
	return &Report{Steps: r.Steps, Decisions: byKind(r.Decisions), Digest: r.Digest, Recorded: r.Recorded, Note: r.Note, Warning: r.Warning}
}

// Compare adds what another policy decides otherwise than the recorded one.
func (r *Report) Compare(recorded, other *Result) {
	r.compared, r.Warning, r.Differences = true, other.Warning, Diff(recorded.Decisions, other.Decisions)
}

// PrintJSON writes the report as JSON.
func (r *Report) PrintJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Print writes the report as text.
func (r *Report) Print(out io.Writer) error {
	decisions := 0
	for _, n := range r.Decisions {
		decisions += n
	}
	fmt.Fprintf(out, "replayed %d steps with %d decisions, digest %s\n%s\n", r.Steps, decisions, r.Digest, r.Note)
	if r.Warning != "" {
		fmt.Fprintf(out, "warning: %s\n", r.Warning)
	}
	if !r.compared {
		return nil
	}
	return printDifferences(out, r.Differences)
}

// maxDifferences is how many differences text output lists; JSON has all.
const maxDifferences = 50

// printDifferences lists where the other policy decides otherwise.
func printDifferences(w io.Writer, differences []Difference) error {
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

// byKind counts decisions by their kind.
func byKind(list []step.Decision) map[string]int {
	out := map[string]int{}
	for i := range list {
		out[string(list[i].Kind)]++
	}
	return out
}

// WriteDecisions writes the decisions to a file as a ledger, a line of JSON for each.
func (r *Result) WriteDecisions(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	l := step.Ledger{To: file}
	l.Add(r.Decisions)
	return errors.Join(file.Close(), l.Err())
}
