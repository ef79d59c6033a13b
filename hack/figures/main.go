// Command figures reproduces what was published of Cluster Autoscaler and of batch clusters that
// grow to 2,000 nodes: it plays or measures each case, writes tables with the published numbers
// beside Berth's, and draws them.
//
//	main.go      the command, and which figures there are
//	write.go     the page in out/figures, and with -write the tables and pictures of docs/
//	curve.go     the time of a plan by the number of pods
//	night.go     the night batch: started pods and written bytes over time
//	launches.go  adaptive launch control beside fixed limits
//	cooldown.go  delays of each group and of the cluster
//	drains.go    nodes that are drained one by one and side by side, and room kept for their pods
//	customer.go  a whole night of 2,000 nodes
//
// What was published stands in the code as it was read; what Berth does is played or measured anew
// each time. Plays are deterministic, so their tables and pictures change only with the program;
// curve measures CPU time, which differs from machine to machine.
//
// The current directory must be the root of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// figure is a part of the page: a table, a sentence, and pictures.
type figure struct {
	name  string // for -only, and of its place in the document
	title string
	make  func(context.Context) (*result, error)
}

// result is what a figure shows. Each row has as many cells as the head.
type result struct {
	head     []string
	rows     [][]string
	after    string    // a sentence below the table
	pictures []picture // below that
}

// picture is an SVG file. about is its text for those who don't see it.
type picture struct {
	file, about string
	svg         string
}

// figures returns all of them in their order.
func figures() []figure {
	return []figure{
		{"curve", "Plans for up to 22,000 pods", curve},
		{"night", "The night batch of 500 nodes", night},
		{"launches", "The limit of launches", launches},
		{"cooldown", "The delay after a scale-up", cooldown},
		{"drains", "Draining 1,000 nodes", drains},
		{"homes", "Room for evicted pods", homes},
		{"customer", "A customer's night of 2,000 nodes", customer},
	}
}

func main() {
	only := flag.String("only", "", "make only these figures, separated by commas")
	document := flag.Bool("write", false, "write tables and pictures into docs/, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *document); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// run makes the chosen figures one after the other, and prints each table as soon as it is known. The
// files are written when all are made: an error leaves those of the last run.
func run(ctx context.Context, only string, document bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	made := map[string]*result{}
	for _, f := range chosen {
		fmt.Printf("## %s\n\n", f.title)
		r, err := f.make(ctx)
		if err != nil {
			return fmt.Errorf("making the figure %s: %w", f.name, err)
		}
		made[f.name] = r
		fmt.Println(r.table())
	}
	if err := writePage("out/figures", chosen, made); err != nil {
		return err
	}
	fmt.Println("wrote out/figures/index.html")
	if !document {
		return nil
	}
	return writeDocument("docs", chosen, made)
}

// choose returns the figures with these names, all for "".
func choose(only string) ([]figure, error) {
	all := figures()
	if only == "" {
		return all, nil
	}
	var names []string
	for _, f := range all {
		names = append(names, f.name)
	}
	var out []figure
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names, strings.TrimSpace(name))
		if i < 0 {
			return nil, fmt.Errorf("there is no figure %q; there are %s", name, strings.Join(names, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}
