package config

import (
	"regexp"
	"slices"

	"github.com/spf13/pflag"
)

// Effective returns the flags of the command line whose values aren't their defaults, each as
// --NAME=VALUE. Those of upstream that have no effect here are left out, and so are a user and a
// password in an address.
func Effective(commandLine *pflag.FlagSet) []string {
	out := []string{}
	commandLine.Visit(func(f *pflag.Flag) {
		if f.Hidden || f.Value.String() == f.DefValue {
			return
		}
		for _, v := range FlagValues(f) {
			out = append(out, "--"+f.Name+"="+v)
		}
	})
	return out
}

// FlagValues returns the values of a flag, one unless it is a list, without a user and a password in an
// address.
func FlagValues(f *pflag.Flag) []string {
	values := []string{f.Value.String()}
	if s, ok := f.Value.(pflag.SliceValue); ok {
		values = slices.Clone(s.GetSlice())
	}
	for i, v := range values {
		values[i] = credentials.ReplaceAllString(v, "$1")
	}
	return values
}

// credentials matches a user and a password before the host of an address.
var credentials = regexp.MustCompile(`(^|//)[^/@]*@`)
