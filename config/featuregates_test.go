package config

import (
	goflag "flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/test/testkit"
)

var rewrite = goflag.Bool("rewrite", false, "rewrite the table of feature gates in docs/compatibility.md")

// TestFeatureGatesAreHonouredIgnoredOrRefused has lists as they stand on command lines of control
// planes, under both versions: honoured are the gates that the rules have.
func TestFeatureGatesAreHonouredIgnoredOrRefused(t *testing.T) {
	const (
		inside = " has no effect: it concerns kube-scheduler's internals, not its decisions"
		groups = " has no effect: Berth places the members of PodGroups together wherever the API server serves PodGroups of scheduling.k8s.io/v1beta1"
		stage  = "that would change the scheduling rules, and Berth implements those of kube-scheduler VERSION with its defaults; remove it"
		byRule = "Berth implements the rules of kube-scheduler VERSION with its defaults, which is "
	)
	type outcome struct{ notes, err, honoured string }
	note := func(text string) outcome { return outcome{notes: "--feature-gates: " + text} }
	refused := func(gate, why string) outcome {
		return outcome{err: "--feature-gates has " + gate + "; " + why}
	}
	both := func(o outcome) [2]outcome { return [2]outcome{o, o} }
	for _, c := range []struct {
		name, list string
		want       [2]outcome // under 1.36, and under 1.37; VERSION stands for these
	}{
		{"nothing", "", both(outcome{})},
		{"defaults", "PodLevelResources=true,kube:GenericWorkload=false,SchedulerAsyncPreemption=true,NominatedNodeNameForExpectation=true", both(outcome{honoured: "GenericWorkload=false,NominatedNodeNameForExpectation=true"})},
		{"the default of one version", "StorageCapacityScoring=true,VolumeLimitScaling=false", both(outcome{honoured: "StorageCapacityScoring=true,VolumeLimitScaling=false"})},
		{"another component's", "ComponentFlagz=true,ContainerStopSignals=true", both(note("ContainerStopSignals has no effect: no rule of kube-scheduler depends on it"))},
		{"another component's, whose default has changed", "KubeletInUserNamespace=true", [2]outcome{note("KubeletInUserNamespace has no effect: no rule of kube-scheduler depends on it"), {}}},
		{"no alpha", "AllAlpha=false", both(outcome{})},
		{"of the log", "LoggingAlphaOptions=true,ContextualLogging=false", both(outcome{})},
		{"how kube-scheduler works", "OpportunisticBatching=false", both(note("OpportunisticBatching" + inside))},
		{"how kube-scheduler 1.37 works", "SchedulerPreQueueingHints=true", [2]outcome{note("SchedulerPreQueueingHints has no effect: kube-scheduler 1.37 has this gate, and 1.36 doesn't"), note("SchedulerPreQueueingHints" + inside)}},
		{"of devices", "DRAPartitionableDevices=false", both(refused("DRAPartitionableDevices=false", byRule+"true for this gate; remove it"))},
		{"of devices, locked in 1.37", "DRAExtendedResource=false", [2]outcome{refused("DRAExtendedResource=false", byRule+"true for this gate; remove it"), refused("DRAExtendedResource=false", "it is locked to true in 1.37; remove it")}},
		{"of pod groups", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true", both(outcome{notes: "--feature-gates: TopologyAwareWorkloadScheduling" + groups, honoured: "GenericWorkload=true"})},
		{"of pod groups in 1.36", "GangScheduling=true", [2]outcome{note("GangScheduling" + groups), note("GangScheduling has no effect: kube-scheduler 1.36 has this gate, and 1.37 doesn't")}},
		{"expected nodes", "NominatedNodeNameForExpectation=false", both(outcome{honoured: "NominatedNodeNameForExpectation=false"})},
		{"a rule", "TaintTolerationComparisonOperators=true", both(refused("TaintTolerationComparisonOperators=true", byRule+"false for this gate; remove it"))},
		{"a rule that is off", "kube:PodLevelResources=false", both(refused("PodLevelResources=false", byRule+"true for this gate; remove it"))},
		{"a rule of 1.37", "InPlacePodVerticalScalingSchedulerPreemption=true", [2]outcome{
			note("InPlacePodVerticalScalingSchedulerPreemption has no effect: kube-scheduler 1.37 has this gate, and 1.36 doesn't"),
			refused("InPlacePodVerticalScalingSchedulerPreemption=true", byRule+"false for this gate; remove it")}},
		{"the election", "CoordinatedLeaderElection=true", both(refused("CoordinatedLeaderElection=true", "Berth's replicas elect their leader with the Lease alone, and would not be candidates; remove it"))},
		{"locked in 1.36, and gone", "SidecarContainers=false", [2]outcome{refused("SidecarContainers=false", "it is locked to true in 1.36; remove it"), note("SidecarContainers has no effect: kube-scheduler 1.36 has this gate, and 1.37 doesn't")}},
		{"all of a stage", "AllBeta=true", both(refused("AllBeta=true", stage))},
		{"every beta off", "AllBeta=false", both(refused("AllBeta=false", stage))},
		{"two that are refused", "AllBeta=false,AllAlpha=true", both(outcome{err: "--feature-gates has AllAlpha=true; " + stage + "\n--feature-gates has AllBeta=false; " + stage})},
		{"unknown", "PodLevelRessources=true", both(refused("PodLevelRessources=true", "kube-scheduler 1.36 and 1.37 have no such gate; remove it, or correct its name"))},
	} {
		for i, v := range compat.Versions() {
			var g FeatureGates
			if err := g.Set(c.list); err != nil {
				t.Fatal(err)
			}
			rules, notes, err := g.Check(v)
			got := outcome{notes: strings.Join(notes, "\n"), honoured: (&FeatureGates{set: rules.Gates}).String()}
			if err != nil {
				got.err = err.Error()
			}
			want := c.want[i]
			want.err = strings.ReplaceAll(want.err, "VERSION", v.String())
			if got != want || rules.Version != v {
				t.Errorf("%s, %s:\n got %+v\nwant %+v", c.name, v, got, want)
			}
		}
	}
}

// TestEveryVersionHasItsGates: an empty list would refuse all gates. It also finds names in the code that
// no version has.
func TestEveryVersionHasItsGates(t *testing.T) {
	for _, v := range compat.Versions() {
		if n := len(gatesByVersion[v]); n < 200 {
			t.Errorf("the list of %s has %d gates", v, n)
		}
	}
	for _, name := range slices.Concat(honouredGates, slices.Collect(maps.Keys(ineffectiveGates)), slices.Collect(maps.Keys(refusedGates))) {
		if versionsWith(name) == "" {
			t.Errorf("no version has the gate %s", name)
		}
	}
}

// TestRulesKnowTheirGates: a gate has what was set, or the version's default.
func TestRulesKnowTheirGates(t *testing.T) {
	for v, on := range map[compat.Version]bool{compat.V36: false, compat.V37: true} {
		if got := (Rules{Version: v}).Enabled("StorageCapacityScoring"); got != on {
			t.Errorf("StorageCapacityScoring is %t by default in %s, want %t", got, v, on)
		}
		if got := (Rules{Version: v, Gates: map[string]bool{"StorageCapacityScoring": !on}}).Enabled("StorageCapacityScoring"); got == on {
			t.Errorf("StorageCapacityScoring=%t has no effect in %s", !on, v)
		}
	}
	if (Rules{Version: compat.V37}).Enabled("GangScheduling") || (Rules{Version: compat.V37}).Enabled("") {
		t.Error("a gate that the version doesn't have is on")
	}
}

// TestGatesAreDocumented compares the table in docs/compatibility.md: every gate that kube-scheduler of a
// version reads and that may be set there.
func TestGatesAreDocumented(t *testing.T) {
	path := filepath.Join("..", "docs", "compatibility.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := testkit.Splice(string(text), "<!-- feature gates -->\n", "<!-- end -->", gateTable())
	if err != nil {
		t.Fatal(err)
	}
	testkit.Generated(t, path, want, "go test ./config -rewrite", *rewrite)
}

// gateTable has a row for each such gate.
func gateTable() string {
	var b strings.Builder
	b.WriteString("| gate | default in 1.36 | in 1.37 | set to something else |\n|---|---|---|---|\n")
	names := map[string]bool{}
	for _, v := range compat.Versions() {
		for name, gate := range gatesByVersion[v] {
			if gate.read && !gate.locked {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, defaultText(compat.V36, name), defaultText(compat.V37, name), fateText(name))
	}
	return b.String()
}

// defaultText says what a gate is by default.
func defaultText(v compat.Version, name string) string {
	gate, ok := gatesByVersion[v][name]
	switch {
	case !ok:
		return "–"
	case gate.locked:
		return fmt.Sprintf("%t, locked", gate.on)
	}
	return fmt.Sprint(gate.on)
}

// fateText says what becomes of a gate that isn't at its default, in the newest version in which it may be set.
func fateText(name string) string {
	for _, v := range slices.Backward(compat.Versions()) {
		gate, ok := gatesByVersion[v][name]
		if !ok || gate.locked {
			continue
		}
		switch fate, why := fateOf(name, !gate.on, v); {
		case fate == gateHonoured:
			return "honoured"
		case fate == gateIneffective:
			return "accepted, no effect: " + why
		case refusedGates[name] != "":
			return "refused: " + why
		}
		return "refused: a scheduling rule depends on it"
	}
	return ""
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
