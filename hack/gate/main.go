// Command gate measures placements, plans and passes of scale-down, and fails when one has become
// dearer: when it allocates more than before, when a plan buys more nodes for the same pods or a pass
// finds fewer of the same nodes removable, or when a placement has lost too much of its lead over
// kube-scheduler's own algorithm in the same run; and when a case of the dev cluster has fewer than 300
// pods a second. It is run from the root of the module.
//
//	main.go     the command, and what it does with figures
//	measure.go  which benchmarks are run
//
// What figures are held to is in docs/performance-history.tsv; with -record a figure that has changed
// by more than a tenth gets a new line there. With -night times and the rates of the dev cluster are
// measured, too, and all figures go into docs/performance-nights.tsv, under the commit that is
// checked out; out/performance.html and docs/performance-history.svg show them by commit.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/berthproject/berth/internal/test/gate"
)

const (
	historyFile = "docs/performance-history.tsv"
	nightsFile  = "docs/performance-nights.tsv"
	plotFile    = "docs/performance-history.svg"
	pageFile    = "out/performance.html"
)

// errWorse says that figures have become worse; which, was printed.
var errWorse = errors.New("placements or plans have become dearer")

// settings are the flags.
type settings struct{ counts, record, night, draw, devcluster bool }

func main() {
	var s settings
	flag.BoolVar(&s.counts, "counts", false, "count allocations and nodes only, which takes seconds and no dev cluster's packages")
	flag.BoolVar(&s.record, "record", false, "measure everything twice (with -counts: those), and write down what has changed by more than a tenth or would fail")
	flag.BoolVar(&s.night, "night", false, "measure everything, and write it down as that of the commit")
	flag.BoolVar(&s.draw, "draw", false, "measure nothing, and draw what is written down")
	flag.BoolVar(&s.devcluster, "devcluster", true, "with -record and -night: measure the cases of devcluster bench, too, which takes some ten minutes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	if s.night && (s.counts || s.record) {
		return errors.New("-night measures everything and moves no floor; leave -counts and -record out")
	}
	history, err := read(historyFile, s.record)
	if err != nil {
		return err
	}
	if s.draw {
		nights, err := read(nightsFile, false)
		if err != nil {
			return err
		}
		return draw(history, nights)
	}
	measured, err := measure(ctx, s)
	if err != nil {
		return err
	}
	if s.record {
		again, err := measure(ctx, s)
		if err != nil {
			return err
		}
		if measured, err = gate.Worse(measured, again); err != nil {
			return err
		}
		return record(ctx, history, measured)
	}
	for _, f := range measured {
		fmt.Printf("%-65s %8.6g\n", f, f.Value)
	}
	if s.night {
		if err := night(ctx, history, measured); err != nil {
			return err
		}
	}
	return judge(history, measured, s)
}

// judge prints what has become worse, and returns an error if any of it is held.
func judge(history gate.History, measured []gate.Figure, s settings) error {
	if s.counts {
		history = history.OfKinds(gate.Allocs, gate.Nodes, gate.Removable)
	}
	for _, f := range history.Slower(measured) {
		fmt.Println("slower:", f)
	}
	failures := append(history.Failures(measured), gate.TooSlow(measured)...)
	for _, f := range failures {
		fmt.Println("WORSE:", f)
	}
	if len(failures) > 0 {
		return errWorse
	}
	fmt.Println("nothing has become dearer")
	return nil
}

// read reads a history. To begin one there may be none.
func read(file string, begin bool) (gate.History, error) {
	f, err := os.Open(file)
	if begin && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; run it from the root of the module", err)
	}
	defer f.Close()
	return gate.Read(file, f)
}

// record appends what has changed to what figures are held to.
func record(ctx context.Context, history gate.History, measured []gate.Figure) error {
	day, commit, err := checkedOut(ctx)
	if err != nil {
		return err
	}
	after := history.Record(measured, day, commit)
	if err := write(historyFile, after); err != nil {
		return err
	}
	fmt.Printf("%d figures are written down anew\n", len(after)-len(history))
	return nil
}

// night writes down what was measured at the commit, and draws all.
func night(ctx context.Context, history gate.History, measured []gate.Figure) error {
	day, commit, err := checkedOut(ctx)
	if err != nil {
		return err
	}
	nights, err := read(nightsFile, true)
	if err != nil {
		return err
	}
	nights = nights.Night(measured, day, commit)
	if err := write(nightsFile, nights); err != nil {
		return err
	}
	return draw(history, nights)
}

// draw writes the page and the picture of all commits.
func draw(history, nights gate.History) error {
	page, err := gate.Page(history, nights)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(pageFile), 0o755); err != nil {
		return err
	}
	fmt.Printf("drew %s and %s by %s\n", plotFile, pageFile, nightsFile)
	return errors.Join(os.WriteFile(pageFile, []byte(page), 0o644), os.WriteFile(plotFile, []byte(gate.RatiosPlot(history, nights)), 0o644))
}

func write(file string, h gate.History) error {
	var text bytes.Buffer
	if err := h.Write(&text); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// checkedOut returns the day and the hash of the commit that is checked out.
func checkedOut(ctx context.Context) (day time.Time, commit string, err error) {
	raw, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%h %cd", "--date=format-local:%Y-%m-%d").Output()
	if err != nil {
		return time.Time{}, "", fmt.Errorf("asking git for the commit: %w", err)
	}
	commit, date, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	if day, err = time.Parse(time.DateOnly, date); err != nil {
		return time.Time{}, "", fmt.Errorf("git says that the commit is of %q: %w", date, err)
	}
	return day, commit, nil
}
