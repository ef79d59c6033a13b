package core_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"
)

// args are the arguments of one command of a script. A command asks for every
// argument that it knows, and check then refuses those that nobody asked for:
// a misspelt argument would otherwise leave its default in force, and the script
// would test something else than it says. The first malformed value is refused in
// the same way.
type args struct {
	cmd   string
	given []datadriven.CmdArg
	known []string // as check lists them
	err   error
}

func newArgs(d *datadriven.TestData) *args { return &args{cmd: d.Cmd, given: d.CmdArgs} }

// name takes the first argument, which has no key.
func (a *args) name(what string) string {
	a.known = append(a.known, what)
	if len(a.given) == 0 || len(a.given[0].Vals) > 0 {
		a.fail("wants %s first", what)
		return ""
	}
	name := a.given[0].Key
	a.given = a.given[1:]
	return name
}

// list returns the values of key=value or key=(value,value), nil if it isn't given.
func (a *args) list(key string) []string {
	a.known = append(a.known, key+"=…")
	at := slices.IndexFunc(a.given, func(g datadriven.CmdArg) bool { return g.Key == key && len(g.Vals) > 0 })
	if at < 0 {
		return nil
	}
	values := a.given[at].Vals
	a.given = slices.Delete(slices.Clone(a.given), at, at+1)
	return values
}

// text returns the value of key=value.
func (a *args) text(key, otherwise string) string {
	switch values := a.list(key); len(values) {
	case 0:
		return otherwise
	case 1:
		return values[0]
	default:
		a.fail("%s has %d values", key, len(values))
		return otherwise
	}
}

// flag says whether an argument is given that has no value.
func (a *args) flag(key string) bool {
	a.known = append(a.known, key)
	at := slices.IndexFunc(a.given, func(g datadriven.CmdArg) bool { return g.Key == key && len(g.Vals) == 0 })
	if at >= 0 {
		a.given = slices.Delete(slices.Clone(a.given), at, at+1)
	}
	return at >= 0
}

// required returns the value of an argument that has no default.
func (a *args) required(key string) string {
	value := a.text(key, "")
	if value == "" {
		a.fail("wants %s=…", key)
	}
	return value
}

func (a *args) number(key string, otherwise int) int {
	return parsed(a, key, fmt.Sprint(otherwise), strconv.Atoi)
}

func (a *args) duration(key, otherwise string) time.Duration {
	return parsed(a, key, otherwise, time.ParseDuration)
}

// quantity returns a value that resource.MustParse takes.
func (a *args) quantity(key, otherwise string) string {
	q := parsed(a, key, otherwise, resource.ParseQuantity)
	return q.String()
}

func parsed[T any](a *args, key, otherwise string, parse func(string) (T, error)) T {
	value, err := parse(a.text(key, otherwise))
	if err != nil {
		a.fail("%s: %w", key, err)
	}
	return value
}

func (a *args) fail(format string, values ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, values...)
	}
}

// check returns what is wrong with the arguments. It is asked when the command
// has read all of them, and before it does anything.
func (a *args) check() error {
	switch {
	case a.err != nil:
		return fmt.Errorf("%s: %w", a.cmd, a.err)
	case len(a.given) > 0:
		return fmt.Errorf("%s: unknown argument %q; known are %s", a.cmd, a.given[0].String(), strings.Join(a.known, " "))
	}
	return nil
}

// TestScriptsRefuseArguments has a script fail for what no command asked for,
// and for values that aren't what they should be.
func TestScriptsRefuseArguments(t *testing.T) {
	for line, want := range map[string]string{
		"nod n1":               `unknown command "nod"`,
		"node n1 cpus=2":       `node: unknown argument "cpus=2"; known are NAME cpu=… memory=… zone=… taint=… notready group=…`,
		"node n1 cpu=2 cpu=3":  `node: unknown argument "cpu=3"`,
		"node n1 n2":           `node: unknown argument "n2"`,
		"node n1 notready=yes": `node: unknown argument "notready=yes"`,
		"node n1 zone":         `node: unknown argument "zone"`,
		"node n1 cpu=two":      `node: cpu: quantities must match`,
		"node n1 cpu=(1,2)":    `node: cpu has 2 values`,
		"node cpu=2":           `node: wants NAME first`,
		"pod p priority=high":  `pod: priority: strconv.Atoi: parsing "high"`,
		"pod p phase=Runing":   `pod: phase: "Runing" is none of [Pending Running Succeeded Failed]`,
		"pods p cpu=1":         `pods: count is 0`,
		"pods p count=2 cpi=1": `pods: unknown argument "cpi=1"`,
		"gone p now":           `gone: unknown argument "now"; known are NAME`,
		"told p":               `told: wants by=…`,
		"tick soon":            `tick: SECONDS: strconv.ParseFloat: parsing "soon"`,
		"group g failed=m1":    `group: failed: no instance "m1"`,
		"config autoscale":     errConfigured.Error(),
	} {
		w := newWorld(t)
		mustRun(t, w, "config autoscale")
		if _, err := w.run(command(t, line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got: %v\nwant: %s", line, err, want)
		}
		if got := w.now; !got.Equal(newWorld(t).now) {
			t.Errorf("%s: refused, but the time is %v", line, got)
		}
	}
}

func TestScriptsRefuseConfigurations(t *testing.T) {
	for line, want := range map[string]string{
		"tick 1":                         errUnconfigured.Error(),
		"config unneeded=30s":            `config: unknown argument "unneeded=30s"; known are autoscale`,
		"config autoscale unneeded=30":   `config: unneeded: time: missing unit`,
		"config autoscale evict-deamons": `config: unknown argument "evict-deamons"; known are autoscale unneeded=… delay-after-add=… evict-daemons`,
	} {
		if _, err := newWorld(t).run(command(t, line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got: %v\nwant: %s", line, err, want)
		}
	}
}

func command(t *testing.T, line string) *datadriven.TestData {
	t.Helper()
	cmd, given, err := datadriven.ParseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	return &datadriven.TestData{Cmd: cmd, CmdArgs: given}
}

func mustRun(t *testing.T, w *world, line string) {
	t.Helper()
	if _, err := w.run(command(t, line)); err != nil {
		t.Fatal(err)
	}
}
