// Command mutate is mutation testing: it changes the code at random places, one place at a
// time, and lists the changes that make test's own unit tests don't notice.
//
//	go run ./hack/mutate -n 20 -seed 7 -under core/queue
//	go run ./hack/mutate -planted -least 62
//
// A change swaps an operator, negates a condition, drops a call or an
// assignment, swaps true and false, or has a function return at once. With -planted the faults of
// internal/test/mutants are tested instead. A change is
// compiled in with `go test -overlay`, so that no file is touched and several
// changes can be tested at once; leave the files alone while it runs. The
// package's own tests run first, then those of its dependants in core, drive, sim and
// sim/replay, until one package fails; each as often as make test runs it, with as many random
// cases (internal/test/testkit/tiers.go). A change that doesn't compile is replaced by the
// next one. The seed draws both the changes and the cases of properties, so that a run can
// be repeated.
//
// Why not gremlins: it draws no sample, and it knows only the tests of the
// changed package, which would miss most of what the core's scripts catch, or
// all tests of the module, which would take minutes for each change.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berthproject/berth/internal/test/mutants"
)

func main() {
	var o options
	flag.IntVar(&o.n, "n", 100, "how many changes to draw")
	flag.Uint64Var(&o.seed, "seed", 1, "which changes to draw")
	flag.StringVar(&o.under, "under", "", "change only what is below this folder, in this file, or in this line of a file (file.go:12)")
	flag.IntVar(&o.jobs, "jobs", 2, "how many changes to test at once")
	flag.IntVar(&o.least, "least", 0, "fail unless at least this many changes are noticed")
	flag.BoolVar(&o.planted, "planted", false, "test the faults of internal/test/mutants instead of random changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// options are the flags: see main for what they mean.
type options struct {
	n, jobs, least int
	seed           uint64
	under          string
	planted        bool
}

// result is the outcome of one change. A change that doesn't compile is no result: another is drawn for
// it.
type result struct {
	change
	answer
	by   string // the package whose tests noticed the change, "" when none did
	took time.Duration
	err  error // the change could not be tested
}

// run draws changes, tests them and prints the results. The current directory must be the
// module's root.
func run(ctx context.Context, o options) error {
	pkgs, err := list(ctx)
	if err != nil {
		return err
	}
	all, err := drawn(pkgs, o)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limitMemory()

	if o.n = min(o.n, len(all)); o.planted {
		o.n = len(all)
	}
	fmt.Printf("%d of %d changes, seed %d\n", o.n, len(all), o.seed)
	results, err := testAll(o, all, func(c change) result { return test(ctx, pkgs, dir, c, o.seed) })
	noticed := summarize(results)
	if err == nil && noticed < o.least {
		err = fmt.Errorf("make test notices %d of %d changes with the seed %d, want at least %d", noticed, len(results), o.seed, o.least)
	}
	return err
}

// drawn returns the changes to test, in the order in which they are tested.
func drawn(pkgs map[string]*pkg, o options) ([]change, error) {
	if o.planted {
		return planted(o.under)
	}
	all, err := candidates(pkgs, o.under)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing to change below %q", o.under)
	}
	rng := rand.New(rand.NewPCG(o.seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// planted returns the faults of internal/test/mutants in the files below a path. The tests that must
// notice a fault run first.
func planted(under string) (out []change, err error) {
	for i := range mutants.All {
		m := &mutants.All[i]
		if !strings.HasPrefix(m.File, under) {
			continue
		}
		text, err := os.ReadFile(m.File)
		if err != nil {
			return nil, err
		}
		from, to, err := m.At(string(text))
		if err != nil {
			return nil, err
		}
		out = append(out, change{pkg: module + "/" + path.Dir(m.File), file: m.File, line: 1 + strings.Count(string(text[:from]), "\n"), kind: m.Name,
			from: from, to: to, text: m.New, tests: strings.TrimPrefix(m.Pkg, "./")})
	}
	return out, nil
}

// candidates returns all changes of core, drive and sim below a path, in the
// order of packages, files and text.
func candidates(pkgs map[string]*pkg, under string) ([]change, error) {
	under = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(under), "./"), "/")
	var all []change
	for _, importPath := range slices.Sorted(maps.Keys(pkgs)) {
		p := pkgs[importPath]
		top, _, _ := strings.Cut(p.name(), "/")
		if !slices.Contains([]string{"core", "drive", "sim"}, top) || slices.Contains(forTests, importPath) {
			continue
		}
		for _, base := range p.GoFiles {
			file := relative(p, base)
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := changesOf(importPath, file, text)
			if err != nil {
				return nil, err
			}
			for _, c := range found {
				at := fmt.Sprintf("%s:%d", filepath.ToSlash(file), c.line)
				rest, below := strings.CutPrefix(at, under)
				if below && (under == "" || rest == "" || rest[0] == '/' || rest[0] == ':') {
					all = append(all, c)
				}
			}
		}
	}
	return all, nil
}

// testAll tests changes from the front of a list until n of them compiled, and
// prints each result as it comes. After an error it begins no more of them.
func testAll(o options, all []change, test func(change) result) ([]result, error) {
	done := make(chan result)
	var results []result
	var failure error
	next, running := 0, 0
	for {
		for running < o.jobs && next < len(all) && len(results)+running < o.n && failure == nil {
			c := all[next]
			go func() { done <- test(c) }()
			next++
			running++
		}
		if running == 0 {
			return results, failure
		}
		r := <-done
		running--
		switch {
		case r.err != nil:
			if failure == nil {
				failure = r.err
			}
		case r.answer != broken:
			results = append(results, r)
			fmt.Printf("[%d/%d] %-40s %4.0fs  %v\n", len(results), o.n, r.outcome(), r.took.Seconds(), r.change)
			if r.by == "" {
				fmt.Print(r.diff())
			}
		}
	}
}

// test runs the tests that are linked with the changed package, one package after the other,
// until one notices the change.
func test(ctx context.Context, pkgs map[string]*pkg, dir string, c change, seed uint64) (r result) {
	r.change = c
	from := time.Now()
	defer func() { r.took = time.Since(from) }()
	overlay, err := writeOverlay(dir, c)
	if err != nil {
		r.err = err
		return r
	}
	for _, p := range suites(pkgs, c.pkg, c.tests) {
		r.answer, r.err = p.run(ctx, overlay, seed)
		if r.err != nil || r.answer != unnoticed {
			r.by = p.name()
			break
		}
	}
	return r
}

// writeOverlay writes the changed file, and returns the path of an overlay (`go test
// -overlay`) that makes the compiler read it instead of the original.
func writeOverlay(dir string, c change) (string, error) {
	path, err := filepath.Abs(c.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	dir, err = os.MkdirTemp(dir, "")
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(changed, c.apply(text), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// outcome returns what became of the change in two or three words.
func (r result) outcome() string {
	switch {
	case r.by == "":
		return "NOT NOTICED"
	case r.answer == endless:
		return "endless in " + r.by
	}
	return "caught by " + r.by
}

// summarize prints how many changes each package's tests caught, and the changes
// that none did. It returns how many were caught.
func summarize(results []result) int {
	caught := map[string]int{}
	var missed []result
	for _, r := range results {
		if r.by == "" {
			missed = append(missed, r)
		} else {
			caught[r.by]++
		}
	}
	fmt.Printf("\n%d changes, %d caught, %d not noticed\n", len(results), len(results)-len(missed), len(missed))
	byCount := slices.SortedFunc(maps.Keys(caught), func(a, b string) int {
		return cmp.Or(cmp.Compare(caught[b], caught[a]), cmp.Compare(a, b))
	})
	for _, name := range byCount {
		fmt.Printf("  %4d  %s\n", caught[name], name)
	}
	slices.SortFunc(missed, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.from, b.from))
	})
	for _, r := range missed {
		fmt.Printf("not noticed: %v\n%s", r.change, r.diff())
	}
	return len(results) - len(missed)
}
