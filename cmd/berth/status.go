package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
)

// This file is berth status: where a live cluster stands, on one screen.

// statusFlags are the flags of berth status.
type statusFlags struct {
	from   page.Source
	output *term.Output
	brief  bool // one line
}

func statusCommand() *cobra.Command {
	f := &statusFlags{output: term.NewOutput(term.Text, term.Wide)}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show pending pods, nodes, ongoing actions and recent decisions of a live cluster on one screen",
		Long: `Status queries a running Berth for the state of the cluster: which pods are pending,
and why; how many nodes there are, why they are not removed, and what they cost; what
is being done now (scale-ups, node removals, preemptions); and the most recent
decisions; -o wide also lists the nodes. Times are UTC.

` + reachText,
		Example: `  kubectl berth status
  berth status --context staging
  berth status -o jsonpath='{.pods.pending}'
  berth status --file examples/explain/staying.yaml`,
		Args:              term.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), program(cmd), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	f.output.Register(fs)
	fs.BoolVar(&f.brief, "brief", false, "print one line: what pods and nodes wait for")
	f.from.Register(fs, s.FlagSet("connection"))
	term.SetSections(cmd, s)
	f.from.Complete(cmd)
	f.output.Complete(cmd)
	return cmd
}

// run asks once and prints. called is what the user has typed to call this program: the status names
// the commands that say more.
func (f *statusFlags) run(ctx context.Context, called string, out, log io.Writer) error {
	own, err := f.output.Own()
	if err != nil {
		return err
	}
	if f.brief && own != term.Text {
		return term.Usage(errors.New("--brief is a text; omit --output"))
	}
	from, end, err := f.from.Open(ctx, log)
	if err != nil {
		return err
	}
	defer end()
	if own == "" {
		return f.output.PrintPath(ctx, out, from, "Overview", "overview")
	}
	s, err := term.ReadStatus(ctx, from)
	if err != nil {
		return err
	}
	if f.brief {
		_, err := fmt.Fprintln(out, term.Brief(s))
		return err
	}
	var nodes []v1alpha1.Node
	if own == term.Wide {
		if nodes, _, err = term.AllNodes(ctx, from); err != nil {
			return err
		}
	}
	return term.PrintStatus(out, s, nodes, called)
}
