// Command gate measures a short matrix of placements and fails when one has become dearer: when
// it allocates more than before, or when it has lost too much of its lead over kube-scheduler's
// own algorithm in the same run. What figures were is in docs/performance-history.tsv; with
// -record a figure that has changed by more than a tenth gets a new line there, and
// docs/performance-history.svg is drawn anew. It is run from the root of the module.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/berthproject/berth/internal/gate"
)

const (
	historyFile = "docs/performance-history.tsv"
	plotFile    = "docs/performance-history.svg"
)

// errWorse says that figures have become worse; which, was printed.
var errWorse = errors.New("placements have become dearer")

func main() {
	record := flag.Bool("record", false, "write down what has changed by more than a tenth")
	allocs := flag.Bool("allocs", false, "count allocations only, which takes seconds and no dev cluster's packages")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *record, *allocs); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, record, onlyAllocs bool) error {
	if record && onlyAllocs {
		return errors.New("-record writes down all figures; leave -allocs out")
	}
	history, err := read(record)
	if err != nil {
		return err
	}
	measure := measureAll
	if onlyAllocs {
		measure, history = measureAllocs, history.OfKind(gate.Allocs)
	}
	measured, err := measure(ctx)
	if err != nil {
		return err
	}
	if record {
		again, err := measure(ctx)
		if err != nil {
			return err
		}
		if measured, err = gate.Worse(measured, again); err != nil {
			return err
		}
		return write(ctx, history, measured)
	}
	for _, f := range measured {
		fmt.Printf("%-45s %8.4g\n", f, f.Value)
	}
	failures := history.Failures(measured)
	for _, f := range failures {
		fmt.Println("WORSE:", f)
	}
	if len(failures) > 0 {
		return errWorse
	}
	fmt.Println("no placement has become dearer")
	return nil
}

// read reads the history. To begin one there may be none.
func read(begin bool) (gate.History, error) {
	f, err := os.Open(historyFile)
	if begin && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; run it from the root of the module", err)
	}
	defer f.Close()
	return gate.Read(historyFile, f)
}

// measureAll measures ratios and allocations: five times each, since the smallest of the results
// count.
func measureAll(ctx context.Context) ([]gate.Figure, error) {
	ratios, err := bench(ctx, "devcluster", "./oracle", "Placement/case=(plain|service|hostname|hard_zone_spread,_3|500_classes_of_8)", "500ms")
	if err != nil {
		return nil, err
	}
	out, err := gate.Ratios(bytes.NewReader(ratios))
	if err != nil {
		return nil, err
	}
	more, err := measureAllocs(ctx)
	return append(out, more...), err
}

// measureAllocs counts the allocations of a number of placements instead of those of a time: the
// first ones allocate as often in each run.
func measureAllocs(ctx context.Context) ([]gate.Figure, error) {
	allocs, err := bench(ctx, ".", "./core/engine", "Place$/nodes=5000$|Refusal", "20000x")
	if err != nil {
		return nil, err
	}
	return gate.AllocsOf(bytes.NewReader(allocs))
}

// bench runs benchmarks of a package and returns what they print, which people see as well.
func bench(ctx context.Context, dir, pkg, which, long string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "test", pkg, "-run", "^$", "-bench", which, "-benchtime", long, "-count", "5", "-benchmem", "-timeout", "30m")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, io.MultiWriter(&out, os.Stdout), os.Stderr
	// An interrupt goes to the go command, which ends the tests that it runs and removes its files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("measuring %s in %s: %w", pkg, dir, err)
	}
	return out.Bytes(), nil
}

// write appends what has changed, under the commit that is checked out, and draws the plot.
func write(ctx context.Context, history gate.History, measured []gate.Figure) error {
	raw, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%h %cd", "--date=format-local:%Y-%m-%d").Output()
	if err != nil {
		return fmt.Errorf("asking git for the commit: %w", err)
	}
	commit, date, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return fmt.Errorf("git says that the commit is of %q: %w", date, err)
	}
	after := history.Record(measured, day, commit)
	var text bytes.Buffer
	if err := after.Write(&text); err != nil {
		return err
	}
	if err := os.WriteFile(historyFile, text.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(plotFile, []byte(plot(after)), 0o644); err != nil {
		return err
	}
	fmt.Printf("%d figures have changed by more than a tenth\n", len(after)-len(history))
	return nil
}
