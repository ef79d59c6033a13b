// Command openb measures Berth on the openb trace, a list of the nodes and pods of a production GPU
// cluster, which isn't part of the repository (sim/trace/openb). It prints three tables:
//
//	gpus     how much of the GPUs is allocated when pods for 130 % of them have come
//	weights  the same for weights of the strategy that keeps devices together
//	money    what the expander cost pays for all pods at once beside the proved bound, on variants
//
// All are deterministic. With -at-most the table of money fails if a ratio is above.
//
//	go run ./hack/openb [-only gpus|weights|money] [-seeds 10] [-at-most 1.05] [FOLDER]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/berthproject/berth/sim/trace/openb"
)

// table is one of the tables.
type table struct {
	name  string
	write func(ctx context.Context, w io.Writer, trace *openb.Trace, o *options) error
}

func tables() []table {
	return []table{{"gpus", writeGPUs}, {"weights", writeWeights}, {"money", writeMoney}}
}

// options are the flags.
type options struct {
	only   string
	seeds  int     // how many different orders or variants a table has
	atMost float64 // of a price to its bound, 0 for any
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "print only this table: gpus, weights or money")
	flag.IntVar(&o.seeds, "seeds", 10, "how many orders of arrival, and twice as many variants")
	flag.Float64Var(&o.atMost, "at-most", 0, "fail if a variant's price is more times its bound, 0 for never")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, &o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "openb:", err)
		os.Exit(1)
	}
}

// run prints the tables, one or all of them, of the trace in a folder.
func run(ctx context.Context, w io.Writer, o *options, args []string) error {
	if len(args) > 1 {
		return errors.New("name one folder with the trace")
	}
	folder := "../shared/data/openb"
	if len(args) == 1 {
		folder = args[0]
	}
	trace, err := openb.Load(folder)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(tables(), func(t table) bool { return o.only != "" && t.name != o.only })
	if len(chosen) == 0 {
		return fmt.Errorf("there is no table %q", o.only)
	}
	for _, t := range chosen {
		if err := t.write(ctx, w, trace, o); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return nil
}
