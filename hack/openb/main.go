// Command openb measures Berth on the openb trace, a list of the nodes and pods of a production GPU
// cluster, which isn't part of the repository (sim/trace/openb). It prints two tables:
//
//	gpus   how much of the GPUs is allocated when pods for 130 % of them have come
//	money  what the expander cost pays for all pods at once beside the proved bound, on variants
//
// Both are deterministic.
//
//	go run ./hack/openb [-only gpus|money] [-seeds 10] [FOLDER]
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

// table is one of the tables. seeds says how many different orders or variants it has.
type table struct {
	name  string
	write func(ctx context.Context, w io.Writer, trace *openb.Trace, seeds int) error
}

func tables() []table { return []table{{"gpus", writeGPUs}, {"money", writeMoney}} }

func main() {
	only := flag.String("only", "", "print only this table: gpus or money")
	seeds := flag.Int("seeds", 10, "how many orders of arrival, and twice as many variants")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *only, *seeds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "openb:", err)
		os.Exit(1)
	}
}

// run prints the tables, one or all of them, of the trace in a folder.
func run(ctx context.Context, w io.Writer, only string, seeds int, args []string) error {
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
	chosen := slices.DeleteFunc(tables(), func(t table) bool { return only != "" && t.name != only })
	if len(chosen) == 0 {
		return fmt.Errorf("there is no table %q", only)
	}
	for _, t := range chosen {
		if err := t.write(ctx, w, trace, seeds); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return nil
}
