// Command digests prints a line with a digest for each example, each of many random worlds,
// and each script of the core. A digest is a hash of all decisions in their order: two
// versions of Berth that print the same lines decide the same. `make digests` compares the
// lines with hack/digests/digests.txt.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
	"github.com/berthproject/berth/sim/soak"
)

func main() {
	worlds := flag.Uint64("worlds", 500, "how many random worlds to play, from seed 1 on")
	examples := flag.Bool("examples", true, "play the examples too, which takes a minute")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *worlds, *examples); err != nil {
		fmt.Fprintln(os.Stderr, "digests:", err)
		os.Exit(1)
	}
}

// run prints the digests, always in the same order. The current directory must be the root
// of the repository.
func run(ctx context.Context, worlds uint64, examples bool) error {
	paths := []string{
		"examples/night-batch/unlimited.yaml", "examples/night-batch/capped.yaml", "examples/night-batch/baked.yaml",
		"examples/scale/night-20k.yaml", "examples/scale/day-150k.yaml",
	}
	if !examples {
		paths = nil
	}
	for _, path := range paths {
		digest, err := example(ctx, path)
		if err != nil {
			return fmt.Errorf("playing %s: %w", path, err)
		}
		fmt.Println("example", path, digest)
	}
	for seed := uint64(1); seed <= worlds; seed++ {
		out, err := soak.Play(ctx, soak.Generate(seed), sim.Options{})
		if err != nil {
			return fmt.Errorf("playing the random world %d: %w", seed, err)
		}
		fmt.Println("world", seed, out.Digest, len(out.Problems), "problems")
	}
	return goldens()
}

// example plays a scenario file and returns the digest of its decisions.
func example(ctx context.Context, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	s, err := scenario.Parse(path, text)
	if err != nil {
		return "", err
	}
	w, err := sim.New(s, sim.Options{})
	if err != nil {
		return "", err
	}
	sum, err := w.Run(ctx)
	if err != nil {
		return "", err
	}
	return sum.Digest, nil
}

// goldens prints hashes of the scripts. Their golden text is the log of decisions, which `go
// test ./core` compares with what the code decides.
func goldens() error {
	paths, err := filepath.Glob("core/testdata/scripts/*.txt")
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no scripts below core/testdata/scripts: %v", err)
	}
	slices.Sort(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		fmt.Println("script", filepath.Base(path), hex.EncodeToString(sum[:]))
	}
	return nil
}
