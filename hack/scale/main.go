// Command scale measures how time and memory grow with the cluster: of the engine, the core,
// scale-up, scale-down, scheduler and autoscaler in one process, and the simulator. It prints a
// table with fitted exponents; with --write it puts the table into docs/performance.md and draws
// docs/performance-growth.svg. With --write it must be run from the root of the repository.
//
// Each part is measured at each size in a process of its own on one core, so that no figure has
// another's memory in it. Nothing is written before all is measured.
//
//	main.go       flags, and the loop over sizes and parts
//	parts.go      which parts there are, with the rows of the table and their goals
//	task.go       one part at one size: its process, its CPU time and its memory
//	engine.go     placements by the engine alone
//	core.go       Steps of a core, alone and with its planner
//	plans.go      one scale-up, and scale-down pass after pass
//	adversary.go  plans of unfortunate sizes
//	late.go       a provider's list in which thousands of instances are late
//	simulator.go  a whole virtual world
//	spread.go     a virtual world of many apps with spread constraints
//	kept.go       figures that an interrupted run has left
//	table.go      the table, and what follows for the largest cluster
//	fit.go        the law that points follow
//	plot.go       the picture
//	document.go   where table and picture go
//
// Every part checks what it has made (all pods are bound, every pod has a node in the plan): a
// figure of work that wasn't done is an error, never a fast figure.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// measureCommand is the first argument of a process that measures one part at one size, and
// prints the figures as JSON.
const measureCommand = "measure"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == measureCommand {
		err = serve(ctx, os.Args[2], os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are what the flags say, after parse has checked them.
type options struct {
	// nodes are sizes of the cluster, rising and each only once.
	nodes       []int
	podsPerNode int
	// classes is how many classes the pods are of: from podsPerNode to all pods of the smallest size.
	classes int
	parts   []part
	// write needs all parts and at least two sizes: the document has no gaps, and exponents need points.
	write    bool
	profiles string // where CPU profiles go; "" for none
	keep     string // the file of kept figures; "" for none
	report   bool   // measure nothing
}

// parse reads the flags. Its error names the flag, the value, and what would do; usage goes to w.
func parse(args []string, w io.Writer) (*options, error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(w)
	nodes := flags.String("nodes", "1000,5000,20000,100000", "sizes of the cluster, in nodes")
	podsPerNode := flags.Int("pods-per-node", 10, "pods for each node")
	classes := flags.Int("classes", 1000, "how many classes the pods are of")
	names := flags.String("parts", strings.Join(partNames(), ","), "which parts to measure")
	write := flags.Bool("write", false, "put the table into "+documentFile+" and draw "+plotFile)
	profiles := flags.String("profiles", "", "an existing folder that each process writes its CPU profile to, as PART-NODES.pprof")
	keep := flags.String("keep", "", "a file that keeps each measurement, and whose measurements aren't made again: for a run that may be interrupted")
	report := flags.Bool("report", false, "measure nothing: report what --keep has")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q isn't a flag; sizes are given as --nodes=1000,5000", flags.Arg(0))
	}
	o := &options{podsPerNode: *podsPerNode, classes: *classes, write: *write, profiles: *profiles, keep: *keep, report: *report}
	var err error
	if o.nodes, err = sizes(*nodes); err != nil {
		return nil, err
	}
	if *podsPerNode < 1 || *podsPerNode > maxPodsPerNode {
		return nil, fmt.Errorf("--pods-per-node: %d isn't from 1 to %d", *podsPerNode, maxPodsPerNode)
	}
	if least := o.nodes[0] * o.podsPerNode; *classes < o.podsPerNode || *classes > least {
		// Some classes keep their pods on nodes apart: they need as many nodes as each has pods.
		return nil, fmt.Errorf("--classes: %d isn't from %d, the pods per node, to %d, the pods of the smallest size", *classes, o.podsPerNode, least)
	}
	for _, name := range strings.Split(*names, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--parts: there is no part %q; there are %s", name, strings.Join(partNames(), ", "))
		}
		o.parts = append(o.parts, parts[i])
	}
	if info, err := os.Stat(*profiles); *profiles != "" && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("--profiles: %q isn't a folder: make it first", *profiles)
	}
	if *report && *keep == "" {
		return nil, errors.New("--report: name the file with the measurements, too: --keep FILE")
	}
	if *write && (len(o.nodes) < 2 || len(o.parts) < len(parts)) {
		return nil, errors.New("--write: the documentation has all parts, at two sizes at least; leave --parts out, and give more --nodes")
	}
	return o, nil
}

// sizes reads --nodes, and returns them sorted.
func sizes(list string) (out []int, err error) {
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxNodes {
			return nil, fmt.Errorf("--nodes: %q isn't a number of nodes from 1 to %d", text, maxNodes)
		}
		if slices.Contains(out, n) {
			return nil, fmt.Errorf("--nodes: %d is there twice", n)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}

// The largest sizes that can be asked for: pods have to fit on nodes with room for 110.
const (
	maxNodes       = 1_000_000
	maxPodsPerNode = 100
)

// partNames returns the names in the order of the table.
func partNames() (out []string) {
	for _, p := range parts {
		out = append(out, p.name)
	}
	return out
}

// run measures, prints the table to out, and says on progress what is being done. An error of any
// task ends it; what was measured before is in the file of --keep, if there is one.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	if o.write { // so that nothing is measured in vain
		if _, err := documentWith(""); err != nil {
			return err
		}
	}
	known, err := readKept(o.keep)
	if err != nil {
		return err
	}
	g := &growth{options: o, values: map[string]map[int]float64{}}
	for _, nodes := range o.nodes {
		for _, p := range o.parts {
			t := task{Part: p.name, Nodes: nodes, PodsPerNode: o.podsPerNode, Classes: o.classes}
			if figures, ok := known.tasks[t]; ok {
				g.add(nodes, figures)
				fmt.Fprintf(progress, "%s, as kept\n", t.summary(p, figures))
				continue
			}
			if o.report {
				fmt.Fprintf(progress, "%s, %d nodes: not measured yet\n", p.name, nodes)
				continue
			}
			profile := ""
			if o.profiles != "" {
				profile = filepath.Join(o.profiles, fmt.Sprintf("%s-%d.pprof", p.name, nodes))
			}
			figures, took, err := spawn(ctx, t, profile)
			if err != nil {
				return err
			}
			if err := known.add(t, figures); err != nil {
				return err
			}
			g.add(nodes, figures)
			fmt.Fprintf(progress, "%s, %.0f s by the clock\n", t.summary(p, figures), took.Seconds())
		}
	}
	text := g.table()
	fmt.Fprint(out, text)
	if !o.write {
		return nil
	}
	document, err := documentWith(text)
	if err != nil {
		return err
	}
	return replace(map[string][]byte{documentFile: document, plotFile: []byte(g.plot())})
}

// serve measures what is asked for in a process of its own. Its output is the figures as JSON and
// nothing else; the parent adds the peak of memory, which only it can see.
func serve(ctx context.Context, request string, out io.Writer) error {
	var r measureRequest
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return fmt.Errorf("reading the task %q: %w", request, err)
	}
	figures, err := r.measure(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(figures)
}
