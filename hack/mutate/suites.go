package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berthproject/berth/internal/test/testkit"
)

// This file runs tests: which packages' tests can notice a change of a package, in which
// order, and for how long each may run.

const module = "github.com/berthproject/berth"

// testers are the packages whose tests run for changes of other packages, besides all
// packages below core and drive: in this order, the slowest last. Tests of the edge have
// clocks, and on a busy machine may fail for another reason; the others look at pages and
// commands.
var testers = []string{"core", "drive", "sim", "sim/replay", "sim/soak"}

// forTests are packages that only tests use: a change there is a change of a test.
var forTests = []string{module + "/core/engine/reference", module + "/sim/soak"}

// Limits of one run of a package's tests. A change that makes a loop endless is
// caught when the time is over, and one that also allocates by maxMemory.
const (
	minTime   = 60 * time.Second
	maxSlower = 10      // times as long as without a change
	maxMemory = 6 << 30 // bytes of data, for each process that go test starts
)

// pkg is a package of the module as `go list -json` prints it.
type pkg struct {
	Dir, ImportPath                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string

	below map[string]bool // what its tests are linked with, itself included
	rapid bool            // its tests take the flags of pgregory.net/rapid

	measured  sync.Once
	unchanged []time.Duration // how long each run of its tests takes without a change
	err       error           // why they fail without a change
}

func (p *pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// testsOthers reports whether the package's tests run for changes of other packages.
func (p *pkg) testsOthers() bool {
	return slices.Contains(testers, p.name()) || strings.HasPrefix(p.name(), "core/") || strings.HasPrefix(p.name(), "drive/")
}

// list returns the module's packages by import path. The current directory must
// be the module's root.
func list(ctx context.Context) (map[string]*pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	pkgs := map[string]*pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		pkgs[p.ImportPath] = p
	}
	for _, p := range pkgs {
		tests := slices.Concat(p.TestImports, p.XTestImports)
		p.rapid = slices.Contains(tests, "pgregory.net/rapid")
		p.below = map[string]bool{p.ImportPath: true}
		var add func(imports []string)
		add = func(imports []string) {
			for _, path := range imports {
				if q := pkgs[path]; q != nil && !p.below[path] {
					p.below[path] = true
					add(q.Imports)
				}
			}
		}
		add(p.Imports)
		add(tests)
	}
	return pkgs, nil
}

// suites returns the packages whose tests are linked with the package at path:
// the one named first, itself, then those that are linked with the fewest packages, then testers.
func suites(pkgs map[string]*pkg, path, first string) []*pkg {
	var all []*pkg
	for _, p := range pkgs {
		if p.below[path] && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 && (p.ImportPath == path || p.testsOthers()) {
			all = append(all, p)
		}
	}
	rank := func(p *pkg) int {
		switch {
		case p.name() == first:
			return -3
		case p.ImportPath == path:
			return -2
		}
		return slices.Index(testers, p.name())
	}
	slices.SortFunc(all, func(a, b *pkg) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a.below), len(b.below)), cmp.Compare(a.ImportPath, b.ImportPath))
	})
	return all
}

// answer is the outcome of a package's tests with a change.
type answer int

const (
	unnoticed answer = iota
	failed           // a test failed
	endless          // the tests didn't end in time
	broken           // the change doesn't compile
)

// run runs a package's tests with an overlay of files, as make test runs them. An error means that
// the tests fail without any change, or that ctx is done.
func (p *pkg) run(ctx context.Context, overlay string, seed uint64) (answer, error) {
	p.measured.Do(func() { p.measure(ctx, seed) })
	if p.err != nil {
		return unnoticed, p.err
	}
	for i, r := range testkit.UnitTests(p.name()) {
		out, err := p.test(ctx, overlay, r, seed, max(minTime, maxSlower*p.unchanged[i]).Round(time.Second))
		switch {
		case ctx.Err() != nil:
			return unnoticed, ctx.Err()
		case err == nil:
			continue
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			return broken, nil
		case bytes.Contains(out, []byte("panic: test timed out after")):
			return endless, nil
		}
		return failed, nil
	}
	return unnoticed, nil
}

// measure runs a package's tests without a change.
func (p *pkg) measure(ctx context.Context, seed uint64) {
	for _, r := range testkit.UnitTests(p.name()) {
		from := time.Now()
		var out []byte
		if out, p.err = p.test(ctx, "", r, seed, 30*time.Minute); p.err != nil {
			p.err = fmt.Errorf("%s fails without a change: %w\n%s", p.name(), p.err, out)
			return
		}
		p.unchanged = append(p.unchanged, time.Since(from))
	}
	fmt.Printf("the tests of %s take %.0fs without a change\n", p.name(), sum(p.unchanged).Seconds())
}

func sum(all []time.Duration) (out time.Duration) {
	for _, d := range all {
		out += d
	}
	return out
}

// test is one `go test`. The seed makes the properties draw the same cases for
// each change.
func (p *pkg) test(ctx context.Context, overlay string, r testkit.TestRun, seed uint64, limit time.Duration) ([]byte, error) {
	args := []string{"test", "-vet=off", "-count=1", "-failfast", "-timeout=" + limit.String()}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	if r.Pattern != "" {
		args = append(args, "-run="+r.Pattern)
	}
	args = append(args, p.ImportPath)
	if p.rapid {
		// A seed of 0 would be drawn from the clock.
		args = append(args, fmt.Sprintf("-rapid.checks=%d", r.Checks), fmt.Sprintf("-rapid.seed=%d", seed+1), "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	// The test is a child of go: both go when ctx is done.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.CombinedOutput()
}

// limitMemory limits the memory of each process that is started from here on: with a change,
// a loop may allocate for ever. Where the system has no such limit, nothing is limited.
func limitMemory() {
	limit := syscall.Rlimit{Cur: maxMemory, Max: maxMemory}
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &limit)
}

// relative returns a file of a package relative to the module's root.
func relative(p *pkg, file string) string {
	return filepath.Join(filepath.FromSlash(p.name()), file)
}
