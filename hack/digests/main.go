// Command digests computes a digest for each example, each of many random worlds, and each script
// of the core. A digest is a hash of all decisions in their order: two versions of Berth with the
// same digests decide the same. It compares them with hack/digests/digests.txt and fails if any
// differs; with -write it writes them there.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
	"github.com/berthproject/berth/sim/soak"
)

func main() {
	write := flag.Bool("write", false, "write the digests to "+file)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *write); err != nil {
		fmt.Fprintln(os.Stderr, "digests:", err)
		os.Exit(1)
	}
}

// file has the digests as they were.
// It is read as a text by those who review a change: each line names what differs.
const file = "hack/digests/digests.txt"

// worlds is how many random worlds are played, from seed 1 on. 500 have every kind of event of sim/soak
// many times over; what they miss is left to the night, which draws other seeds.
const worlds = 500

// run computes the digests, and writes or compares them. The current directory must be the root
// of the repository.
func run(ctx context.Context, write bool) error {
	lines, err := digests(ctx)
	if err != nil {
		return err
	}
	text := strings.Join(lines, "\n") + "\n"
	if write {
		return os.WriteFile(file, []byte(text), 0o644)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(raw) != text {
		differences(strings.Split(strings.TrimSpace(string(raw)), "\n"), lines)
		return errors.New("decisions have changed; if they were meant to, run it with -write and commit " + file)
	}
	fmt.Println("no decision has changed")
	return nil
}

// differences prints the lines that only one side has: those that are gone first, then those that are new. A world
// that decides differently has a line in both.
func differences(before, after []string) {
	for _, line := range before {
		if !slices.Contains(after, line) {
			fmt.Println("-", line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			fmt.Println("+", line)
		}
	}
}

// digests returns a line for each digest, always in the same order. The examples are those that are played
// in seconds and between them use each expander, limit and kind of drain; the worlds are drawn by seed, so
// that a change of what is drawn shows as a difference, too; the scripts have a digest so that a change
// of several of them is seen at a glance.
func digests(ctx context.Context) (lines []string, err error) {
	for _, path := range []string{
		"examples/night-batch/unlimited.yaml", "examples/night-batch/capped.yaml", "examples/night-batch/baked.yaml",
		"examples/scale/night-20k.yaml", "examples/scale/customer-night.yaml", "examples/scale/day-150k.yaml",
	} {
		digest, err := example(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("playing %s: %w", path, err)
		}
		lines = append(lines, fmt.Sprintln("example", path, digest))
	}
	for seed := uint64(1); seed <= worlds; seed++ {
		out, err := soak.Play(ctx, soak.Generate(seed), sim.Options{})
		if err != nil {
			return nil, fmt.Errorf("playing the random world %d: %w", seed, err)
		}
		lines = append(lines, fmt.Sprintln("world", seed, out.Digest, len(out.Problems), "problems"))
	}
	scripts, err := goldens()
	lines = append(lines, scripts...)
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines, err
}

// example plays a scenario file and returns the digest of its decisions. No invariant is checked: that is for the
// tests of the examples.
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

// goldens returns hashes of the scripts. Their golden text is the log of decisions, which `go
// test ./core` compares with what the code decides.
func goldens() (lines []string, err error) {
	paths, err := filepath.Glob("core/testdata/scripts/*.txt")
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no scripts below core/testdata/scripts: %v", err)
	}
	slices.Sort(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		lines = append(lines, fmt.Sprintln("script", filepath.Base(path), hex.EncodeToString(sum[:])))
	}
	return lines, nil
}
