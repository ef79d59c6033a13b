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

	"github.com/berthproject/berth/core/compat"
)

// This file has --feature-gates. Control planes give one list to all of their components, so most
// gates on it concern others. What must hold: a gate that would alter how kube-scheduler decides
// is honoured, has the default of the version in force, or is refused.

// The feature gates of kube-scheduler, a list for each version: a line has the gate's name, its
// default, "locked" if nothing else is allowed, and "read" if the scheduler's own code asks for it.
// TestFeatureGates in devcluster/upstream writes the list of the version that its module links. That of
// 1.36 was written by the same test when devcluster linked k8s.io/kubernetes v1.36.3; to write it
// again, run the test in a module that requires that version.
var (
	//go:embed featuregates136.txt
	gates136 string
	//go:embed featuregates137.txt
	gates137 string
)

// gateOf is the entry of the list for a gate.
type gateOf struct{ on, locked, read bool }

// gatesByVersion has the lists, by name of the gate.
var gatesByVersion = map[compat.Version]map[string]gateOf{compat.V36: readGates(gates136), compat.V37: readGates(gates137)}

// readGates reads a list.
func readGates(list string) map[string]gateOf {
	out := map[string]gateOf{}
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		out[f[0]] = gateOf{on: f[1] == "true", locked: slices.Contains(f[2:], "locked"), read: slices.Contains(f[2:], "read")}
	}
	return out
}

// NominatedNodeNameForExpectation has the node of a pod whose binding takes a while written into its
// status.nominatedNodeName.
const NominatedNodeNameForExpectation = "NominatedNodeNameForExpectation"

// GenericWorkload has the members of PodGroups placed together. Unlike kube-scheduler, Berth does so unless
// the gate is set to false: an API server without the gate keeps no groups of pods.
const GenericWorkload = "GenericWorkload"

// Gates of rules.
const (
	storageCapacityScoring = "StorageCapacityScoring"
	volumeLimitScaling     = "VolumeLimitScaling"
)

// honouredGates are those that have their effect in Berth. A gate of a rule is also in setGates.
var honouredGates = []string{GenericWorkload, NominatedNodeNameForExpectation, storageCapacityScoring, volumeLimitScaling}

// Why a gate that kube-scheduler reads has no effect.
const (
	innerGate           = "it concerns kube-scheduler's internals, not its decisions"
	podGroupGate        = "Berth places the members of PodGroups together wherever the API server serves PodGroups of scheduling.k8s.io/v1beta1"
	compositeGate       = "Berth does not place groups of a CompositePodGroup yet, so their pods stay pending"
	groupPreemptionGate = "Berth's pod groups preempt wherever the API server serves PodGroups, by the preemptionPolicy of their pods"
	unreadGate          = "no rule of kube-scheduler depends on it"
)

// ineffectiveGates are those that the scheduler reads and that change nothing that Berth decides, with
// the reason. InterPodAffinityHostnameFastPath assumes that no two nodes have one kubernetes.io/hostname.
var ineffectiveGates = map[string]string{
	"InterPodAffinityHostnameFastPath": innerGate,
	"OpportunisticBatching":            innerGate,
	"SchedulerAsyncAPICalls":           innerGate,
	"SchedulerAsyncPreemption":         innerGate,
	"SchedulerPopFromBackoffQ":         innerGate,
	"SchedulerPreQueueingHints":        innerGate,
	"SchedulerQueueingHints":           innerGate,

	"CompositePodGroup":               compositeGate,
	"GangScheduling":                  podGroupGate,
	"PodGroupPreemptionPolicy":        groupPreemptionGate,
	"TopologyAwareWorkloadScheduling": podGroupGate,
	"WorkloadAwarePreemption":         groupPreemptionGate,
}

// refusedGates are those that are refused for a reason of their own.
var refusedGates = map[string]string{
	"CoordinatedLeaderElection": "Berth's replicas elect their leader with the Lease alone, and would not be candidates; remove it",
}

// NotHonoured returns those of some gates that have no effect in this Berth, by name.
func NotHonoured(gates map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(gates)), func(name string) bool { return slices.Contains(honouredGates, name) })
}

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

// Check returns the rules that a version's kube-scheduler follows with these gates, what is to be said
// of gates that have no effect, and an error for each that can't be honoured. A gate that only another
// version has is no error: one command line must do before and after an upgrade of the API server.
func (g *FeatureGates) Check(v compat.Version) (rules Rules, notes []string, err error) {
	rules.Version = v
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(g.set)) {
		on := g.set[name]
		switch fate, why := fateOf(name, on, v); fate {
		case gateRefused:
			errs = append(errs, fmt.Errorf("--feature-gates has %s=%t; %s", name, on, why))
		case gateIneffective:
			notes = append(notes, fmt.Sprintf("--feature-gates: %s has no effect: %s", name, why))
		case gateHonoured:
			rules.set(name, on)
		}
	}
	return rules, notes, errors.Join(errs...)
}

// gateFate is what becomes of a gate.
type gateFate uint8

const (
	gateDefault     gateFate = iota // it has its default, or is the logger's
	gateHonoured                    // Berth does as it says
	gateIneffective                 // accepted, with a reason why nothing changes
	gateRefused                     // with the reason, and what to do
)

// fateOf returns what becomes of a gate that is on or off, with the reason.
func fateOf(name string, on bool, v compat.Version) (gateFate, string) {
	gate, exists := gatesByVersion[v][name]
	why, ineffective := ineffectiveGates[name]
	refusal, refused := refusedGates[name]
	switch {
	case slices.Contains(allGates, name):
		if !on && name != "AllBeta" { // AllBeta=false switches off what is on by default
			return gateDefault, ""
		}
		return gateRefused, fmt.Sprintf("that would change the scheduling rules, and Berth implements those of kube-scheduler %s with its defaults; remove it", v)
	case !exists:
		if only := versionsWith(name); only != "" {
			return gateIneffective, fmt.Sprintf("kube-scheduler %s has this gate, and %s doesn't", only, v)
		}
		return gateRefused, fmt.Sprintf("kube-scheduler %s have no such gate; remove it, or correct its name", compat.Names())
	case slices.Contains(loggingGates(), name): // the logger knows them
		return gateDefault, ""
	case gate.locked && on != gate.on:
		return gateRefused, fmt.Sprintf("it is locked to %t in %s; remove it", gate.on, v)
	case slices.Contains(honouredGates, name): // at its default, too: it is given under any other version
		return gateHonoured, ""
	case on == gate.on:
		return gateDefault, ""
	case ineffective:
		return gateIneffective, why
	case refused:
		return gateRefused, refusal
	case gate.read:
		return gateRefused, fmt.Sprintf("Berth implements the rules of kube-scheduler %s with its defaults, which is %t for this gate; remove it", v, gate.on)
	}
	return gateIneffective, unreadGate
}

// versionsWith lists the versions that have a gate, "" for none.
func versionsWith(name string) string {
	var out []string
	for _, v := range compat.Versions() {
		if _, ok := gatesByVersion[v][name]; ok {
			out = append(out, v.String())
		}
	}
	return strings.Join(out, " and ")
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
