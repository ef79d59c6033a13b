package sim_test

import (
	"os"
	"strings"
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// playExample plays a scenario of examples, with texts in it replaced, checks it, and holds
// it to what it expects.
func playExample(tb testing.TB, name string, replace ...string) *scenario.Summary {
	tb.Helper()
	return playExampleWith(tb, sim.Options{Check: true}, name, replace...)
}

// playExampleWith is playExample with options: checks take most of the time of a large one.
func playExampleWith(tb testing.TB, o sim.Options, name string, replace ...string) *scenario.Summary {
	tb.Helper()
	path := "../examples/" + name + ".yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	run, err := scenario.Parse(path, []byte(strings.NewReplacer(replace...).Replace(string(text))))
	if err != nil {
		tb.Fatal(err)
	}
	w, err := sim.New(run, o)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := w.Run(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for _, why := range out.Check(run.Spec.Expect) {
		tb.Errorf("%s: %s", name, why)
	}
	for _, broken := range w.Stats().Violations {
		tb.Errorf("%s: %s", name, broken)
	}
	return out
}
