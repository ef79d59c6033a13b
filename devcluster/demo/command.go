package demo

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// Command returns the command of the demo, with the trace as a subcommand. Paths are relative to the
// repository's root, where make runs it.
func Command() *cobra.Command {
	n := Night{}
	cmd := &cobra.Command{
		Use: "demo", Short: "Play a night batch that scales a cluster up from nothing and back, and drain a part-full cluster of services", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n.Out = cmd.OutOrStdout()
			klog.SetLogger(logr.Discard()) // the client library says of watches what the table shows
			return n.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&n.Berth, "berth", "bin/berth", "path of the berth binary")
	cmd.Flags().StringVar(&n.Groups, "groups", "examples/demo/groups.yaml", "path of the node groups' file")
	cmd.Flags().IntVar(&n.Scale, "scale", 100, "percent of the batch's 2,000 pods")
	cmd.Flags().IntVar(&n.Services, "services", 14, "services of 10 pods that follow the batch, on two nodes for each (0: none)")
	cmd.Flags().StringVar(&n.Record, "record", "", "have Berth record its inputs to this file, for berth simulate --replay")
	cmd.AddCommand(traceCommand())
	return cmd
}

// traceCommand returns the command that places a trace. It is made to fail when Berth costs much more
// than the API server's own work for the same pods.
func traceCommand() *cobra.Command {
	t := Trace{}
	cmd := &cobra.Command{
		Use: "trace DIR", Short: "Place the pods of an openb trace on its nodes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Dir, t.Out = args[0], cmd.OutOrStdout()
			return t.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&t.Berth, "berth", "bin/berth", "path of the berth binary")
	cmd.Flags().IntVar(&t.MaxPods, "max-pods", 0, "stop after so many pods (0: all)")
	cmd.Flags().DurationVar(&t.Limit, "limit", 10*time.Minute, "how long it may take")
	cmd.Flags().Float64Var(&t.MaxCPUShare, "max-cpu-share", 1.0/3, "what Berth may use of the API server's CPU time (0: anything)")
	return cmd
}
