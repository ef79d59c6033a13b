package main

import (
	"cmp"
	"regexp"

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
	return []any{"version", version.Get().Version, "mode", f.modeName(), "provider", cmp.Or(f.cloudProvider, "none"),
		"profiles", profiles, "flags", effective(commandLine)}
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

// effective returns the flags of the command line whose values aren't their defaults, each as
// --NAME=VALUE. Those of upstream that have no effect here are left out, and so are a user and a
// password in an address.
func effective(commandLine *pflag.FlagSet) []string {
	out := []string{}
	commandLine.Visit(func(f *pflag.Flag) {
		if f.Hidden || f.Value.String() == f.DefValue {
			return
		}
		values := []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			values = s.GetSlice()
		}
		for _, v := range values {
			out = append(out, "--"+f.Name+"="+credentials.ReplaceAllString(v, "$1"))
		}
	})
	return out
}

// credentials matches a user and a password before the host of an address.
var credentials = regexp.MustCompile(`(^|//)[^/@]*@`)
