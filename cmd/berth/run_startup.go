package main

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/internal/version"
)

// This file is the one line of the log that says what a berth run is: what a person needs first who
// reads the log of somebody else's.

// modeBoth is what --mode is called when Berth schedules and scales.
const modeBoth = "scheduler and autoscaler"

// startUp returns the keys and values of that line. No credential is among them.
func (f *runFlags) startUp(commandLine *pflag.FlagSet, cfg *config.Scheduler) []any {
	profiles := make([]string, 0, len(cfg.Profiles))
	for i := range cfg.Profiles {
		profiles = append(profiles, cfg.Profiles[i].SchedulerName)
	}
	return []any{"version", version.Get().Version, "rules", cmp.Or(f.emulated.String(), "the API server's"), "mode", f.modeName(), "provider", cmp.Or(f.cloudProvider, "none"),
		"profiles", profiles, "flags", config.Effective(commandLine)}
}

// modeName returns what this Berth does by its flags, in the words of --mode where it has them.
func (f *runFlags) modeName() string {
	mode := cmp.Or(f.mode, modeBoth)
	if f.mode == "" && f.cloudProvider == "" {
		mode = modeScheduler
	}
	if f.shadow {
		mode = "shadow of " + mode
	}
	return mode
}
