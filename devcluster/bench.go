package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/devcluster/bench"
)

// benchCommand returns the command bench. What was measured before an error is printed
// with it.
func benchCommand() *cobra.Command {
	o := bench.Options{}
	var output string
	var full bool
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure kube-scheduler and Berth side by side", Args: cobra.NoArgs,
		Long: `Bench has kube-scheduler and Berth place the same pods in turn, on one control
plane and each from the same starting state, with the client's limits off. The
pods are all there when a scheduler starts. It prints for each, as medians of its
runs, pods per second (the mean from the first to the last, and percentiles of
one-second samples as scheduler_perf takes them), CPU time per pod of the
scheduler, the API server and etcd (from its start to its last event), peak
memory, attempts and API calls per pod. In the first case bare loops of binds,
and of binds and events, run too: the ceiling for any scheduler there. In cases with
devices the loop makes the writes of their claims as well, and where pods take the place
of others it has these leave.

The cases are those of scheduler_perf, kube-scheduler's own benchmark, by its names in
parentheses, and some that it lacks. The size is one for two cores, and cases that need
a node for each pod have fewer pods. --full is the size of its large workloads, with
more nodes in these cases.

Cases:
` + about(),
		Example: `  devcluster bench --case basic
  devcluster bench --full --case basic --rounds 3
  devcluster bench --nodes 1000 --pods 2000 --rounds 3 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o is %q; it must be text or json", output)
			}
			// Sizes that are given explicitly count more than --full, which only changes
			// defaults.
			if full && !cmd.Flags().Changed("nodes") {
				o.Nodes, o.MoreNodes = bench.Full.Nodes, true
			}
			if full && !cmd.Flags().Changed("pods") {
				o.Pods = bench.Full.Pods
			}
			o.Progress = cmd.ErrOrStderr()
			// Runs take minutes each; what is there when one fails isn't thrown away.
			r, err := bench.Do(cmd.Context(), o)
			if r == nil || len(r.Cases) == 0 {
				return err
			}
			return errors.Join(printReport(cmd.OutOrStdout(), r, output), err)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&o.Cases, "case", nil, "cases to run (default: all)")
	fs.StringSliceVar(&o.Schedulers, "scheduler", nil, "kube-scheduler or berth (default: both in turn)")
	fs.IntVar(&o.Nodes, "nodes", bench.Small.Nodes, "number of nodes")
	fs.IntVar(&o.Pods, "pods", bench.Small.Pods, "number of pods, fewer in cases that say so")
	fs.BoolVar(&full, "full", false, fmt.Sprintf("have %d nodes, more where pods need them, and %d pods, where --nodes and --pods don't say otherwise", bench.Full.Nodes, bench.Full.Pods))
	fs.IntVar(&o.Rounds, "rounds", 1, "how often each scheduler runs each case")
	fs.BoolVar(&o.Ceiling, "ceiling", true, "run the bare loops too, in the first case and in those with devices")
	fs.DurationVar(&o.Limit, "limit", 10*time.Minute, "how long one run may take, with creating its pods")
	fs.StringVar(&o.Berth, "berth", "bin/berth", "path of the berth binary")
	fs.StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// printReport prints what was measured, as text or as JSON.
func printReport(w io.Writer, r *bench.Result, output string) error {
	if output == "text" {
		return r.Print(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// about returns a line for each case.
// It is made of the cases themselves, so that the help can't differ from what runs.
func about() string {
	var b strings.Builder
	for _, c := range bench.Cases {
		upstream := ""
		if c.Upstream != "" {
			upstream = " (" + c.Upstream + ")"
		}
		fmt.Fprintf(&b, "  %-34s %s%s\n", c.Name, c.About, upstream)
	}
	return b.String()
}
