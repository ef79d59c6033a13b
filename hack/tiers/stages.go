package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/berthproject/berth/internal/test/testkit"
)

// The tiers.
const (
	check   = "check"   // for the minute-by-minute loop
	test    = "test"    // what every change must pass
	nightly = "nightly" // everything, in hours
)

// This file says what each tier runs. What must hold:
//   - whatever make check runs, make test runs, and whatever make test runs, make nightly runs;
//   - make check and make test need nothing but Go and make. A stage that does need something
//     names it, and is skipped where that is missing, but in CI;
//   - a tier leaves tests out by naming those that it runs. None skips itself.

// smoke are the end-to-end tests of make test: Berth in place of kube-scheduler with the same
// outcomes, nodes bought and drained through the real API and provider protocol, a leader that is
// killed, and what people read while it runs.
var smoke = []string{
	"TestBadStarts", "TestDrain", "TestDropIn", "TestExplainNodeGroups", "TestFailover", "TestKubectlBerth", "TestLiveCluster",
	"TestObserve", "TestPodGroupsThatAreNotServed", "TestPreemption", "TestRecall", "TestVolumes",
}

// rendered are the tests of the chart that need neither the image nor a cluster.
var rendered = []string{
	"TestAShadowOfNodesMayOnlyRead", "TestAffinityStaysBesideTheAntiAffinity", "TestAlertsAndDashboardOfTheChart",
	"TestAnAccountOfOnesOwn", "TestAnnotationsForArtifactHub", "TestClustersOfOtherVersions", "TestFlagsOfValues", "TestFlowSchemas",
	"TestFurtherContainersComeLast", "TestKustomizeHasWhatTheChartHas", "TestLint", "TestMigratedValues", "TestMigration",
	"TestNamesFollowTheOverrides", "TestNamesOfValues", "TestNotesOfAShadow", "TestObjectsOfThePrometheusOperator",
	"TestPoliciesThatSelectTooMuch", "TestProviderAtASocket", "TestProviderHasNoTokenUnlessItAsks", "TestRenderedTestsRunForEveryChange",
	"TestRightsOfPagesAreJSON", "TestRightsToLookForOtherPrograms", "TestSpreadConstraintsSelectThePods",
	"TestTemplatesDependOnValuesAlone", "TestValuesWithAMistake", "TestViewers", "TestWhatAMonitoredChartHas", "TestWhatTheChartHas",
}

// kindsOfWorlds are the tests that play random worlds of one kind each. make test plays the same of them each time, as
// unit tests.
var kindsOfWorlds = []string{
	"TestDevices", "TestDevicesBought", "TestDevicesMove", "TestGangRoom", "TestGangs", "TestInterruptions", "TestPodGroups",
	"TestPodGroupsMove", "TestResizes",
}

// concurrent are the packages whose goroutines share memory.
var concurrent = []string{"./drive/...", "./edge/follow/...", "./edge/leader/...", "./edge/live/..."}

// checkStages are what one runs after every few lines: samples only, and no other processes.
func checkStages(settings) []stage {
	return []stage{
		vet(),
		{name: "unit", what: "unit tests, with samples of what is random", cmds: []command{{pkgs: []string{"./..."}, flags: []string{"-short"}}}},
	}
}

// testStages are what every change must pass. Random worlds and the cases of properties are the same for
// every change (usualSeed): the nights draw others.
func testStages(settings) []stage {
	return slices.Concat([]stage{
		vet(),
		unit(),
		{name: "properties", what: "more random cases of the properties that find most", cmds: deep(1)},
		{name: "soak", what: "random worlds with random faults", cmds: soak("-seeds=1000", "-seeds=400")},
		race(concurrent...),
		allocations(),
		{name: "chart", what: "what the Helm chart and the kustomizations render", cmds: []command{{dir: "deploy/charttest", pkgs: []string{"."}, flags: []string{"-count=1"}, tests: rendered}}},
	}, oracle("500", "50"), []stage{
		{name: "e2e", what: "Berth on a real control plane: the smoke tests, and a storm of 40 seconds with devices", cmds: []command{
			{dir: "devcluster", pkgs: others, flags: []string{"-count=1"}},
			{dir: "devcluster", pkgs: []string{"./e2e"}, flags: []string{"-count=1", "-parallel=3", "-timeout=15m"}, tests: smoke},
			{dir: "devcluster", pkgs: []string{"./e2e"}, flags: []string{"-count=1", "-timeout=5m", "-storm.lasts=40s", "-storm.devices", "-storm.only=apiserver-kill,leader-kill,both-kill"}, tests: []string{"TestStorm"}},
		}},
	})
}

// nightlyStages are everything. Random parts draw from the seed of the night, so that the nights
// together try ever more; the demo comes last since it loads the machine on purpose.
func nightlyStages(s settings) []stage {
	first := strconv.FormatUint(s.seed, 10) // of random worlds: each night plays others
	return slices.Concat([]stage{
		vet(),
		{name: "lint", what: "golangci-lint", cmds: []command{{args: []string{"make", "lint"}}}},
		unit(),
		{name: "odd", what: "every value of every example and object replaced by every odd one", cmds: []command{
			{pkgs: []string{"./core"}, flags: []string{"-count=1", "-timeout=3h", "-odd=0"}, tests: []string{"TestAnyValueOfAnObjectMayBeOdd"}},
			{pkgs: []string{"./sim"}, flags: []string{"-count=1", "-timeout=3h", "-odd=0"}, tests: []string{"TestAnyValueOfAnExampleMayBeOdd"}},
		}},
		race("./cmd/...", "./drive/...", "./edge/..."),
		{name: "properties", what: "ten times as many random cases", cmds: deep(10)},
		{name: "soak", what: fmt.Sprintf("%d random worlds with random faults, from seed %s on", s.worlds, first),
			cmds: append(soak(fmt.Sprintf("-seeds=%d", s.worlds), fmt.Sprintf("-seeds=%d", s.worlds/4), "-first="+first),
				command{pkgs: []string{"./sim/soak"}, flags: []string{"-count=1", "-timeout=4h", fmt.Sprintf("-seeds=%d", s.worlds/40), "-first=" + first}, tests: kindsOfWorlds})},
		{name: "mutants", what: "all planted faults, by make test's own unit tests and by those that must notice them; 100 random changes", cmds: []command{
			{pkgs: []string{"./internal/test/mutants"}, flags: []string{"-count=1", "-timeout=4h", "-planted=all"}, tests: []string{"TestMutantsAreNoticed", "TestGeneratorsFind"}},
			{args: []string{"go", "run", "./hack/mutate", "-planted", "-seed", first, "-least", "62"}},
			{args: []string{"go", "run", "./hack/mutate", "-n", "100", "-seed", first, "-least", "85"}},
		}},
		{name: "fuzz", what: "each fuzz target for " + s.fuzzTime, cmds: []command{{args: []string{"./hack/fuzz", s.fuzzTime}}}},
		allocations(),
	}, oracle(strconv.Itoa(s.clusters), "200"), []stage{
		solver("2000"),
		{name: "money", what: "what the cost expander pays on variants of the openb trace is at most 1.05 times the proved bound",
			needs: &tool{find: openbTrace, install: "test -d ../shared/data/openb"},
			cmds:  []command{{args: []string{"go", "run", "./hack/openb", "-only", "money", "-at-most", "1.05"}}}},
		{name: "e2e", what: "all end-to-end tests", cmds: []command{
			{dir: "devcluster", pkgs: others, flags: []string{"-count=1"}},
			{dir: "devcluster", pkgs: []string{"./e2e"}, flags: []string{"-count=1", "-parallel=3", "-timeout=90m", fmt.Sprintf("-storm.seed=%d", s.seed)}},
		}},
		{name: "chart", what: "the chart, installed with the image built from it", cmds: []command{
			{args: []string{"make", "build", "devcluster"}},
			{dir: "deploy/charttest", pkgs: []string{"."}, flags: []string{"-count=1", "-timeout=30m", "-skip=^TestOnRealNodes$"}}, // that of the stage node
		}},
		{name: "ui", what: "the web page's functions, and that ui/dist is what ui/src builds", needs: &tool{find: npm, install: "./hack/need npm npm npm"}, cmds: []command{
			{args: []string{"make", "ui"}},
			{args: []string{"git", "diff", "--exit-code", "--stat", "ui"}},
		}},
		{name: "node", what: "on real kubelets, the chart runs the image, and pods that Berth places run in containers", cmds: []command{
			{args: []string{"make", "build", "devcluster"}},
			{args: []string{"./hack/build-node"}},
			{dir: "devcluster", pkgs: []string{"./realnode"}, flags: []string{"-count=1", "-timeout=10m"}},
			{dir: "deploy/charttest", pkgs: []string{"."}, flags: []string{"-count=1", "-timeout=20m"}, tests: []string{"TestOnRealNodes"}},
		}},
		storms(s.seed, 3),
		{name: "gate", what: "placements are as fast beside kube-scheduler's as before, plans as cheap, pages of a large cluster as quick as they must be; all figures of speed for docs/performance-nights.tsv and out/performance.html", cmds: []command{
			{args: []string{"make", "build", "devcluster"}},
			{args: []string{"go", "run", "./hack/gate", "-night"}},
			{pkgs: []string{"./ui"}, flags: []string{"-count=1", "-timeout=30m", "-judge", "-ticks=16"}, tests: []string{"TestManyPods"}},
			{dir: "devcluster", pkgs: []string{"./conformance"}, flags: []string{"-count=1"}, tests: []string{"TestTheGateCatchesASlowDown"}},
		}},
		{name: "demo", what: "the demo, three times beside four busy processes", cmds: []command{{args: []string{"./hack/demo-under-load"}}}},
	})
}

// storms plays storms of ten minutes, of one seed after the other, every second one with devices. A slow machine
// takes longer: each kind of misfortune comes once.
func storms(seed uint64, n int) stage {
	cmds := []command{{args: []string{"make", "build", "devcluster"}}}
	for i := range n {
		args := []string{"./devcluster/bin/devcluster", "storm", "--minutes", "10", "--each", "--seeds", fmt.Sprint(seed + uint64(i))}
		if i%2 == 0 {
			args = append(args, "--devices")
		}
		cmds = append(cmds, command{args: args})
	}
	return stage{name: "storm", what: fmt.Sprintf("%d storms of ten minutes", n), cmds: cmds}
}

// others are the packages of the dev cluster that need no control plane, but the oracle.
var others = []string{"./account", "./bench", "./controllers", "./controlplane", "./demo", "./devices", "./kubelets", "./storm/...", "./upstream"}

// vet needs nothing but Go: gofmt asks about the files that are in the repository, so that scratch
// files don't fail it.
func vet() stage {
	return stage{name: "vet", what: "gofmt and go vet", cmds: []command{
		{args: []string{"bash", "-c", `files=$(gofmt -l $(git ls-files '*.go')) && { [ -z "$files" ] || { echo "not formatted (make fmt): $files"; exit 1; }; }`}},
		{args: []string{"go", "vet", "./..."}},
	}}
}

// unit has more time than go test gives a package: beside other load the random worlds take more than ten minutes.
func unit() stage {
	return stage{name: "unit", what: "unit tests", cmds: []command{
		{pkgs: []string{"./..."}, flags: []string{"-count=1", "-timeout=30m"}},
		{dir: "hack/generate", pkgs: []string{"./..."}, flags: []string{"-count=1"}},
		{dir: "hack/promcheck", pkgs: []string{"./..."}, flags: []string{"-count=1"}},
	}}
}

// deep draws more random cases of the properties of testkit.DeepChecks: of packages with as many at once.
func deep(times int) (cmds []command) {
	byChecks := map[int][]string{}
	for _, pkg := range slices.Sorted(maps.Keys(testkit.DeepChecks)) {
		byChecks[testkit.DeepChecks[pkg]] = append(byChecks[testkit.DeepChecks[pkg]], "./"+pkg)
	}
	for _, checks := range slices.Sorted(maps.Keys(byChecks)) {
		cmds = append(cmds, command{pkgs: byChecks[checks], match: "Property",
			flags: []string{"-count=1", "-timeout=2h", fmt.Sprintf("-rapid.checks=%d", times*checks)}})
	}
	return cmds
}

// soak plays so many worlds of each kind.
func soak(worlds, draining string, flags ...string) []command {
	return []command{
		{pkgs: []string{"./sim/soak"}, flags: slices.Concat([]string{"-count=1", "-timeout=4h", worlds}, flags), tests: []string{"TestSoak"}},
		{pkgs: []string{"./sim/soak"}, flags: slices.Concat([]string{"-count=1", "-timeout=4h", draining}, flags), tests: []string{"TestDraining"}},
	}
}

// race is of packages whose goroutines share memory; all others would be slowed down for nothing.
func race(pkgs ...string) stage {
	return stage{name: "race", what: "the race detector", needs: &tool{find: cCompiler, install: `./hack/need gcc "$(go env CC)" gcc libc6-dev`},
		cmds: []command{{env: []string{"CGO_ENABLED=1"}, pkgs: pkgs, flags: []string{"-race", "-count=1", "-timeout=30m"}}}}
}

// cCompiler returns an error unless there is the C compiler that the race detector needs.
func cCompiler() error {
	cc, err := exec.Command("go", "env", "CC").Output()
	if err == nil {
		_, err = exec.LookPath(strings.TrimSpace(string(cc)))
	}
	if err != nil {
		return fmt.Errorf("the race detector needs a C compiler: %w", err)
	}
	return nil
}

// solver puts so many small purchases to a solver of integer programs that shares nothing with Berth.
func solver(problems string) stage {
	return stage{name: "solver", what: "bounds and purchases of the cost expander beside the optima that GLPK finds for " + problems + " small problems",
		needs: &tool{find: glpsol, install: "./hack/need GLPK glpsol glpk-utils"},
		cmds: []command{{pkgs: []string{"./core/autoscaler/mix"}, flags: []string{"-tags=glpk", "-count=1", "-timeout=1h", "-rapid.checks=" + problems},
			tests: []string{"TestPropertyAnIndependentSolverAgrees"}}}}
}

// glpsol returns an error unless there is GLPK's solver.
func glpsol() error {
	if _, err := exec.LookPath("glpsol"); err != nil {
		return fmt.Errorf("the optima are GLPK's (Debian: glpk-utils): %w", err)
	}
	return nil
}

// openbTrace returns an error unless the trace is where hack/openb looks for it.
func openbTrace() error {
	if _, err := os.Stat("../shared/data/openb"); err != nil {
		return fmt.Errorf("the openb trace isn't beside the repository: %w", err)
	}
	return nil
}

// npm returns an error unless there is the program that installs what the web page is built with.
func npm() error {
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("the web page is built by Node's tools: %w", err)
	}
	return nil
}

// allocations counts and measures no time, so it gives the same answer on a busy machine.
func allocations() stage {
	return stage{name: "allocations", what: "placements and plans allocate no more than before, and plans buy no more nodes", cmds: []command{{args: []string{"go", "run", "./hack/gate", "-counts"}}}}
}

// oracle compares Berth with kube-scheduler's plugins on so many random clusters, and under each
// of the configuration files.
func oracle(clusters, perFile string) []stage {
	return []stage{{name: "oracle", what: "verdicts and scores are those of kube-scheduler's own plugins on " + clusters + " random clusters", cmds: []command{
		{dir: "devcluster", pkgs: []string{"./conformance"}, flags: []string{"-count=1", "-timeout=4h", "-rapid.checks=" + clusters}, tests: []string{"TestPropertyOracle"}},
		{dir: "devcluster", pkgs: []string{"./conformance"}, flags: []string{"-count=1", "-timeout=1h", "-rapid.checks=" + perFile}, tests: []string{"TestCases", "TestPropertyConfigurations", "TestRefusedFiles"}},
	}}}
}
