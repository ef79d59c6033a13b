// Command launches plays the infrastructures of examples/launch-control under fixed limits
// and adaptively, prints how long each takes, and draws the figures of
// docs/launch-control.md. The current directory must be the root of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/berthproject/berth/sim/sweep"
)

func main() {
	seed := flag.Uint64("seed", 0, "seed to use instead of the scenarios'; then no figures are drawn")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "launches:", err)
		os.Exit(1)
	}
}

// outcome is what is known of one infrastructure.
type outcome struct {
	sweep.Infrastructure
	fixed          []sweep.Run // by limit
	best, adaptive sweep.Run
}

func run(ctx context.Context, seed uint64) error {
	options := sweep.Options{Folder: filepath.Join("examples", "launch-control"), Seed: seed}
	var all []outcome
	fmt.Println("| infrastructure | best fixed limit | it takes | adaptive takes | ratio | allowed | launches that fail, adaptive |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, i := range sweep.Infrastructures() {
		fixed, err := sweep.Fixed(ctx, i.Name, options)
		if err != nil {
			return err
		}
		adaptive, err := sweep.Play(ctx, i.Name, sweep.Adaptive, options)
		if err != nil {
			return err
		}
		o := outcome{i, fixed, sweep.Best(fixed), adaptive}
		all = append(all, o)
		fmt.Printf("| %s | %d | %s | %s | %.2f | %.2f | %d of %d |\n", i.Title, o.best.Limit, minutes(o.best), minutes(adaptive),
			adaptive.Seconds/o.best.Seconds, i.Allowed, adaptive.Failed, adaptive.Launched+adaptive.Failed)
	}
	if seed != 0 {
		return nil
	}
	if err := os.WriteFile(filepath.Join("docs", "launch-control-limits.svg"), []byte(limitsFigure(all)), 0o644); err != nil {
		return err
	}
	none, err := sweep.Play(ctx, all[0].Name, 0, options)
	if err != nil {
		return err
	}
	published, err := sweep.Play(ctx, all[0].Name, 70, options)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe night under the limit 70: %s, %d launches fail. Without a limit: %s, %d of %d fail.\n",
		minutes(published), published.Failed, minutes(none), none.Failed, none.Launched+none.Failed)
	return os.WriteFile(filepath.Join("docs", "launch-control-night.svg"), []byte(nightFigure(all[0], published, none)), 0o644)
}

func minutes(r sweep.Run) string { return fmt.Sprintf("%.1f min", r.Seconds/60) }
