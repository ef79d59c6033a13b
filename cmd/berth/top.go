package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// This file is berth top: where a live cluster stands, drawn again and again.

// topFlags are the flags of berth top. Each interval costs Berth one question (berth status costs the
// same).
type topFlags struct {
	reach    reach.Flags
	interval time.Duration
	once     bool
}

// minInterval is how often the core is asked at most.
const minInterval = 500 * time.Millisecond

func topCommand() *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show a live view of nodes and pending pods, with reasons and costs",
		Long: `Top shows what berth status does, and each node with its utilization, its cost and why
it is not removed, and refreshes until q or Ctrl-C. Nodes that are being removed come
first, then unready nodes, then removable ones, then the others by utilization, the
least utilized first. Without a terminal it prints everything once.

` + reachText,
		Example: `  kubectl berth top
  berth top --interval 5s
  berth top --once`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.DurationVar(&f.interval, "interval", 2*time.Second, "refresh interval")
	fs.BoolVar(&f.once, "once", false, "print one screen and exit")
	f.reach.Register(s.FlagSet("connection"))
	term.SetSections(cmd, s)
	return cmd
}

// run draws until the user quits, or prints one screen with --once. The terminal is internal/term's.
func (f *topFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	if f.interval < minInterval {
		return fmt.Errorf("--interval is %s; it must be at least %s", f.interval, minInterval)
	}
	top := term.Top{Berth: &f.reach, Interval: f.interval}
	if f.once {
		return top.Print(ctx, out)
	}
	return top.Run(ctx, in, out)
}
