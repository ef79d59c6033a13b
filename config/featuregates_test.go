package config

import (
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"
)

// TestFeatureGatesAreHonouredIgnoredOrRefused has lists as they stand on command lines of control
// planes.
func TestFeatureGatesAreHonouredIgnoredOrRefused(t *testing.T) {
	const inside = " has no effect: it concerns kube-scheduler's internals, not its decisions"
	for _, c := range []struct{ name, list, notes, err string }{
		{"nothing", "", "", ""},
		{"defaults", "PodLevelResources=true,kube:GangScheduling=false,SchedulerAsyncPreemption=true", "", ""},
		{"another component's", "ComponentFlagz=true,KubeletInUserNamespace=true", "--feature-gates: KubeletInUserNamespace has no effect: no rule of kube-scheduler depends on it", ""},
		{"no alpha", "AllAlpha=false", "", ""},
		{"of the log", "LoggingAlphaOptions=true,ContextualLogging=false", "", ""},
		{"how kube-scheduler works", "OpportunisticBatching=false", "--feature-gates: OpportunisticBatching" + inside, ""},
		{"of devices", "DRAPartitionableDevices=false", "--feature-gates: DRAPartitionableDevices has no effect: Berth does not allocate devices yet, so pods with resource claims stay pending", ""},
		{"a rule", "GangScheduling=true", "", "--feature-gates has GangScheduling=true; Berth implements the rules of kube-scheduler 1.36 with its defaults, which is false for this gate; remove it"},
		{"a rule that is off", "kube:PodLevelResources=false", "", "--feature-gates has PodLevelResources=false; Berth implements the rules of kube-scheduler 1.36 with its defaults, which is true for this gate; remove it"},
		{"locked", "SidecarContainers=false", "", "--feature-gates has SidecarContainers=false; it is locked to true in 1.36; remove it"},
		{"all of a stage", "AllBeta=false,AllAlpha=true", "", "--feature-gates has AllAlpha=true; that would change the scheduling rules, and Berth implements those of kube-scheduler 1.36 with its defaults; remove it"},
		{"every beta off", "AllBeta=false", "", "--feature-gates has AllBeta=false; that would change the scheduling rules, and Berth implements those of kube-scheduler 1.36 with its defaults; remove it"},
		{"unknown", "PodLevelRessources=true", "", "--feature-gates has PodLevelRessources=true; kube-scheduler 1.36 has no such gate; remove it, or correct its name"},
	} {
		var g FeatureGates
		if err := g.Set(c.list); err != nil {
			t.Fatal(err)
		}
		notes, err := g.Check()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if c.name == "all of a stage" { // both are named, one a line
			got, _, _ = strings.Cut(got, "\n")
		}
		if strings.Join(notes, "\n") != c.notes || got != c.err {
			t.Errorf("%s:\n got %q, %s\nwant %q, %s", c.name, notes, got, c.notes, c.err)
		}
	}
}

// TestTheLoggerGetsItsGates and has its defaults for others.
func TestTheLoggerGetsItsGates(t *testing.T) {
	for list, want := range map[string]bool{"": false, "LoggingAlphaOptions=true": true, "kube:LoggingAlphaOptions=true,ComponentFlagz=true": true} {
		var g FeatureGates
		if err := g.Set(list); err != nil {
			t.Fatal(err)
		}
		gates, err := g.Logging()
		if err != nil || gates.Enabled(logsapi.LoggingAlphaOptions) != want {
			t.Errorf("%s: got %v, %v; want %t", list, gates.Enabled(logsapi.LoggingAlphaOptions), err, want)
		}
	}
}
