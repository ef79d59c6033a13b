package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// This file is what is done about flags of kube-scheduler and Cluster Autoscaler that Berth
// doesn't honour. A command line that starts one of them starts Berth, too, as long as nothing on
// it asks for what Berth can't do: flags that only tune how the other program works have no
// effect, which is logged, and the others are refused with a remedy unless they have the value
// that they have by default there. The flags are in foreign_scheduler.go and
// foreign_autoscaler.go.

// ForeignFlag is a flag that Berth doesn't honour.
type ForeignFlag struct {
	Name string
	// Refused says that values other than the harmless ones are refused; otherwise every value
	// is accepted, and has no effect.
	Refused bool
	// Why there is no effect, or why it is refused and what to do instead.
	Why      string
	kind     string   // of the value: bool, int, float64, duration, string or strings
	harmless []string // values that aren't refused; the first is the default
}

// noEffect is a flag that is accepted.
func noEffect(kind, name, def, why string) ForeignFlag {
	return ForeignFlag{Name: name, Why: why, kind: kind, harmless: []string{def}}
}

// refuse is a flag of which some values ask for nothing that Berth doesn't do.
func refuse(kind, name string, harmless []string, why string) ForeignFlag {
	return ForeignFlag{Name: name, Refused: true, Why: why, kind: kind, harmless: harmless}
}

// ForeignFlags returns all of them.
func ForeignFlags() []ForeignFlag { return slices.Concat(ofScheduler(), ofAutoscaler(), ofKlog()) }

// Fate says in words what becomes of the flag.
func (f ForeignFlag) Fate() string {
	switch {
	case !f.Refused:
		return "accepted, no effect: " + f.Why
	case f.harmless[0] == "":
		return "refused: " + f.Why
	}
	var values []string
	for _, v := range f.harmless {
		values = append(values, "`"+v+"`")
	}
	return "refused, but for " + strings.Join(values, ", ") + ": " + f.Why
}

// Accepts reports whether a value asks for nothing that Berth doesn't do.
func (f ForeignFlag) Accepts(value string) bool {
	return !f.Refused || slices.Contains(f.harmless, value)
}

// AddForeign adds the flags to fs. Help doesn't show them: docs/reference/flags.md does.
func AddForeign(fs *pflag.FlagSet) {
	for _, f := range ForeignFlags() {
		value := fs.VarPF(&foreignValue{kind: f.kind, text: f.harmless[0]}, f.Name, "", f.Fate())
		value.Hidden = true
		if f.kind == "bool" {
			value.NoOptDefVal = "true" // --name alone
		}
	}
}

// CheckForeign returns what is to be said of the flags on a command line that have no effect, and
// an error for the first that is refused.
func CheckForeign(commandLine *pflag.FlagSet) (notes []string, err error) {
	for _, f := range ForeignFlags() {
		given := commandLine.Lookup(f.Name)
		if given == nil || !given.Changed {
			continue
		}
		value := given.Value.String()
		switch {
		case !f.Refused:
			notes = append(notes, fmt.Sprintf("--%s has no effect: %s", f.Name, f.Why))
		case !f.Accepts(value):
			return nil, fmt.Errorf("--%s is %q; %s", f.Name, value, f.Why)
		}
	}
	return notes, nil
}

// foreignValue is a pflag.Value that checks the form of what it is set to, as the other program
// does, and keeps it.
type foreignValue struct{ kind, text string }

// Set implements pflag.Value.
func (v *foreignValue) Set(text string) error {
	switch v.kind {
	case "bool":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("it must be true or false")
		}
		text = strconv.FormatBool(b)
	case "int":
		if _, err := strconv.ParseInt(text, 0, 64); err != nil {
			return fmt.Errorf("it must be a whole number")
		}
	case "float64":
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("it must be a number")
		}
	case "duration":
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("it must be a duration, such as 5m")
		}
		text = d.String()
	case "strings":
		if v.text != "" {
			text = v.text + "," + text
		}
	}
	v.text = text
	return nil
}

// String implements pflag.Value.
func (v *foreignValue) String() string { return v.text }

// Type implements pflag.Value.
func (v *foreignValue) Type() string { return v.kind }
