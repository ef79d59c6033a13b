package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthproject/berth/internal/term"
)

// TestHelpHasSections: each flag that isn't hidden is in one section, and the sections are those of
// kube-scheduler and what Berth has besides.
func TestHelpHasSections(t *testing.T) {
	sections := map[string]string{
		"run":                "Misc, Scheduling, Scale-up, Scale-down, Autoscaler status and health, Cloud provider, Feature gate, Leader election, Secure serving, Authentication, Authorization, Metrics, Web page, Profiling, Traces, Logs, Global",
		"status":             "Misc, Connection, Global",
		"top":                "Misc, Connection, Global",
		"explain":            "Misc, Connection, Global",
		"shadow report":      "Misc, Connection, Global",
		"ui":                 "Misc, Connection, Global",
		"dump":               "Misc, Connection, Global",
		"simulate":           "Output, Explanation, Simulation, Replay, Global",
		"provider simulated": "Misc, Secure serving, Logs, Global",
	}
	for path, want := range sections {
		for range 2 { // help is printed for whoever asks twice
			cmd, help := helpOf(t, path)
			var got []string
			for _, m := range regexp.MustCompile(`(?m)^(.*) flags:$`).FindAllStringSubmatch(help, -1) {
				got = append(got, m[1])
			}
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("berth %s --help has sections %s, want %s", path, s, want)
			}
			if !strings.Contains(help, cmd.Long) || !strings.Contains(help, cmd.Example) || !strings.Contains(help, "Usage:\n  berth "+path) {
				t.Errorf("berth %s --help lacks its text, its usage or its examples:\n%s", path, help)
			}
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				lines := regexp.MustCompile(`(?m)^ +(-\w, )?--`+f.Name+`\b[^-]`).FindAllString(help[strings.Index(help, " flags:\n"):], -1)
				if wanted := !f.Hidden && f.Deprecated == ""; wanted != (len(lines) == 1) {
					t.Errorf("berth %s --help has --%s %d times; hidden: %t", path, f.Name, len(lines), f.Hidden)
				}
			})
		}
	}
}

// TestHelpIsWrapped to the width of a terminal, and not at all without one.
func TestHelpIsWrapped(t *testing.T) {
	longest := func(text string) int {
		return slices.Max(slices.Collect(func(yield func(int) bool) {
			for line := range strings.Lines(text[strings.Index(text, "Scale-down flags"):strings.Index(text, "Autoscaler status")]) {
				if !yield(len(line) - 1) {
					return
				}
			}
		}))
	}
	f := newRunFlags()
	s := f.register(pflag.NewFlagSet("run", pflag.ContinueOnError))
	for _, width := range []int{100, 160} {
		var out bytes.Buffer
		term.PrintHelp(&out, &cobra.Command{}, s, width)
		if n := longest(out.String()); n > width || n < width-20 {
			t.Errorf("with a width of %d the longest line has %d characters", width, n)
		}
	}
	if _, help := helpOf(t, "run"); longest(help) < 300 {
		t.Errorf("without a terminal help is wrapped:\n%s", help)
	}
}

// helpOf returns what berth PATH --help prints.
func helpOf(t *testing.T, path string) (*cobra.Command, string) {
	t.Helper()
	var out bytes.Buffer
	top := root()
	top.SetOut(&out)
	top.SetArgs(append(strings.Fields(path), "--help"))
	if err := top.Execute(); err != nil {
		t.Fatal(err)
	}
	cmd, _, err := top.Find(strings.Fields(path))
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out.String()
}
