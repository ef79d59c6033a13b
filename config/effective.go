package config

import (
	"regexp"
	"slices"

	"github.com/spf13/pflag"
)

// Effective returns the flags of the command line whose values aren't their defaults, each as
// --NAME=VALUE. Those of upstream that have no effect here are left out, and so are the secrets of an
// address.
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

// FlagValues returns the values of a flag, one unless it is a list. Of an address, a user, a password and
// what follows the path are left out: a query may have a token.
func FlagValues(f *pflag.Flag) []string {
	values := []string{f.Value.String()}
	if s, ok := f.Value.(pflag.SliceValue); ok {
		values = slices.Clone(s.GetSlice())
	}
	for i, v := range values {
		values[i] = query.ReplaceAllString(credentials.ReplaceAllString(v, "$1"), "$1")
	}
	return values
}

var (
	// credentials matches a user and a password before the host of an address.
	credentials = regexp.MustCompile(`(^|//)[^/@]*@`)
	// query matches an address with a query or a fragment, up to a comma or a space.
	query = regexp.MustCompile(`(//[^?#,\s]*)[?#][^,\s]*`)
)
