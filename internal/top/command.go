package top

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
)

// options are the flags of the command.
type options struct {
	from     page.Source
	interval time.Duration
	once     bool
}

// minInterval is how often the core is asked at most.
const minInterval = 500 * time.Millisecond

// Command returns berth top. reached says in its help how a running Berth is reached.
func Command(reached string) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show a live view of nodes, node groups and pending pods, with reasons and costs",
		Long: `Top shows the nodes with their utilization, their cost and why they are not removed, the
node groups, and the pending pods, and follows what changes until q or Ctrl-C. Rows can
be sorted (s), filtered (/) and grouped (g), and enter explains the one under the
cursor; ? lists all keys. Nodes that are being removed come first, then unready ones,
then removable ones, then the others, the least utilized first. Another instance that
becomes the leader is followed. Without a terminal it prints everything once.

` + reached,
		Example: `  kubectl berth top
  berth top --interval 5s
  berth top --once
  berth top --file examples/explain/staying.yaml`,
		Args:              term.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.DurationVar(&o.interval, "interval", 2*time.Second, "minimum time between two refreshes of the tables")
	fs.BoolVar(&o.once, "once", false, "print one screen and exit")
	o.from.Register(fs, s.FlagSet("connection"))
	term.SetSections(cmd, s)
	o.from.Complete(cmd)
	return cmd
}

// run draws until the user quits, or prints one screen with --once.
func (o *options) run(ctx context.Context, in io.Reader, out, log io.Writer) error {
	if o.interval < minInterval {
		return term.Usage(fmt.Errorf("--interval is %s; it must be at least %s", o.interval, minInterval))
	}
	t := Top{Interval: o.interval, Open: func(ctx context.Context) (term.Source, func(), error) { return o.from.Open(ctx, log) }}
	if o.once {
		return t.Print(ctx, out)
	}
	return t.Run(ctx, in, out)
}
