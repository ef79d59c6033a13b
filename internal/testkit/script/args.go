// Package script helps tests that are scripts (github.com/cockroachdb/datadriven).
package script

import (
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// Args reads the arguments of a script's command. A misspelt argument must not
// pass for one that wasn't given, so Done refuses what nobody has asked for, and a
// value of the wrong form ends the test.
type Args struct {
	t    *testing.T
	d    *datadriven.TestData
	used map[string]bool
}

// NewArgs returns the arguments of a command.
func NewArgs(t *testing.T, d *datadriven.TestData) *Args {
	return &Args{t: t, d: d, used: map[string]bool{}}
}

// Name returns the first argument, which every command that calls it must have: what
// the command is about.
func (a *Args) Name() string {
	a.t.Helper()
	if len(a.d.CmdArgs) == 0 || len(a.d.CmdArgs[0].Vals) > 0 {
		a.d.Fatalf(a.t, "%s: the first argument must be a name", a.d.Cmd)
	}
	a.used[a.d.CmdArgs[0].Key] = true
	return a.d.CmdArgs[0].Key
}

// Flag tells whether an argument without a value is there.
func (a *Args) Flag(key string) bool {
	a.t.Helper()
	vals, ok := a.values(key)
	if ok && len(vals) > 0 {
		a.d.Fatalf(a.t, "%s: %s takes no value", a.d.Cmd, key)
	}
	return ok
}

// List returns the values of key=v or key=(v, w, …). It is empty for key=(), and nil when
// the argument isn't there.
func (a *Args) List(key string) []string {
	vals, ok := a.values(key)
	if ok && len(vals) == 1 && vals[0] == "" {
		return []string{}
	}
	return vals
}

// String returns the value of key=v, def when it isn't there.
func (a *Args) String(key, def string) string {
	a.t.Helper()
	vals, ok := a.values(key)
	switch {
	case !ok:
		return def
	case len(vals) != 1:
		a.d.Fatalf(a.t, "%s: %s takes one value", a.d.Cmd, key)
	}
	return vals[0]
}

// Int is String for a number.
func (a *Args) Int(key string, def int) int {
	a.t.Helper()
	n, err := strconv.Atoi(a.String(key, strconv.Itoa(def)))
	if err != nil {
		a.d.Fatalf(a.t, "%s: %s: %v", a.d.Cmd, key, err)
	}
	return n
}

// Duration is String for a duration such as 1m30s.
func (a *Args) Duration(key string, def time.Duration) time.Duration {
	a.t.Helper()
	v, err := time.ParseDuration(a.String(key, def.String()))
	if err != nil {
		a.d.Fatalf(a.t, "%s: %s: %v", a.d.Cmd, key, err)
	}
	return v
}

// Done ends the test if the command has an argument that was not asked for.
func (a *Args) Done() {
	a.t.Helper()
	for _, arg := range a.d.CmdArgs {
		if !a.used[arg.Key] {
			a.d.Fatalf(a.t, "%s takes no argument %s", a.d.Cmd, arg.Key)
		}
	}
}

func (a *Args) values(key string) ([]string, bool) {
	a.used[key] = true
	arg, ok := a.d.Arg(key)
	return arg.Vals, ok
}
