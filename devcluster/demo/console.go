package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// This file asks the Berth of a demo what it is doing, by the commands with which somebody watches
// it from a second terminal.

// console is the way to a Berth that serves. It runs the binary as a person would: what the demo is told
// is what a user is told.
type console struct {
	berth string   // path of the binary
	reach []string // the flags that say which Berth is asked
}

// invite prints the commands.
func (c *console) invite(out io.Writer) {
	reach := strings.Join(c.reach, " ")
	fmt.Fprintf(out, "\nwhile it runs, watch Berth in a second terminal:\n  %s top %s\n  %[1]s explain nodes %s\n\n", c.berth, reach)
}

// ask returns what Berth waits for, in one line. Its error is what the command printed.
func (c *console) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.berth, append([]string{"status", "--brief"}, c.reach...)...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	answer, err := cmd.Output()
	if said := strings.TrimSpace(failure.String()); err != nil && said != "" {
		err = errors.New(said)
	}
	return strings.TrimSpace(string(answer)), err
}

// why returns what Berth waits for, or why it doesn't say.
func (c *console) why(ctx context.Context) string {
	answer, err := c.ask(ctx)
	if err != nil {
		return fmt.Sprintf("no answer (%v)", err)
	}
	return answer
}

// await returns when Berth answers. It is an error when a process of the demo ends before, or when
// there is no answer within standstill.
func (c *console) await(ctx context.Context, bed *testbed) error {
	ctx, cancel := context.WithTimeoutCause(ctx, standstill, fmt.Errorf("expected Berth to lead within %s", standstill))
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := c.ask(ctx)
		if err == nil {
			return nil
		}
		if died := bed.failed(); died != nil {
			return died
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
