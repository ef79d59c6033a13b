package testkit

import (
	"flag"
	"strconv"
)

// This file says how the three tiers of tests (make check, make test, make nightly) run the unit
// tests of a package. hack/tiers runs the tiers; internal/test/mutants and hack/mutate measure what
// they notice.

// NotInRepository is in the reason of every test that is skipped because the repository doesn't
// have what it needs. In CI no other test may be skipped.
const NotInRepository = "which is not part of the repository"

// UsualChecks is how many random cases make test draws for each property.
const UsualChecks = 100

// Checks returns how many random cases each property draws in this run. What few cases may all lack is to be
// expected of more than UsualChecks only.
func Checks() int {
	n, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		panic(err)
	}
	return n
}

// DeepChecks are the packages in which few random cases show few faults, by path in the module: make
// test draws this many cases more for each of their properties.
var DeepChecks = map[string]int{
	"core":                        400,
	"core/autoscaler/scaledown":   1500,
	"core/autoscaler/scaleup":     1500,
	"core/cluster":                1500,
	"core/engine":                 2000,
	"core/lifecycle/nodedeletion": 1500,
	"core/lifecycle/reservation":  1500,
	"core/queue":                  1500,
	"core/scheduler":              1500,
}

// TestRun is one run of the tests of a package: which of them, as a pattern for go test's -run ("" for
// all), and how many cases each property draws.
type TestRun struct {
	Pattern string
	Checks  int
}

// UnitTests returns how make test runs the tests of a package, given by its path in the module.
func UnitTests(pkg string) []TestRun {
	runs := []TestRun{{Checks: UsualChecks}}
	if checks, ok := DeepChecks[pkg]; ok {
		runs = append(runs, TestRun{Pattern: "Property", Checks: checks})
	}
	return runs
}
