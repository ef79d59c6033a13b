package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is berth shadow report: what a running shadow has found, or one that has left its
// report in a file.

// shadowCommand groups what there is to do with a shadow.
func shadowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Show what a shadow, which writes nothing, has found next to another scheduler",
	}
	cmd.AddCommand(shadowReportCommand())
	return cmd
}

// shadowFlags are the flags of berth shadow report.
type shadowFlags struct {
	reach  reach.Flags
	file   string // path of a report as JSON, "" to ask a running shadow
	output *term.Output
}

// shadowReportCommand returns berth shadow report.
func shadowReportCommand() *cobra.Command {
	f := &shadowFlags{output: term.NewOutput(term.Text, term.HTML)}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Compare another scheduler's placements with Berth's",
		Long: `Report shows what a Berth with --shadow has found since it started: for how many pods
it agrees with the other scheduler, how long both took, and the ten largest
differences with the scores behind them. docs/shadow.md explains how to read it.

A shadow holds no Lease: its pod is found by the label app.kubernetes.io/name=berth in
the namespace of --lease, unless --pod names it. It is queried over a port-forward
through the API server, or with --server at an address; you need the ClusterRole berth-viewer. A
report saved with -o json can be read with --file after the shadow has stopped.`,
		Example: `  kubectl berth shadow report
  kubectl berth shadow report --pod kube-system/berth-5b8c9d7f6-x2x4z -o json > shadow.json
  berth shadow report --file shadow.json -o html > shadow.html`,
		Args: term.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.StringVar(&f.file, "file", "", "path of a report saved with -o json, to read instead of querying a running shadow")
	f.output.Register(fs)
	f.reach.Register(s.FlagSet("connection"))
	term.SetSections(cmd, s)
	f.reach.Complete(cmd)
	f.output.Complete(cmd)
	return cmd
}

// run prints the report; a report of another version prints what this one knows of it.
func (f *shadowFlags) run(ctx context.Context, out io.Writer) error {
	own, err := f.output.Own()
	if err != nil {
		return err
	}
	r, err := f.read(ctx)
	if err != nil {
		return err
	}
	switch own {
	case term.Text:
		return report.Shadow(out, term.ShadowOf(r), r.At)
	case term.HTML:
		return page.ShadowReport(out, r)
	}
	return f.output.PrintValue(out, "Shadow", r)
}

// read returns the report of a file or of a running shadow.
func (f *shadowFlags) read(ctx context.Context) (*v1alpha1.Shadow, error) {
	if f.file != "" {
		if err := f.reach.RefuseBeside("--file"); err != nil {
			return nil, term.Usage(err)
		}
		raw, err := scenario.ReadFile(f.file)
		if err != nil {
			return nil, term.Usage(fmt.Errorf("--file: %w; it must be the path of a report saved with berth shadow report -o json", err))
		}
		r, err := term.ReadShadow(raw, f.file)
		return r, term.Usage(err)
	}
	if err := f.reach.Validate(); err != nil {
		return nil, term.Usage(err)
	}
	// A shadow holds no Lease by which it could be found.
	f.reach.Shadow = true
	c, err := f.reach.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return term.Read[v1alpha1.Shadow](ctx, c, "shadow")
}
