package config

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsAreShownWithoutSecrets: neither in /flagz nor in the log.
func TestFlagsAreShownWithoutSecrets(t *testing.T) {
	for given, want := range map[string]string{
		"":                             "",
		"https://api.example.com:6443": "https://api.example.com:6443",
		"https://user:hunter2@api.example.com:6443/path":                   "https://api.example.com:6443/path",
		"https://api.example.com/path?token=hunter2":                       "https://api.example.com/path",
		"https://api.example.com?token=hunter2&more=1":                     "https://api.example.com",
		"https://api.example.com/path#hunter2":                             "https://api.example.com/path",
		"https://user:hunter2@one?token=hunter2,https://two?token=hunter2": "https://one,https://two",
		"hunter2@expander:7000":                                            "expander:7000",
		"a=b?c":                                                            "a=b?c", // no address
	} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.String("address", "", "")
		f := fs.Lookup("address")
		if err := f.Value.Set(given); err != nil {
			t.Fatal(err)
		}
		if got := FlagValues(f); !slices.Equal(got, []string{want}) {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
	}
}

// TestListsOfFlagsAreShownWithoutSecrets, each value for itself.
func TestListsOfFlagsAreShownWithoutSecrets(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.StringSlice("addresses", nil, "")
	if err := fs.Parse([]string{"--addresses=https://one?token=hunter2,https://user:hunter2@two"}); err != nil {
		t.Fatal(err)
	}
	if got, want := Effective(fs), []string{"--addresses=https://one", "--addresses=https://two"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
