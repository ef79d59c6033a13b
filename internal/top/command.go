package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/internal/top"
)

// This file is berth top: where a live cluster stands, drawn again and again.

// topFlags are the flags of berth top.
type topFlags struct {
	from     page.Source
	interval time.Duration
	once     bool
}

// minInterval is how often the core is asked at most.
const minInterval = 500 * time.Millisecond

func topCommand() *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show a live view of nodes, node groups and pending pods, with reasons and costs",
		Long: `Top shows the nodes with their utilization, their cost and why they are not removed, the
node groups, and the pending pods, and refreshes until q or Ctrl-C. Rows can be
sorted (s), filtered (/) and grouped (g), and enter explains the one under the
cursor; ? lists all keys. Nodes that are being removed come first, then unready ones,
then removable ones, then the others, the least utilized first. Another instance that
becomes the leader is followed. Without a terminal it prints everything once.

` + reachText,
		Example: `  kubectl berth top
  berth top --interval 5s
  berth top --once
  berth top --file examples/explain/staying.yaml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.DurationVar(&f.interval, "interval", 2*time.Second, "refresh interval")
	fs.BoolVar(&f.once, "once", false, "print one screen and exit")
	f.from.Register(fs, s.FlagSet("connection"))
	term.SetSections(cmd, s)
	f.from.Complete(cmd)
	return cmd
}

// run draws until the user quits, or prints one screen with --once.
func (f *topFlags) run(ctx context.Context, in io.Reader, out, log io.Writer) error {
	if f.interval < minInterval {
		return term.Usage(fmt.Errorf("--interval is %s; it must be at least %s", f.interval, minInterval))
	}
	t := top.Top{Interval: f.interval, Open: func(ctx context.Context) (term.Source, func(), error) { return f.from.Open(ctx, log) }}
	if f.once {
		return t.Print(ctx, out)
	}
	return t.Run(ctx, in, out)
}
