package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/devcluster/demo"
)

func sizeCommand() *cobra.Command {
	z := demo.Size{}
	var memory int64
	cmd := &cobra.Command{
		Use: "size", Short: "Measure Berth's speed and memory with many nodes and pods", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
