package config

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// This file has --feature-gates. Control planes give one list to all of their components, so most
// gates on it concern others. What must hold: a gate that would alter how kube-scheduler decides
// has its default of 1.36 or is refused.

// gateList is every feature gate that kube-scheduler 1.36.3 takes, a line each: the name, the
// default, "locked" if nothing else is allowed, and "read" if the scheduler's own code asks for it.
// TestFeatureGates in devcluster/upstream writes it.
//
//go:embed featuregates.txt
var gateList string

// gateOf is the entry of the list for a gate.
type gateOf struct{ on, locked, read bool }

// knownGates returns the list by name.
func knownGates() map[string]gateOf {
	out := map[string]gateOf{}
	for line := range strings.Lines(gateList) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		out[f[0]] = gateOf{on: f[1] == "true", locked: slices.Contains(f[2:], "locked"), read: slices.Contains(f[2:], "read")}
	}
	return out
}

// innerGates are those that the scheduler reads and that alter how fast it is, not what it
// decides.
var innerGates = []string{"OpportunisticBatching", "SchedulerAsyncAPICalls", "SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ", "SchedulerQueueingHints"}

// allGates set many gates at once.
var allGates = []string{"AllAlpha", "AllBeta"}

// FeatureGates is the pflag.Value of --feature-gates. The zero value has every gate at its
// default.
type FeatureGates struct{ set map[string]bool }

// Set implements pflag.Value: NAME=true|false, separated by commas, each with the prefix "kube:"
// or without.
func (g *FeatureGates) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(part, "kube:"), "=")
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%q must be NAME=true or NAME=false, several separated by commas", part)
		}
		if g.set == nil {
			g.set = map[string]bool{}
		}
		g.set[strings.TrimSpace(name)] = on
	}
	return nil
}

// String implements pflag.Value.
func (g *FeatureGates) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(g.set)) {
		out = append(out, fmt.Sprintf("%s=%t", name, g.set[name]))
	}
	return strings.Join(out, ",")
}

// Type implements pflag.Value.
func (*FeatureGates) Type() string { return "gates" }

// Check returns what is to be said of gates that have no effect, and an error for each that can't
// be honoured.
func (g *FeatureGates) Check() (notes []string, err error) {
	known := knownGates()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(g.set)) {
		on, gate := g.set[name], known[name]
		_, exists := known[name]
		fails := func(why string) { errs = append(errs, fmt.Errorf("--feature-gates has %s=%t; %s", name, on, why)) }
		switch {
		case slices.Contains(allGates, name):
			if on || name == "AllBeta" { // AllBeta=false switches off what is on by default
				fails("that would change the scheduling rules, and Berth implements those of kube-scheduler 1.36 with its defaults; remove it")
			}
		case !exists:
			fails("kube-scheduler 1.36 has no such gate; remove it, or correct its name")
		case slices.Contains(loggingGates(), name): // the logger knows them
		case gate.locked && on != gate.on:
			fails(fmt.Sprintf("it is locked to %t in 1.36; remove it", gate.on))
		case on == gate.on:
		case strings.HasPrefix(name, "DRA"):
			notes = append(notes, fmt.Sprintf("--feature-gates: %s has no effect: Berth does not allocate devices yet, so pods with resource claims stay pending", name))
		case slices.Contains(innerGates, name):
			notes = append(notes, fmt.Sprintf("--feature-gates: %s has no effect: it concerns kube-scheduler's internals, not its decisions", name))
		case gate.read:
			fails(fmt.Sprintf("Berth implements the rules of kube-scheduler 1.36 with its defaults, which is %t for this gate; remove it", gate.on))
		default:
			notes = append(notes, fmt.Sprintf("--feature-gates: %s has no effect: no rule of kube-scheduler depends on it", name))
		}
	}
	return notes, errors.Join(errs...)
}

// loggingGates are the names of the gates that the library for logs reads.
func loggingGates() []string {
	return []string{string(logsapi.ContextualLogging), string(logsapi.LoggingAlphaOptions), string(logsapi.LoggingBetaOptions)}
}

// Logging returns those gates as that library takes them.
func (g *FeatureGates) Logging() (featuregate.FeatureGate, error) {
	gates := featuregate.NewFeatureGate()
	if err := logsapi.AddFeatureGates(gates); err != nil {
		return nil, fmt.Errorf("adding the feature gates for logging: %w", err)
	}
	set := map[string]bool{}
	for _, name := range loggingGates() {
		if on, ok := g.set[name]; ok {
			set[name] = on
		}
	}
	if err := gates.SetFromMap(set); err != nil {
		return nil, fmt.Errorf("--feature-gates: %w", err)
	}
	return gates, nil
}
