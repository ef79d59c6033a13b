package live

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/pprof"
	"strings"
	"time"
)

// This file logs where a goroutine hangs that takes longer than it may: the restart that the
// liveness probe brings about destroys the evidence.

// watchdogEvery is how often it is looked whether a goroutine is stuck.
const watchdogEvery = 10 * time.Second

// goroutineLabel is the pprof label by which the goroutines of Health are told from others, in
// profiles too. What they start inherits it.
const goroutineLabel = "berth"

// labelled calls f as the goroutine g.
func labelled(ctx context.Context, g goroutine, f func()) {
	pprof.Do(ctx, pprof.Labels(goroutineLabel, string(g)), func(context.Context) { f() })
}

// watchdog logs each goroutine that is stuck, once for each task, until the context ends.
func watchdog(ctx context.Context, h *Health, log *slog.Logger) {
	tick := time.NewTicker(watchdogEvery)
	defer tick.Stop()
	logged := map[goroutine]time.Time{} // since when the task runs that was logged last
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for g, t := range h.stuck() {
			if logged[g].Equal(t.since) {
				continue
			}
			logged[g] = t.since
			log.Error("a goroutine is stuck; /livez fails until it continues", "goroutine", string(g), "in", t.what, "for", time.Since(t.since).Round(time.Second), "stack", stacksOf(g))
		}
	}
}

// stacksOf returns the stacks of a goroutine and of those that it has started.
func stacksOf(g goroutine) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	label := `"` + goroutineLabel + `":"` + string(g) + `"`
	var of []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			of = append(of, stack)
		}
	}
	return strings.Join(of, "\n\n")
}
