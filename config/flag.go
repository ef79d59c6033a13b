package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/lifecycle/launching"
)

// This file is what tables of flags are made of: rows by the type of the value, and
// checks of values. A row names the field that it sets, so that flag, field, default and
// check can't drift apart. To add a flag, add a row; to add a type, add a function such
// as numberFlag.

// flag is one row: how the flag is registered, and what is wrong with its value once it
// is parsed.
type flag struct {
	register func(*pflag.FlagSet)
	validate func() error
}

// checked returns the row with a check of what it means beside other flags.
func (f flag) checked(validate func() error) flag {
	f.validate = validate
	return f
}

// check returns what is wrong with a value, to follow "--name is value; ", and "" when
// nothing is.
type check[T any] func(T) string

// flagOf returns the row of a flag that sets target, whose value at the time of register
// is the default. add is the method of pflag for the type.
func flagOf[T any](add func(fs *pflag.FlagSet, target *T, name string, value T, usage string), name string, target *T, check check[T], usage string) flag {
	return flag{
		register: func(fs *pflag.FlagSet) { add(fs, target, name, *target, usage) },
		validate: func() error {
			wrong := check(*target)
			if wrong == "" {
				return nil
			}
			value := fmt.Sprint(*target)
			if text, ok := any(*target).(string); ok {
				value = strconv.Quote(text)
			}
			return fmt.Errorf("--%s is %s; %s", name, value, wrong)
		},
	}
}

// durationFlag is a flag such as --scan-interval=10s.
func durationFlag(name string, target *time.Duration, check check[time.Duration], usage string) flag {
	return flagOf((*pflag.FlagSet).DurationVar, name, target, check, usage)
}

// numberFlag is a flag such as --max-nodes-total=50.
func numberFlag(name string, target *int, check check[int], usage string) flag {
	return flagOf((*pflag.FlagSet).IntVar, name, target, check, usage)
}

// launchFlag is a flag that takes a number of nodes or "adaptive".
func launchFlag(name string, target *launching.Limit, usage string) flag {
	return flag{
		register: func(fs *pflag.FlagSet) { fs.Var(launchLimit{target}, name, usage) },
		validate: func() error { return nil }, // Set has refused what can't be honoured
	}
}

// launchLimit is a pflag.Value.
type launchLimit struct{ target *launching.Limit }

// Set implements pflag.Value.
func (l launchLimit) Set(text string) error {
	if text == launching.Adaptive.String() {
		*l.target = launching.Adaptive
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("it must be a number of nodes of at least 0, or adaptive")
	}
	*l.target = launching.Limit(n)
	return nil
}

// String implements pflag.Value.
func (l launchLimit) String() string { return l.target.String() }

// Type implements pflag.Value: help shows it behind the flag.
func (launchLimit) Type() string { return "nodes" }

// secondsFlag is a flag that takes a number of seconds.
func secondsFlag(name string, target *time.Duration, usage string) flag {
	return flag{
		register: func(fs *pflag.FlagSet) { fs.Var(seconds{target}, name, usage) },
		validate: func() error { return nil }, // Set has refused what can't be honoured
	}
}

// seconds is a pflag.Value.
type seconds struct{ target *time.Duration }

// Set implements pflag.Value.
func (s seconds) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return errors.New("it must be a number of seconds of at least 0")
	}
	*s.target = time.Duration(n) * time.Second
	return nil
}

// String implements pflag.Value.
func (s seconds) String() string { return strconv.FormatInt(int64(*s.target/time.Second), 10) }

// Type implements pflag.Value.
func (seconds) Type() string { return "seconds" }

// drainFlag is a flag such as --drain-priority-config=10000:20,1000:100,0:60.
func drainFlag(name string, target *[]autoscaler.DrainTier, usage string) flag {
	return flag{
		register: func(fs *pflag.FlagSet) { fs.Var(drainTiers{target}, name, usage) },
		validate: func() error { return nil }, // Set has refused what can't be honoured
	}
}

// drainTiers is a pflag.Value.
type drainTiers struct{ target *[]autoscaler.DrainTier }

// Set implements pflag.Value.
func (d drainTiers) Set(text string) error {
	var out []autoscaler.DrainTier
	for part := range strings.SplitSeq(text, ",") {
		priority, grace, ok := strings.Cut(part, ":")
		p, err1 := strconv.ParseInt(priority, 10, 32)
		g, err2 := strconv.ParseInt(grace, 10, 32)
		if !ok || err1 != nil || err2 != nil || g < 0 {
			return fmt.Errorf("%q must be PRIORITY:SECONDS, such as 1000:60, several separated by commas", part)
		}
		if slices.ContainsFunc(out, func(t autoscaler.DrainTier) bool { return t.Priority == int32(p) }) {
			return fmt.Errorf("priority %d is given twice; give each once", p)
		}
		out = append(out, autoscaler.DrainTier{Priority: int32(p), Grace: time.Duration(g) * time.Second})
	}
	slices.SortFunc(out, func(a, b autoscaler.DrainTier) int { return cmp.Compare(a.Priority, b.Priority) })
	*d.target = out
	return nil
}

// String implements pflag.Value.
func (d drainTiers) String() string {
	var out []string
	for _, t := range *d.target {
		out = append(out, fmt.Sprintf("%d:%d", t.Priority, t.Grace/time.Second))
	}
	return strings.Join(out, ",")
}

// Type implements pflag.Value.
func (drainTiers) Type() string { return "tiers" }

// intFlag is numberFlag for a number that may be anything.
func intFlag(name string, target *int, usage string) flag {
	return numberFlag(name, target, func(int) string { return "" }, usage)
}

func percentFlag(name string, target *float64, usage string) flag {
	return flagOf((*pflag.FlagSet).Float64Var, name, target, func(p float64) string {
		if p >= 0 && p <= 100 {
			return ""
		}
		return "it must be a percentage, from 0 to 100"
	}, usage)
}

// ratioFlag is a flag that takes a share of a whole.
func ratioFlag(name string, target *float64, usage string) flag {
	return flagOf((*pflag.FlagSet).Float64Var, name, target, func(r float64) string {
		if r >= 0 && r <= 1 {
			return ""
		}
		return "it must be a ratio, from 0 to 1"
	}, usage)
}

// textFlag is a flag such as --expander=least-waste.
func textFlag(name string, target *string, check check[string], usage string) flag {
	return flagOf((*pflag.FlagSet).StringVar, name, target, check, usage)
}

// boolFlag is a flag such as --daemonset-eviction-for-empty-nodes, with or without a value.
func boolFlag(name string, target *bool, usage string) flag {
	return flagOf((*pflag.FlagSet).BoolVar, name, target, func(bool) string { return "" }, usage)
}

// unlessFlag is a boolean flag that is true while target is false: an x-enabled whose
// field says DisableX.
func unlessFlag(name string, target *bool, usage string) flag {
	f := boolFlag(name, target, usage)
	f.register = func(fs *pflag.FlagSet) {
		fs.VarPF(negation{target}, name, "", usage).NoOptDefVal = "true" // --name alone
	}
	return f
}

// negation is a pflag.Value that sets a bool to the opposite of what the flag says.
type negation struct{ target *bool }

// Set implements pflag.Value.
func (n negation) Set(text string) error {
	value, err := strconv.ParseBool(text)
	*n.target = !value
	return err
}

// String implements pflag.Value.
func (n negation) String() string { return strconv.FormatBool(!*n.target) }

// Type implements pflag.Value: help shows the flag as any other bool.
func (negation) Type() string { return "bool" }

// balancingFlag is the row of a boolean flag of which it counts whether anybody has set it.
func balancingFlag(name string, target *autoscaler.BalancingMode, usage string) flag {
	f := valueFlag(name, balanceFlag{target}, usage)
	f.register = func(fs *pflag.FlagSet) {
		fs.VarPF(balanceFlag{target}, name, "", usage).NoOptDefVal = "true" // --name alone
	}
	return f
}

// balanceFlag is a pflag.Value that leaves the mode as it is while nobody sets it.
type balanceFlag struct{ target *autoscaler.BalancingMode }

// Set implements pflag.Value.
func (b balanceFlag) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("it must be true or false")
	}
	*b.target = autoscaler.BalanceNever
	if on {
		*b.target = autoscaler.BalanceAlways
	}
	return nil
}

// String implements pflag.Value.
func (b balanceFlag) String() string {
	return strconv.FormatBool(*b.target == autoscaler.BalanceAlways)
}

// Type implements pflag.Value.
func (balanceFlag) Type() string { return "bool" }

// moreThanZero is for intervals and timeouts, which can't be 0.
func moreThanZero(d time.Duration) string {
	if d == 0 {
		return "it must be greater than 0"
	}
	return zeroOrMore(d)
}

// zeroOrMore is for durations of which 0 means at once.
func zeroOrMore(d time.Duration) string {
	if d < 0 {
		return "it must not be negative"
	}
	return ""
}

// atLeast refuses smaller numbers. A hint says what to do instead.
func atLeast(minimum int, hint ...string) check[int] {
	return func(n int) string {
		if n >= minimum {
			return ""
		}
		wrong := fmt.Sprintf("it must be at least %d", minimum)
		for _, h := range hint {
			wrong += " (" + h + ")"
		}
		return wrong
	}
}
