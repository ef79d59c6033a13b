package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// This file is berth status: where a live cluster stands, on one screen.

// statusFlags are the flags of berth status.
type statusFlags struct {
	reach  reach.Flags
	output string // text or json
	brief  bool   // one line
}

func statusCommand() *cobra.Command {
	f := &statusFlags{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show pending pods, nodes, ongoing actions and recent decisions of a live cluster on one screen",
		Long: `Status queries a running Berth for the state of the cluster: which pods are pending,
and why; how many nodes there are, why they are not removed, and what they cost; what
is being done now (scale-ups, node removals, preemptions); and the most recent
decisions. Times are UTC.

` + reachText,
		Example: `  kubectl berth status
  berth status --context staging
  berth status -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), program(cmd), cmd.OutOrStdout())
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.StringVarP(&f.output, "output", "o", "text", "text or json")
	fs.BoolVar(&f.brief, "brief", false, "print one line: what pods and nodes wait for")
	f.reach.Register(s.FlagSet("connection"))
	term.SetSections(cmd, s)
	return cmd
}

// run asks once and prints. called is what the user has typed to call this program: the status names
// the commands that say more.
func (f *statusFlags) run(ctx context.Context, called string, out io.Writer) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output is %q; it must be text or json", f.output)
	}
	if f.brief && f.output != "text" {
		return errors.New("--brief is a text; leave it out with --output=json")
	}
	raw, err := f.reach.Ask(ctx, observe.StatusPath)
	if err != nil {
		return err
	}
	if f.output == "json" {
		_, err := out.Write(raw)
		return err
	}
	s, err := term.ReadStatus(raw)
	if err != nil {
		return err
	}
	if f.brief {
		_, err := fmt.Fprintln(out, term.Brief(s))
		return err
	}
	return term.PrintStatus(out, s, called)
}
