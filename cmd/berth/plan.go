package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/sim/plan"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is berth plan: flags, the scenario, and a line for each expander (sim/plan).

// planFlags are the flags of berth plan.
type planFlags struct {
	// output is text or json.
	output string
	// expanders are nil for all that need no server, and for priority only where the scenario has priorities.
	// Others ask a server while they choose, which a plan without a cluster doesn't have.
	expanders []string
	// empty leaves out nodes that exist, explain adds an estimate for each class and group.
	empty   bool
	explain bool
}

// planCommand returns berth plan. Whatever is drawn is drawn from the scenario's seed; the clock is only
// for how long a plan took.
func planCommand() *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Show which nodes each expander would add for all pods of a scenario at once",
		Long: `Plan treats all pods of a scenario as pending at once, whenever they would arrive,
and computes a scale-up for them with each expander: the number of nodes, their
price, and its ratio to a lower bound of the price of any scale-up. Nothing is
simulated and no node is added. A FILE is what berth simulate takes: a scenario
(docs/reference/scenario.md) with node groups and their prices, a dump, a manifest,
or a folder with an openb trace.`,
		Example: `  berth plan examples/prices/batch.yaml
  berth plan --empty examples/openb-money/groups.yaml DIR`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.expanders, "expanders", nil, "expanders to plan with (default: all that need no server): "+strings.Join(offlineExpanders(), ", "))
	fs.BoolVar(&f.empty, "empty", false, "ignore existing nodes and the pods on them, so that all capacity must be added")
	fs.BoolVar(&f.explain, "explain", false, "also show what the pods of each class would need from each node group alone: nodes, pods that fit, and the unused share of each resource")
	fs.StringVarP(&f.output, "output", "o", "text", "text or json")
	term.Choices(cmd, "output", "text", "json")
	term.Choices(cmd, "expanders", offlineExpanders()...)
	return cmd
}

// offlineExpanders returns the expanders that ask no server.
// It is also what --expanders completes to.
func offlineExpanders() []string {
	return slices.DeleteFunc(expander.Names(), func(name string) bool { return name == expander.GRPCName })
}

// run prints to out what each expander would buy, and to notes what of the scenario was left
// out. It refuses flags and files before it plans anything.
func (f *planFlags) run(out, notes io.Writer, args []string) error {
	if f.output != "text" && f.output != "json" {
		return term.Usage(fmt.Errorf("--output is %q; it must be text or json", f.output))
	}
	for _, name := range f.expanders {
		if !slices.Contains(offlineExpanders(), name) {
			return term.Usage(fmt.Errorf("--expanders has %q; it must be one or more of %s, separated by commas", name, strings.Join(offlineExpanders(), ", ")))
		}
	}
	runs, err := scenario.Load(args)
	if err != nil {
		return term.Usage(err)
	}
	// Several runs would need a table of their own; berth simulate --compare has one.
	if len(runs) > 1 {
		return term.Usage(fmt.Errorf("berth plan takes one scenario and at most one policy, but the files make %d runs", len(runs)))
	}
	r := runs[0]
	term.Notes(notes, r.Name, r.Notes)
	if len(r.Spec.NodeGroups) == 0 {
		return term.Usage(fmt.Errorf("%s: there are no node groups to scale up; give a scenario with spec.nodeGroups", r.Name))
	}
	names := f.expanders
	if len(names) == 0 {
		names = offlineExpanders()
		// Without priorities that expander forbids every group, and its row would say
		// nothing.
		if r.Spec.Policy.ExpanderPriorities == "" {
			names = slices.DeleteFunc(names, func(name string) bool { return name == expander.PriorityName })
		}
	}
	var all []*plan.Purchase
	for _, name := range names {
		// The clock is an argument because sim/ has none: plans are timed, but don't depend
		// on it.
		p, err := plan.For(r, name, plan.Options{Empty: f.empty, Explain: f.explain, Now: time.Now})
		if err != nil {
			return fmt.Errorf("%s with the expander %s: %w", r.Name, name, err)
		}
		all = append(all, p)
	}
	if f.output == "json" {
		return plan.PrintJSON(out, all, f.explain)
	}
	if err := plan.Print(out, all); err != nil || !f.explain {
		return err
	}
	// Estimates don't depend on the expander; those of the first plan are those of all.
	return plan.PrintEstimates(out, all[0].Estimates)
}
