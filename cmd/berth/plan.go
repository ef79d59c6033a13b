package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is the command: flags, the scenario, a line for each expander. plan_inputs.go
// makes inputs of the scenario, plan_purchase.go has one expander plan for them on a core of
// its own, plan_bound.go computes what any purchase costs at least, plan_estimates.go what each class
// would need. Invariant: every
// expander gets the same inputs and starts from nothing, so that lines can be compared.

// planFlags are the flags of berth plan.
type planFlags struct {
	output    string
	expanders []string
	empty     bool
	explain   bool
}

func planCommand() *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Say which nodes each expander would buy for all pods of a scenario at once",
		Long: `Plan takes all pods of a scenario as pending at once, whenever they would come,
and makes the plan of a scale-up for them with each expander: how many nodes, at
which price, and how much that is of what any purchase costs at least. Nothing is
played and nothing is bought. A FILE is what berth simulate takes: a scenario
(docs/reference/scenario.md) with the node groups and their prices, a dump or a
manifest, or a folder with an openb trace.`,
		Example: `  berth plan examples/night-batch/capped.yaml
  berth plan --empty examples/openb-money/groups.yaml DIR`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.expanders, "expanders", nil, "expanders to plan with, all that need no server when it isn't given: "+strings.Join(offlineExpanders(), ", "))
	fs.BoolVar(&f.empty, "empty", false, "leave the nodes that exist out, and the pods on them: everything has to be bought")
	fs.BoolVar(&f.explain, "explain", false, "say also what the pods of each class would need of each node group alone: nodes, pods that fit, and what is unused of each resource")
	fs.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

// offlineExpanders returns the expanders that ask no server.
func offlineExpanders() []string {
	return slices.DeleteFunc(expander.Names(), func(name string) bool { return name == expander.GRPCName })
}

// run prints to out what each expander would buy, and to notes what of the scenario was left
// out. It refuses flags and files before it plans anything.
func (f *planFlags) run(out, notes io.Writer, args []string) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output is %q; it must be text or json", f.output)
	}
	for _, name := range f.expanders {
		if !slices.Contains(offlineExpanders(), name) {
			return fmt.Errorf("--expanders has %q; name one or several of %s, separated by commas", name, strings.Join(offlineExpanders(), ", "))
		}
	}
	runs, err := scenario.Load(args)
	if err != nil {
		return err
	}
	if len(runs) > 1 {
		return errors.New("berth plan is for one scenario, and at most one policy, at a time")
	}
	r := runs[0]
	for _, n := range r.Notes {
		fmt.Fprintf(notes, "%s: %s\n", r.Name, n)
	}
	if len(r.Spec.NodeGroups) == 0 {
		return fmt.Errorf("%s: there are no node groups, so there is nothing to buy; name a scenario with spec.nodeGroups", r.Name)
	}
	names := f.expanders
	if len(names) == 0 {
		names = offlineExpanders()
		if r.Spec.Policy.ExpanderPriorities == "" {
			names = slices.DeleteFunc(names, func(name string) bool { return name == expander.PriorityName })
		}
	}
	var all []*purchase
	for _, name := range names {
		p, err := f.plan(r, name)
		if err != nil {
			return fmt.Errorf("%s with the expander %s: %w", r.Name, name, err)
		}
		all = append(all, p)
	}
	if f.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if f.explain {
			return enc.Encode(map[string]any{"purchases": all, "estimates": all[0].estimates})
		}
		return enc.Encode(all)
	}
	if err := printPurchases(out, all); err != nil || !f.explain {
		return err
	}
	return printEstimates(out, all[0].estimates)
}

// printPurchases writes a line for each purchase. All have the same lower bound, which
// depends on no expander; a purchase for fewer pods isn't compared with it.
func printPurchases(out io.Writer, all []*purchase) error {
	fmt.Fprintf(out, "%d pods are pending; a purchase for %d of them costs %.2f an hour at least\n", all[0].Pending, all[0].Possible, all[0].LowerBound)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "expander\tnodes\tprice per hour\t× bound\tpods placed\tpods without help\ttime\t")
	for _, p := range all {
		ratio := "-"
		if p.LowerBound > 0 && p.Placed >= p.Possible {
			ratio = fmt.Sprintf("%.3f", p.PricePerHour/p.LowerBound)
		}
		took := time.Duration(p.Seconds * float64(time.Second)).Round(10 * time.Millisecond)
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%s\t%d\t%d\t%s\t\n", p.Expander, p.Nodes, p.PricePerHour, ratio, p.Placed, p.NoHelp, took)
	}
	return w.Flush()
}
