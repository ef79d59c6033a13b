// Package tiers says how the three tiers of tests (make check, make test, make nightly) run the
// unit tests of a package. hack/tiers runs the tiers; internal/mutants and hack/mutate measure
// what they notice.
package tiers

import "strconv"

// Checks is how many random cases make test draws for each property: those of every package
// once, and then those of the packages in Deep once more.
const Checks = 100

// Deep has the packages whose properties find faults that few random cases show, by path in the
// module, with the number of cases that make test draws for each of them.
var Deep = map[string]int{
	"core":        400,
	"core/engine": 400,
}

// Run is one run of the tests of a package: which of them, as a pattern for go test's -run, and
// how many cases its properties draw.
type Run struct {
	Pattern string
	Checks  int
}

// UnitTests returns how make test runs the tests of a package, given by its path in the module.
func UnitTests(pkg string) []Run {
	runs := []Run{{Checks: Checks}}
	if checks, ok := Deep[pkg]; ok {
		runs = append(runs, Run{Pattern: "Property", Checks: checks})
	}
	return runs
}

// Flags returns go test's flags for a run of a package whose tests use pgregory.net/rapid. The
// seed decides which cases are drawn; 0 leaves that to the clock.
func (r Run) Flags(seed uint64) []string {
	flags := []string{"-rapid.checks=" + strconv.Itoa(r.Checks), "-rapid.seed=" + strconv.FormatUint(seed, 10)}
	if r.Pattern != "" {
		flags = append(flags, "-run="+r.Pattern)
	}
	return flags
}
