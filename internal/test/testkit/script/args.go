// Package script reads the arguments of commands in tests that are scripts
// (github.com/cockroachdb/datadriven), and refuses those that a command doesn't know.
package script

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Args are the arguments of one command of a script. A command reads every argument that it
// knows by its key, and then calls Done, which ends the test if an argument was not read: a
// misspelt argument would otherwise leave its default in force, and the script would test
// something else than it says. A value of the wrong form ends the test, too. Only after Done
// may a command pass what it has read to the code under test.
type Args struct {
	t     testing.TB
	d     *datadriven.TestData
	known []string // what the command has read or tried to read, for Done's message
	taken []bool   // whether it was read, by the index of d.CmdArgs
	named bool     // the first argument is a name, and no key
}

// NewArgs returns the arguments of a command. Failures end t, with the script's
// file and line.
func NewArgs(t testing.TB, d *datadriven.TestData) *Args {
	return &Args{t: t, d: d, taken: make([]bool, len(d.CmdArgs))}
}

// Fail ends the test: the command can't do what its arguments say.
func (a *Args) Fail(format string, values ...any) {
	a.t.Helper()
	a.d.Fatalf(a.t, a.d.Cmd+": "+format, values...)
}

// Name returns the first argument: the object that the command is about. It is required.
func (a *Args) Name() string {
	a.t.Helper()
	a.knows("NAME")
	if len(a.d.CmdArgs) == 0 || len(a.d.CmdArgs[0].Vals) > 0 {
		a.Fail("the first argument must be a name")
	}
	a.taken[0], a.named = true, true
	return a.d.CmdArgs[0].Key
}

// Flag reports whether an argument without a value is there.
func (a *Args) Flag(key string) bool {
	a.t.Helper()
	a.knows(key)
	values, ok := a.take(key)
	if ok && len(values) > 0 {
		a.Fail("%s takes no value", key)
	}
	return ok
}

// List returns the values of key=v or key=(v, w, …). It is empty for key=(), and nil when
// the argument isn't there.
func (a *Args) List(key string) []string {
	a.t.Helper()
	a.knows(key + "=…")
	values, ok := a.take(key)
	switch {
	case ok && len(values) == 0:
		a.Fail("%s takes a value", key)
	case ok && len(values) == 1 && values[0] == "":
		return []string{}
	}
	return values
}

// String returns the value of key=v, def when it isn't there.
func (a *Args) String(key, def string) string {
	a.t.Helper()
	a.knows(key + "=…")
	values, ok := a.take(key)
	switch {
	case !ok:
		return def
	case len(values) != 1:
		a.Fail("%s takes one value", key)
	}
	return values[0]
}

// Required is String for an argument that has no default.
func (a *Args) Required(key string) string {
	a.t.Helper()
	value := a.String(key, "")
	if value == "" {
		a.Fail("wants %s=…", key)
	}
	return value
}

// OneOf is String for an argument that has few values, the first of which is the
// default.
func (a *Args) OneOf(key string, values ...string) string {
	a.t.Helper()
	value := a.String(key, values[0])
	if !slices.Contains(values, value) {
		a.Fail("%s is %q; it may be %s", key, value, strings.Join(values, ", "))
	}
	return value
}

// Int is String for a number.
func (a *Args) Int(key string, def int) int {
	a.t.Helper()
	return parse(a, key, strconv.Itoa(def), strconv.Atoi)
}

// Duration is String for a duration such as 1m30s.
func (a *Args) Duration(key string, def time.Duration) time.Duration {
	a.t.Helper()
	return parse(a, key, def.String(), time.ParseDuration)
}

// Quantity is String for a quantity such as 500m or 8Gi.
func (a *Args) Quantity(key, def string) string {
	a.t.Helper()
	quantity := parse(a, key, def, resource.ParseQuantity)
	return quantity.String()
}

// parse reads a value of a type from its text.
func parse[T any](a *Args, key, def string, parse func(string) (T, error)) T {
	a.t.Helper()
	value, err := parse(a.String(key, def))
	if err != nil {
		a.Fail("%s: %v", key, err)
	}
	return value
}

// Done ends the test if the command has an argument that was not read, or one twice.
func (a *Args) Done() {
	a.t.Helper()
	for i, arg := range a.d.CmdArgs {
		if !a.taken[i] {
			a.Fail("takes no argument %s, or not twice; it knows %s", arg.String(), strings.Join(a.known, " "))
		}
	}
}

// knows records an argument for Done's message.
func (a *Args) knows(what string) {
	if !slices.Contains(a.known, what) {
		a.known = append(a.known, what)
	}
}

// take returns the values of the first argument with a key. A name may be equal to
// a key.
func (a *Args) take(key string) ([]string, bool) {
	for i, arg := range a.d.CmdArgs {
		if arg.Key == key && (i > 0 || !a.named) {
			a.taken[i] = true
			return arg.Vals, true
		}
	}
	return nil, false
}
