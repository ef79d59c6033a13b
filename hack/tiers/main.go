// Command tiers runs a tier of tests: the stages of make check, make test or make nightly.
//
//	main.go     the command and its settings
//	stages.go   which stages each tier has
//	run.go      runs stages, one after the other, and sums them up
//	gotest.go   reads what go test -json prints
//	times.go    where the minutes went
//
// A stage that fails ends make check and make test; make nightly goes on with the next one. Each
// failure is printed with a command that repeats it. With CI=true in the environment, a missing
// tool or a skipped test is a failure.
//
// Stages never run side by side: each may use all processors, and its times are worth a table only
// alone. out/TIER/ has the full output of each stage, of which people see a summary, and times.md.
// The exit code is 1 when a stage has failed, when a stage couldn't be begun, and for settings that
// mean nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// settings are what the command line and the environment say. Only the nightly tier heeds the last
// group; its defaults are those of a whole night.
type settings struct {
	tier     string
	only     string // names of stages, separated by commas; "" for all
	document bool   // write the table of times into CONTRIBUTING.md
	ci       bool

	// seed is what random tests draw from, all but fuzzing, so that one number repeats a run; 0
	// for the tier's own: the date for make nightly, and always the same for the others.
	seed uint64

	// For make nightly.
	// fuzzTime is for each target, as go test -fuzztime takes it.
	fuzzTime string
	worlds   int // of the soak test
	clusters int // of the oracle
}

func main() {
	s := settings{ci: os.Getenv("CI") != ""}
	flag.StringVar(&s.only, "only", "", "run only these stages, separated by commas")
	flag.BoolVar(&s.document, "document", false, "write the table of where the time went into CONTRIBUTING.md")
	flag.Uint64Var(&s.seed, "seed", 0, fmt.Sprintf("what random tests draw from; 0 for the date in the nightly tier, and %d in the others", usualSeed))
	flag.StringVar(&s.fuzzTime, "fuzztime", "10m", "how long the nightly tier fuzzes each target")
	flag.IntVar(&s.worlds, "worlds", 20000, "how many random worlds the nightly tier plays")
	flag.IntVar(&s.clusters, "clusters", 50000, "how many random clusters the nightly tier puts to kube-scheduler's plugins")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./hack/tiers [flags] check|test|nightly")
		flag.PrintDefaults()
	}
	flag.Parse()
	s.tier = flag.Arg(0)
	if s.seed == 0 {
		s.seed = usualSeed
		if s.tier == nightly {
			s.seed = today()
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the tier that the settings name. The current directory must be the repository's root.
func run(ctx context.Context, s settings) error {
	stages, err := stagesOf(s)
	if err != nil {
		return err
	}
	r := &runner{out: os.Stdout, tier: s.tier, seed: s.seed, ci: s.ci, goOn: s.tier == nightly}
	if err := r.run(ctx, stages); err != nil || !s.document {
		return err
	}
	return document(contributing, s.tier, table(r.done))
}

// usualSeed is what make check and make test draw from: what they find is the change's, not chance's.
const usualSeed = 1

// today returns the date as a number, such as 20270131: a seed that each night has of its own.
func today() uint64 {
	y, m, d := time.Now().Date()
	return uint64(y*10000 + int(m)*100 + d)
}

// stagesOf returns the stages that the settings choose: those of --only in the order in which they
// are named there. An error names what there is to choose from.
func stagesOf(s settings) ([]stage, error) {
	tiers := map[string]func(settings) []stage{check: checkStages, test: testStages, nightly: nightlyStages}
	of, ok := tiers[s.tier]
	if !ok {
		return nil, fmt.Errorf("%q is not a tier; give check, test or nightly", s.tier)
	}
	all := of(s)
	if s.only == "" {
		return all, nil
	}
	byName := map[string]stage{}
	var names []string
	for _, st := range all {
		byName[st.name] = st
		names = append(names, st.name)
	}
	var chosen []stage
	for name := range strings.SplitSeq(s.only, ",") {
		st, ok := byName[strings.TrimSpace(name)]
		if !ok {
			return nil, fmt.Errorf("make %s has no stage %q; its stages are %s", s.tier, name, strings.Join(names, ", "))
		}
		chosen = append(chosen, st)
	}
	return chosen, nil
}
