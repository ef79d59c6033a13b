package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/devcluster/bench"
	"github.com/berthproject/berth/devcluster/demo"
)

// sizeCommand returns the command size. The bound on memory is there to notice when Berth
// needs more than it did.
func sizeCommand() *cobra.Command {
	z := demo.Size{}
	var memory int64
	cmd := &cobra.Command{
		Use: "size", Short: "Measure Berth's speed and memory with many nodes and pods", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The flag is in MiB, the field in bytes.
			z.Out, z.MaxMemory = cmd.OutOrStdout(), memory<<20
			return z.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&z.Berth, "berth", "bin/berth", "path of the berth binary")
	cmd.Flags().IntVar(&z.Nodes, "nodes", 5000, "number of nodes")
	cmd.Flags().IntVar(&z.Pods, "pods", 50000, "number of pods")
	cmd.Flags().DurationVar(&z.Limit, "limit", 15*time.Minute, "how long it may take")
	cmd.Flags().Int64Var(&memory, "max-memory", 600, "MiB that Berth may take (0: anything)")
	cmd.Flags().IntVar(&z.Rate, "rate", 0, "pods that are created in a second (0: as many as can be)")
	cmd.Flags().BoolVar(&z.Shadow, "shadow", false, "measure a shadow beside Berth, too")
	cmd.Flags().DurationVar(&z.WaitAtEnd, "settle", 0, "how long to wait at the end, with the cluster up")
	return cmd
}

// viewersCommand returns the command viewers.
// Only differences between windows of one run mean something: latency depends on the
// machine.
func viewersCommand() *cobra.Command {
	v := bench.Viewing{}
	var output string
	cmd := &cobra.Command{
		Use: "viewers", Short: "Measure what viewers of the web page cost the placement of pods", Args: cobra.NoArgs,
		Long: `Viewers has pods come at a rate to a Berth that nobody looks at, then in turn
without viewers, with viewers who have the page's charts, its pending pods and all
nodes open, and with some more who open a stream and read nothing. It prints for each
how long pods wait, from when the API server is asked to create one until a watch
shows it bound; by how much p99 is above that of the windows without viewers, as the
median of the rounds; and Berth's memory, resident and at its peak.`,
		Example: `  devcluster viewers
  devcluster viewers --nodes 500 --rate 50 --window 5s --rounds 2`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Checked before minutes are spent on measuring.
			if output != "text" && output != "json" {
				return fmt.Errorf("-o is %q; it must be text or json", output)
			}
			v.Progress = cmd.ErrOrStderr()
			kinds, err := v.Do(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(kinds)
			}
			return bench.PrintViewing(cmd.OutOrStdout(), kinds)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&v.Nodes, "nodes", 5000, "number of nodes")
	fs.IntVar(&v.Pods, "pods", 20000, "number of pods on them")
	fs.IntVar(&v.Rate, "rate", 100, "pods that are created in a second")
	fs.DurationVar(&v.Window, "window", 20*time.Second, "for how long pods come with the same viewers")
	fs.IntVar(&v.Rounds, "rounds", 5, "how many windows there are of each kind")
	fs.IntVar(&v.Viewers, "viewers", 3, "number of viewers")
	fs.IntVar(&v.Stalled, "stalled", 5, "number of those that read nothing (one user has 8 streams, those of the viewers among them)")
	fs.DurationVar(&v.Limit, "limit", 30*time.Minute, "how long it may take")
	fs.StringVar(&v.Berth, "berth", "bin/berth", "path of the berth binary")
	fs.StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// burstCommand returns the command burst. A round begins without any node, since one burst
// leaves a cluster full of them.
func burstCommand() *cobra.Command {
	b := demo.Burst{}
	cmd := &cobra.Command{
		Use: "burst", Short: "Measure how soon nodes are asked for after the last pod of a burst", Args: cobra.NoArgs,
		Long: `Burst creates pods on a cluster without nodes, each of which needs a node of its
own, and measures how long after the last pod's watch event Berth has asked the
provider for the last node. Each round has a cluster of its own.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.Out = cmd.OutOrStdout()
			return b.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&b.Berth, "berth", "bin/berth", "path of the berth binary")
	cmd.Flags().IntVar(&b.Pods, "pods", 18000, "number of pods")
	cmd.Flags().IntVar(&b.Rounds, "rounds", 3, "how often to measure")
	cmd.Flags().DurationVar(&b.Limit, "limit", 8*time.Minute, "how long one round may take")
	return cmd
}
