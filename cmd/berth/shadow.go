package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim/report"
)

// This file is berth shadow report: what a running shadow has found, or one that has left its
// report in a file.

func shadowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Say what a Berth that writes nothing has found beside another scheduler",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(shadowReportCommand())
	return cmd
}

// shadowFlags are the flags of berth shadow report.
type shadowFlags struct {
	reach  reachFlags
	file   string // path of a report as JSON, "" to ask a running shadow
	output string // text, json or html
}

func shadowReportCommand() *cobra.Command {
	f := &shadowFlags{}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Compare what another scheduler did with what Berth would have done",
		Long: `Report says what a Berth with --shadow has found since it began: on how many pods
it agrees with the other scheduler, how long both took, and the ten largest
differences with what makes up the scores. docs/shadow.md says how to read it.

The shadow is asked over a port-forward through the API server, or with --server at
an address; who asks needs the roles berth-viewer, or the path /debug/shadow. The
report of -o json can be kept, and read with --file after the shadow has ended.`,
		Example: `  kubectl berth shadow report --pod kube-system/berth-5b8c9d7f6-x2x4z
  kubectl berth shadow report --pod kube-system/berth-5b8c9d7f6-x2x4z -o json > shadow.json
  berth shadow report --file shadow.json -o html > shadow.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f.reach.register(cmd.Flags())
	cmd.Flags().StringVar(&f.file, "file", "", "path of a report of -o json, to read it in place of asking a running shadow")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, json or html")
	return cmd
}

func (f *shadowFlags) run(ctx context.Context, out io.Writer) error {
	write := map[string]func(io.Writer, *observe.ShadowReport) error{
		"text": func(w io.Writer, r *observe.ShadowReport) error { return report.Shadow(w, &r.ShadowReport, r.At) },
		"html": func(w io.Writer, r *observe.ShadowReport) error { return report.ShadowHTML(w, &r.ShadowReport, r.At) },
		"json": writeJSON,
	}[f.output]
	if write == nil {
		return fmt.Errorf("--output is %q; it must be text, json or html", f.output)
	}
	r, err := f.read(ctx)
	if err != nil {
		return err
	}
	return write(out, r)
}

// read returns the report of a file or of a running shadow.
func (f *shadowFlags) read(ctx context.Context) (*observe.ShadowReport, error) {
	from := f.file
	var raw []byte
	var err error
	if from == "" {
		from = "the shadow"
		if f.reach.server == "" && f.reach.pod == "" {
			return nil, errors.New("a shadow holds no Lease by which it could be found; give its pod as --pod NAMESPACE/NAME, its address as --server, or a report as --file")
		}
		raw, err = f.reach.ask(ctx, observe.ShadowPath)
	} else if raw, err = os.ReadFile(from); err != nil {
		err = fmt.Errorf("--file: %w; give the path of a report of berth shadow report -o json", err)
	}
	if err != nil {
		return nil, err
	}
	r := &observe.ShadowReport{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading the report of %s: %w; it must be one of berth shadow report -o json", from, err)
	}
	if r.At.IsZero() || r.Verdicts == nil {
		return nil, fmt.Errorf("reading the report of %s: %w", from, errors.New("it has no time, or no verdicts; it must be one of berth shadow report -o json"))
	}
	return r, nil
}

func writeJSON(w io.Writer, r *observe.ShadowReport) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
