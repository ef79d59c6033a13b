package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is berth simulate: it loads files into runs, plays them, and prints the
// outcomes. What must hold: results go to the command's output, notices and progress to its
// error output; and the command fails when a run violates an invariant or misses what its
// scenario expects. --replay is in replay.go.

// simulateFlags are the flags of berth simulate.
type simulateFlags struct {
	output    string         // text, json or html
	report    string         // path of a page, "" for none
	played    []*page.Played // of all runs, for the page
	compare   bool           // one table for all runs
	decisions string         // path of a ledger, "" for none
	seed      uint64         // overrides a scenario's when it is on the command line
	check     bool           // all invariants after every Step
	replay    string         // path of a recording, "" to play scenarios
	explain   page.Questions
	config    string   // with replay: the path of another configuration
	flags     []string // with replay: those of another autoscaler
	// emulated is, with replay, the version whose rules to follow.
	emulated config.EmulatedVersion
}

// simulateCommand returns berth simulate, for scenarios as well as recordings: both are Berth without
// a cluster, and share most flags.
func simulateCommand() *cobra.Command {
	f := &simulateFlags{}
	// A test of this package checks the examples: each must work from the repository's
	// root.
	cmd := &cobra.Command{
		Use:   "simulate FILE...",
		Short: "Simulate a workload on a virtual cluster in virtual time",
		Long: `Simulate runs scenarios with the scheduler and the autoscaler of berth run in virtual
time: what would the cluster do with this workload, and what would it cost? A FILE is
a scenario (docs/reference/scenario.md), a dump of a cluster (berth dump), a
manifest, or a policy (kind: Policy). Dumps and manifests are added to every scenario,
and every scenario is run with each policy. - is standard input. The exit code is 3
when a scenario's expectations are not met.`,
		Example: `  berth simulate examples/night-batch/capped.yaml
  berth simulate --report night.html examples/night-batch/capped.yaml
  berth simulate --compare examples/night-batch/capped.yaml examples/night-batch/baked.yaml
  berth simulate --compare --report both.html examples/night-batch/capped.yaml examples/night-batch/baked.yaml
  berth simulate --compare examples/prices/batch.yaml examples/prices/with-prices.yaml examples/prices/without-prices.yaml
  berth dump | berth simulate -
  berth simulate examples/explain/dump.yaml --explain default/waits
  berth simulate examples/explain/waiting.yaml --explain-group small
  berth simulate examples/explain/staying.yaml --explain-nodes
  berth simulate --replay recording.jsonl
  berth simulate --replay recording.jsonl --autoscaler-flag=--max-nodes-total=50`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	// Sections are those of the help text, in this order.
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("output")
	fs.StringVarP(&f.output, "output", "o", "text", "text, json or html (the web page with the results inside)")
	fs.StringVar(&f.report, "report", "", "write the web page with the results inside to this file, with --compare those of all runs")
	fs.BoolVar(&f.compare, "compare", false, "compare the results of several scenarios or policies side by side")
	fs.StringVar(&f.decisions, "decisions", "", "write the decision ledger to this file, one JSON object per line")
	fs = s.FlagSet("explanation")
	fs.StringVar(&f.explain.Pod, "explain", "", "instead of the summary, explain why this pod (namespace/name) is pending or where it is")
	fs.StringVar(&f.explain.PodGroup, "explain-podgroup", "", "instead of the summary, explain where this pod group (namespace/name) is at the end of the run, or why it is pending")
	fs.StringVar(&f.explain.Group, "explain-group", "", "instead of the summary, explain the state of this node group at the end of the run")
	fs.StringVar(&f.explain.Node, "explain-node", "", "instead of the summary, explain why this node is not removed at the end of the run, or the progress of its removal")
	fs.BoolVar(&f.explain.Nodes, "explain-nodes", false, "instead of the summary, show how many nodes are kept at the end of the run for which reason, and what they cost")
	fs = s.FlagSet("simulation")
	fs.Uint64Var(&f.seed, "seed", 0, "seed to use instead of the scenario's")
	fs.BoolVar(&f.check, "check", false, "check every invariant after every step; slow with many pods")
	fs = s.FlagSet("replay")
	fs.StringVar(&f.replay, "replay", "", "replay a recording of berth run --record instead of a scenario")
	fs.StringVar(&f.config, "config", "", "with --replay: KubeSchedulerConfiguration to use instead of the recorded one")
	fs.Var(&f.emulated, "emulated-version", "with --replay: version of Kubernetes whose scheduling rules to follow instead of the recorded one, "+compat.Names())
	fs.StringArrayVar(&f.flags, "autoscaler-flag", nil, "with --replay: flag of berth run to use; may be repeated (all others have their defaults)")
	term.SetSections(cmd, s)
	term.Choices(cmd, "output", "text", "json", term.HTML)
	return cmd
}

// run plays every scenario under every policy, in the order of the files. Its error joins
// what the scenarios expect and didn't get, so that a run in CI fails. Such a failure doesn't keep the
// runs that follow from being played and printed; an error of any other kind does.
// The order of checks is by cost: flags, then files, then runs.
func (f *simulateFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.validate(args); err != nil {
		return term.Usage(err)
	}
	if f.replay != "" {
		// Whether a recording's error is one of usage depends on how far it came.
		return f.playRecording(cmd) // which tells errors of usage apart itself
	}
	runs, err := scenario.Load(args)
	if err != nil {
		return term.Usage(err)
	}
	if err := f.validateRuns(runs); err != nil {
		return term.Usage(err)
	}
	// Summaries of all runs are kept, since comparing needs them together.
	var all []*scenario.Summary
	var unmet []error
	for _, r := range runs {
		if cmd.Flags().Changed("seed") {
			r.Spec.Seed = f.seed
		}
		// Notes say what of a dump or manifest was left out. They go to the error output,
		// so that JSON stays JSON.
		term.Notes(cmd.ErrOrStderr(), r.Name, r.Notes)
		s, err := f.play(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		// A violated budget is reported as an error whatever the scenario expects.
		if s.PDBViolations+s.Violations > 0 {
			unmet = append(unmet, fmt.Errorf("%s: %d disruption budgets and %d other invariants were violated", r.Name, s.PDBViolations, s.Violations))
		}
		for _, why := range s.Check(r.Spec.Expect) {
			unmet = append(unmet, fmt.Errorf("%s: %s", r.Name, why))
		}
		all = append(all, s)
		// Without --compare a result is printed as soon as it is there: runs may take
		// minutes.
		if !f.compare && !f.explain.Any() {
			if err := f.print(cmd.OutOrStdout(), s); err != nil {
				return err
			}
		}
	}
	if f.compare {
		if err := f.print(cmd.OutOrStdout(), all...); err != nil {
			return err
		}
	}
	// Pages come last and hold every run, also those whose expectations weren't met.
	if f.report != "" {
		if err := page.WriteReport(f.report, f.played, all); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if f.output == term.HTML {
		if err := page.Report(cmd.OutOrStdout(), f.played, all); err != nil {
			return err
		}
	}
	return term.Unmet(errors.Join(unmet...))
}

// validate refuses flags and arguments that don't go together, before any file is read.
func (f *simulateFlags) validate(args []string) error {
	if f.output != "text" && f.output != "json" && f.output != term.HTML {
		return fmt.Errorf("--output is %q; it must be text, json or html", f.output)
	}
	// To find out only after a long run that its output can't be written would lose the
	// run.
	if err := term.Creatable("--decisions", f.decisions); err != nil {
		return err
	}
	switch {
	// A file of that name is possible, but hardly what was meant.
	case f.report == "text" || f.report == "json" || f.report == term.HTML: // as a format it is meant for --output
		return fmt.Errorf("--report is %q, but takes the path of a file, such as report.html; -o html writes the page to standard output", f.report)
	case f.output == term.HTML && (f.replay != "" || f.explain.Any()):
		return errors.New("--output=html is the page of runs; omit --replay and --explain")
	case f.replay != "" && len(args) > 0:
		return fmt.Errorf("--replay takes a recording and nothing else; omit %s", args[0])
	// The rest is about scenarios.
	case f.replay != "":
		return nil
	case f.config != "" || len(f.flags) > 0 || f.emulated.String() != "":
		return errors.New("--config, --autoscaler-flag and --emulated-version need --replay; a scenario sets its policy itself")
	case len(args) == 0:
		return errors.New("no file given; give a scenario, a dump or a manifest (examples/ has some), or - for standard input")
	}
	return term.Creatable("--report", f.report)
}

// validateRuns refuses flags that don't suit how many runs the files make.
func (f *simulateFlags) validateRuns(runs []*scenario.Run) error {
	if f.compare && len(runs) < 2 {
		return fmt.Errorf("--compare needs at least two scenarios or policies, but got %d", len(runs))
	}
	// Names are checked for their form only; whether the pod exists is known after the run.
	if f.explain.Pod != "" && strings.Count(f.explain.Pod, "/") != 1 {
		return fmt.Errorf("--explain is %q; it must be a pod as namespace/name", f.explain.Pod)
	}
	if f.explain.PodGroup != "" && strings.Count(f.explain.PodGroup, "/") != 1 {
		return fmt.Errorf("--explain-podgroup is %q; it must be a pod group as namespace/name", f.explain.PodGroup)
	}
	if len(runs) > 1 && f.explain.Any() {
		return errors.New("--explain, --explain-podgroup, --explain-group, --explain-node and --explain-nodes take one scenario at a time")
	}
	if len(runs) > 1 && f.decisions != "" {
		return errors.New("--decisions takes one scenario at a time")
	}
	if len(runs) > 1 && f.output == term.HTML && !f.compare {
		return fmt.Errorf("--output=html takes one scenario at a time, but got %d; add --compare for a page that compares them", len(runs))
	}
	if len(runs) > 1 && f.report != "" && !f.compare {
		return fmt.Errorf("--report takes one scenario at a time, but got %d; add --compare for a page that compares them", len(runs))
	}
	return nil
}

// play runs one scenario, and writes the files that the flags name. Progress and
// violations go to notices, an explanation to out. The ledger is closed even when the run fails: what
// it has until then shows what came before.
func (f *simulateFlags) play(ctx context.Context, out, notices io.Writer, r *scenario.Run) (*scenario.Summary, error) {
	o := sim.Options{Check: f.check}
	var closeDecisions func() error
	if f.decisions != "" {
		file, err := os.Create(f.decisions)
		if err != nil {
			return nil, fmt.Errorf("--decisions: %w", err)
		}
		// The ledger has a line for each decision; a large run makes millions.
		w := bufio.NewWriterSize(file, 1<<20)
		o.Decisions = w
		closeDecisions = func() error { return errors.Join(w.Flush(), file.Close()) }
	}
	start := time.Now()
	o.Progress = term.Progress(notices, r.Name, start)
	played := page.NewPlayed()
	// The page and explanations need what happened in between, not only the summary: hooks record it during the run.
	watched := f.report != "" || f.output == term.HTML || f.explain.Any()
	if watched {
		o.Hooks = append(o.Hooks, played)
	}
	w, err := sim.New(r, o)
	if err != nil {
		return nil, err
	}
	played.In(w)
	s, err := w.Run(ctx)
	// Before the run's own error: otherwise a full disk would go unnoticed.
	if closeDecisions != nil {
		if err := closeDecisions(); err != nil {
			return nil, fmt.Errorf("--decisions: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	// Real time, unlike all other times of a summary.
	s.WallSeconds = time.Since(start).Seconds()
	if s.Pods.ToCome > 0 {
		fmt.Fprintf(notices, "%s: the run ended after %s, before %d pod(s) had arrived; set a later spec.end.at to include them\n", r.Name, r.Spec.End.Latest(), s.Pods.ToCome)
	}
	term.Violations(notices, r.Name, w.Stats().Violations)
	if watched {
		played.Simulated(r, s)
		f.played = append(f.played, played)
	}
	output := term.NewOutput(term.Text)
	if f.output == "json" {
		output = term.JSONOutput()
	}
	return s, played.Explain(ctx, out, &f.explain, output)
}

// print writes summaries: one, or with --compare all side by side.
func (f *simulateFlags) print(out io.Writer, list ...*scenario.Summary) error {
	switch f.output {
	case term.HTML:
		return nil // run writes the page
	case "text":
		return report.Compare(out, list...)
	}
	if f.compare {
		return report.JSON(out, list)
	}
	return report.JSON(out, list[0])
}
