package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/sim/report"
)

// This file is berth shadow report: what a running shadow has found, or one that has left its
// report in a file.

func shadowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Show what a shadow, which writes nothing, has found next to another scheduler",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(shadowReportCommand())
	return cmd
}

// shadowFlags are the flags of berth shadow report.
type shadowFlags struct {
	reach  reach.Flags
	file   string // path of a report as JSON, "" to ask a running shadow
	output string // text, json or html
}

func shadowReportCommand() *cobra.Command {
	f := &shadowFlags{}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Compare another scheduler's placements with Berth's",
		Long: `Report shows what a Berth with --shadow has found since it started: for how many pods
it agrees with the other scheduler, how long both took, and the ten largest
differences with the scores behind them. docs/shadow.md explains how to read it.

The shadow is queried over a port-forward through the API server, or with --server at
an address; you need the roles berth-viewer, or access to the path /debug/shadow. A
report saved with -o json can be read with --file after the shadow has stopped.`,
		Example: `  kubectl berth shadow report --pod kube-system/berth-5b8c9d7f6-x2x4z
  kubectl berth shadow report --pod kube-system/berth-5b8c9d7f6-x2x4z -o json > shadow.json
  berth shadow report --file shadow.json -o html > shadow.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.StringVar(&f.file, "file", "", "path of a report saved with -o json, to read instead of querying a running shadow")
	fs.StringVarP(&f.output, "output", "o", "text", "text, json or html")
	f.reach.Register(s.FlagSet("connection"))
	term.SetSections(cmd, s)
	return cmd
}

func (f *shadowFlags) run(ctx context.Context, out io.Writer) error {
	write := map[string]func(io.Writer, *observe.ShadowReport) error{
		"text": func(w io.Writer, r *observe.ShadowReport) error { return report.Shadow(w, &r.ShadowReport, r.At) },
		"html": func(w io.Writer, r *observe.ShadowReport) error { return page.ShadowReport(w, r) },
		"json": func(w io.Writer, r *observe.ShadowReport) error { return report.JSON(w, r) },
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
		if f.reach.Server == "" && f.reach.Pod == "" {
			return nil, errors.New("a shadow holds no Lease to find it by; set its pod with --pod NAMESPACE/NAME, its address with --server, or a saved report with --file")
		}
		raw, err = f.reach.Ask(ctx, observe.ShadowPath)
	} else if raw, err = os.ReadFile(from); err != nil {
		err = fmt.Errorf("--file: %w; it must be the path of a report saved with berth shadow report -o json", err)
	}
	if err != nil {
		return nil, err
	}
	return observe.ReadShadowReport(raw, from)
}
