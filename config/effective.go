package config

import (
	"regexp"

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
		values := []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			values = s.GetSlice()
		}
		for _, v := range values {
			out = append(out, "--"+f.Name+"="+credentials.ReplaceAllString(v, "$1"))
		}
	})
	return out
}

// credentials matches a user and a password before the host of an address.
var credentials = regexp.MustCompile(`(^|//)[^/@]*@`)
