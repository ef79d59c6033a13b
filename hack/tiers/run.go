package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berthproject/berth/internal/test/testkit"
)

// This file runs the stages of a tier, one after the other.

// stage is a part of a tier that passes or fails as a whole. Its commands are run in order, and the
// first that fails ends it unless the tier goes on.
type stage struct {
	name  string
	what  string // what it checks, for its heading
	needs *tool  // nil for none: a stage without its tool is skipped, in CI it fails
	cmds  []command
}

// command is one go test, if it has packages, or any other command. String prints it as a person
// would type it: what a failure's repeat line says is what was run.
type command struct {
	dir string // relative to the repository's root
	// env is added to the environment of this process.
	env   []string
	pkgs  []string // go test's
	flags []string // go test's, without -run
	tests []string // the only top-level tests to run, each of which must exist; nil for all
	match string   // go test's -run, where tests is nil
	args  []string // the command, where pkgs is nil
}

// tool is a program that a stage needs beside Go. find returns an error that says what is missing.
type tool struct {
	find    func() error
	install string // a command
}

// runner runs stages and keeps what became of them. It belongs to one goroutine; what commands write
// meanwhile goes through pulse, which has a lock.
type runner struct {
	out  io.Writer
	tier string
	ci   bool
	goOn bool   // after a command or a stage that failed
	seed uint64 // of what properties draw

	log     *os.File // of the current stage
	done    []outcome
	skipped []string // tests and stages that didn't run, with the reason
}

// outcome is what became of a stage. It has passed when errs is empty.
type outcome struct {
	stage
	wall, cpu time.Duration
	// durations has, for each command, what go test told; nothing is in that of another command.
	durations []*results
	errs      []error
	// In the order of failures; they are printed as they are.
	repeat []string // commands that repeat its failures
}

// run runs stages, and returns an error if one failed.
// A stage that fails ends the tier, unless it goes on; what did run is summed up all the
// same.
func (r *runner) run(ctx context.Context, stages []stage) error {
	if err := os.MkdirAll(r.dir(), 0o755); err != nil {
		return err
	}
	from := time.Now()
	for i, s := range stages {
		fmt.Fprintf(r.out, "== %s %d/%d: %s\n", s.name, i+1, len(stages), s.what)
		o, err := r.stage(ctx, s)
		if err != nil {
			return err
		}
		if o.ok() {
			fmt.Fprintf(r.out, "== %s passed in %s (%s of CPU time)\n\n", s.name, round(o.wall), round(o.cpu))
		} else {
			fmt.Fprintf(r.out, "== %s FAILED after %s\n\n", s.name, round(o.wall))
		}
		// After Ctrl-C the summary says what was done until then.
		if ctx.Err() != nil || !o.ok() && !r.goOn {
			break
		}
	}
	return r.sumUp(time.Since(from))
}

// dir is where a tier's logs are.
func (r *runner) dir() string { return filepath.Join("out", r.tier) }

// ok reports whether the stage has passed. One that was skipped for want of a tool has, too.
func (o *outcome) ok() bool { return len(o.errs) == 0 }

// stage runs the commands of a stage. The error is not one of a test: the stage couldn't be begun,
// which ends the tier.
func (r *runner) stage(ctx context.Context, s stage) (o *outcome, err error) {
	// The outcome is recorded first, so that a stage that can't begin shows up in the
	// table.
	r.done = append(r.done, outcome{stage: s})
	o = &r.done[len(r.done)-1]
	from := time.Now()
	defer func() { o.wall = time.Since(from) }()
	if s.needs != nil {
		if err := s.needs.find(); err != nil {
			r.without(o, err)
			return o, nil
		}
	}
	if r.log, err = os.Create(filepath.Join(r.dir(), s.name+".log")); err != nil {
		return nil, err
	}
	defer r.log.Close()
	for _, c := range s.cmds {
		fmt.Fprintf(r.out, "  %s\n", c)
		if r.command(ctx, o, c); ctx.Err() != nil || !o.ok() && !r.goOn {
			break
		}
	}
	return o, nil
}

// without records that a stage can't run for want of its tool.
// On somebody's own machine a missing tool is no failure: the end of the output names it.
func (r *runner) without(o *outcome, err error) {
	if r.ci {
		o.errs = append(o.errs, fmt.Errorf("CI must not skip this stage: %w", err))
		o.repeat = append(o.repeat, o.needs.install)
		return
	}
	why := fmt.Sprintf("stage %s: %v", o.name, err)
	r.skipped = append(r.skipped, why)
	fmt.Fprintf(r.out, "  SKIPPED: %v\n", err)
}

// command runs a command of a stage. Its CPU time is that of the command and of all its children
// that it has waited for.
func (r *runner) command(ctx context.Context, o *outcome, c command) {
	args := c.args
	if c.pkgs != nil {
		// The flag goes right behind "go test", before packages.
		args = slices.Insert(c.goTest(), 2, "-json")
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// The environment of the process counts more than the tier's seed, and the command's
	// own more than both.
	cmd.Dir, cmd.Env = c.dir, slices.Concat([]string{fmt.Sprintf("RAPID_SEED=%d", r.seed)}, os.Environ(), c.env)
	// A test has processes of its own. All get the signal and may clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The minus sets the signal on the whole group.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	// Whoever hasn't ended a minute later is killed.
	cmd.WaitDelay = time.Minute
	out := &pulse{w: r.out, last: time.Now()}
	defer out.beat()()
	var seen *results
	var err error
	if c.pkgs != nil {
		seen, err = runGoTest(cmd, out, r.log)
	} else {
		// Commands other than go test print how their failure is repeated, as "repeat:
		// COMMAND".
		var tail bytes.Buffer
		w := io.MultiWriter(out, r.log, &tail)
		cmd.Stdout, cmd.Stderr = w, w
		err = cmd.Run()
		seen = &results{}
		if err != nil {
			o.repeat = append(o.repeat, repeatsIn(tail.String())...)
		}
	}
	if cmd.ProcessState != nil {
		o.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	o.durations = append(o.durations, seen)
	r.judge(o, c, seen, err)
}

// repeatsIn returns the commands by which a program says how its failure is repeated.
func repeatsIn(output string) (out []string) {
	for line := range strings.Lines(output) {
		if _, command, ok := strings.Cut(line, "repeat: "); ok {
			out = append(out, strings.TrimSpace(command))
		}
	}
	return out
}

// runGoTest runs a go test -json and reads it while it runs: what a test says shows at once. What
// was read counts even when the command has failed.
// The reader runs beside the command, which would block on a full pipe otherwise.
func runGoTest(cmd *exec.Cmd, out, log io.Writer) (*results, error) {
	in, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	read := make(chan *results, 1)
	go func() {
		seen, err := goTest(in, out, log)
		_ = in.CloseWithError(err)
		read <- seen
	}()
	err := cmd.Run()
	_ = w.Close() // the reader sees the end, which is all that is wanted
	return <-read, err
}

// judge decides whether a command passed, and how its failures are repeated. Of a failed test with
// failed subtests only these are repeated: that is quicker and finds the same. A command that failed
// without a failed test (it didn't compile, it ran out of time) is repeated as a whole. A command
// that passed is judged further: tests that it names must exist, since go test -run accepts any name.
func (r *runner) judge(o *outcome, c command, seen *results, err error) {
	for _, f := range seen.failures {
		o.errs = append(o.errs, fmt.Errorf("%s %s", f.pkg, f.test))
		switch {
		case len(f.repeat) > 0:
			o.repeat = append(o.repeat, f.repeat...)
		case !c.hasDeeper(seen.failures, f):
			o.repeat = append(o.repeat, c.repeating(f).String())
		}
	}
	if err != nil {
		if o.ok() {
			o.errs = append(o.errs, err)
		}
		if len(o.repeat) == 0 {
			o.repeat = append(o.repeat, c.String())
		}
		return
	}
	for _, name := range c.tests {
		if !seen.ran[name] {
			o.errs = append(o.errs, fmt.Errorf("there is no test %s: correct hack/tiers/stages.go", name))
		}
	}
	for _, test := range seen.skipped {
		r.skipped = append(r.skipped, test)
		if r.ci && !strings.Contains(test, testkit.NotInRepository) {
			o.errs = append(o.errs, fmt.Errorf("CI must not skip %s", test))
		}
	}
}

// hasDeeper reports whether a subtest of a failed test is among the failures, too.
// A test that failed only because of its subtest adds nothing.
func (c command) hasDeeper(all []failure, f failure) bool {
	return slices.ContainsFunc(all, func(o failure) bool { return o.pkg == f.pkg && strings.HasPrefix(o.test, f.test+"/") })
}

// goTest returns the arguments of a go test.
// Names are anchored, so that a test whose name another begins with isn't run for it.
func (c command) goTest() []string {
	args := slices.Concat([]string{"go", "test"}, c.pkgs, c.flags)
	switch {
	case c.tests != nil:
		args = append(args, "-run", "^("+strings.Join(c.tests, "|")+")$")
	case c.match != "":
		args = append(args, "-run", c.match)
	}
	return args
}

// repeating returns the command that repeats one failure. A seed that the failed property printed
// replaces that of the command: with it the property begins with the case that failed.
// Only the package of the failure is run again.
func (c command) repeating(f failure) command {
	pkg := "./" + strings.TrimPrefix(strings.TrimPrefix(f.pkg, path.Join(module, filepath.ToSlash(c.dir))), "/")
	again := command{dir: c.dir, env: c.env, pkgs: []string{pkg}, match: c.match, tests: c.tests}
	for _, flag := range c.flags {
		if f.seed == "" || !strings.HasPrefix(flag, "-rapid.seed=") {
			again.flags = append(again.flags, flag)
		}
	}
	if f.seed != "" {
		again.flags = append(again.flags, f.seed)
	}
	if f.test != "" {
		again.tests, again.match = nil, "^"+strings.ReplaceAll(f.test, "/", "$/^")+"$"
	}
	return again
}

// module is the path of the repository's root module; those of the nested ones lie below it.
const module = "github.com/berthproject/berth"

// String returns a command as one types it in the repository's root.
func (c command) String() string {
	args := c.args
	if c.pkgs != nil {
		args = c.goTest()
	}
	var words []string
	for _, a := range slices.Concat(c.env, args) {
		if strings.ContainsAny(a, "^$|()' *&;") || a == "" {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	line := strings.Join(words, " ")
	if c.dir != "" {
		line = "(cd " + c.dir + " && " + line + ")"
	}
	return line
}

// pulse is a writer that says from time to time that nothing has been written: CI systems end jobs
// that are silent for long, and people do, too.
// It stands before the output of commands, not before that of the tier itself.
type pulse struct {
	mu   sync.Mutex
	w    io.Writer
	last time.Time
}

func (p *pulse) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	return p.w.Write(b)
}

// silence is for how long nothing may be written until that is said.
const silence = time.Minute

// beat writes a line whenever nothing was written for a while, until its result is called.
// The result waits until the goroutine has ended: after that nothing is written.
func (p *pulse) beat() (stop func()) {
	ended, stopped := make(chan struct{}), make(chan struct{})
	from := time.Now()
	go func() {
		defer close(stopped)
		// Looked at four times in that time, so a line comes at most a quarter too late.
		tick := time.NewTicker(silence / 4)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case now := <-tick.C:
				p.mu.Lock()
				if now.Sub(p.last) >= silence {
					fmt.Fprintf(p.w, "    … still running after %s\n", round(now.Sub(from)))
					p.last = now
				}
				p.mu.Unlock()
			}
		}
	}()
	return func() { close(ended); <-stopped }
}

// round rounds to whole seconds, which is as exact as times of tests are.
func round(d time.Duration) time.Duration { return d.Round(time.Second) }

// sumUp prints what failed, how to repeat it, and what was skipped; and writes the table of
// times. It returns an error if a stage failed.
// The table is written in any case.
func (r *runner) sumUp(took time.Duration) error {
	times := filepath.Join(r.dir(), "times.md")
	if err := os.WriteFile(times, []byte(table(r.done)), 0o644); err != nil {
		return err
	}
	if len(r.skipped) > 0 {
		fmt.Fprintf(r.out, "skipped:\n")
		for _, s := range r.skipped {
			fmt.Fprintf(r.out, "  %s\n", s)
		}
	}
	failed := 0
	for i := range r.done {
		if o := &r.done[i]; !o.ok() {
			failed++
			r.complain(o)
		}
	}
	fmt.Fprintf(r.out, "make %s took %s; where it went is in %s\n", r.tier, round(took), times)
	if failed > 0 {
		return errors.New(r.tier + ": failed")
	}
	return nil
}

// complain prints what failed in a stage and how to repeat it.
func (r *runner) complain(o *outcome) {
	fmt.Fprintf(r.out, "%s failed (log: %s)\n", o.name, filepath.Join(r.dir(), o.name+".log"))
	for _, err := range o.errs {
		fmt.Fprintf(r.out, "  %v\n", err)
	}
	// Several failures may have one command.
	for _, command := range slices.Compact(o.repeat) {
		fmt.Fprintf(r.out, "  repeat: %s\n", command)
	}
}
