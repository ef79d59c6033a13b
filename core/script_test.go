package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
)

// TestScripts runs testdata/scripts/*.txt. A script begins with its
// configuration:
//
//	config [autoscale [unneeded=30s] [delay-after-add=1m] [evict-daemons]]
//
// Each further command feeds inputs to one Step (script_commands_test.go); its
// golden text is the Ready that came back (script_print_test.go), and at the end
// how many pods wait. A plan that a Ready asks for is made at once, in a Step
// of its own whose Ready is printed too, as the virtual world does. After each
// Step the core's invariants are checked. A command refuses arguments that it
// doesn't know (script_args_test.go).
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// world is what one script runs against.
type world struct {
	*driven // nil before the first command
	t       *testing.T
	out     strings.Builder // what the Steps of a command brought
	now     time.Time
	groups  []nodegroup.Group // as the provider lists them
}

func newWorld(t *testing.T) *world { return &world{t: t, now: time.Unix(1000, 0)} }

var (
	errUnconfigured = errors.New("the first command must be config")
	errConfigured   = errors.New("only the first command may be config")
)

// run does one command and returns its golden text. When it returns an error,
// nothing was fed to the core.
func (w *world) run(d *datadriven.TestData) (string, error) {
	a := newArgs(d)
	switch {
	case d.Cmd == "config" && w.driven != nil:
		return "", errConfigured
	case d.Cmd == "config":
		return "", w.configure(a)
	case w.driven == nil:
		return "", errUnconfigured
	}
	in, err := w.inputs(a)
	if err != nil {
		return "", err
	}
	return w.step(in...), nil
}

func (w *world) configure(a *args) error {
	cfg := core.DefaultConfig()
	cfg.Engine.Seed = 1
	if a.flag("autoscale") {
		cfg.Autoscale = &core.Autoscale{
			UnneededTime:    a.duration("unneeded", "30s"),
			DelayAfterAdd:   a.duration("delay-after-add", "1m"),
			EvictDaemonPods: a.flag("evict-daemons"),
		}
	}
	if err := a.check(); err != nil {
		return err
	}
	w.driven = newDriven(w.t, cfg, inlinePlans{}, defaults, drive.HookFunc(w.print))
	return nil
}

func (w *world) step(in ...step.Input) string {
	w.out.Reset()
	w.stepOut(w.now, in...)
	out := &w.out
	if c := w.Core().Queue(); c.Active+c.Backoff+c.Unschedulable+c.Gated > 0 {
		fmt.Fprintf(out, "queue: active %d, backoff %d, unschedulable %d, gated %d\n", c.Active, c.Backoff, c.Unschedulable, c.Gated)
	}
	if out.Len() == 0 {
		return "nothing to do\n"
	}
	return out.String()
}
