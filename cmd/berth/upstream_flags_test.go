package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/config"
)

// This file goes through every flag that kube-scheduler and Cluster Autoscaler have: berth run
// takes each, and what becomes of it is in docs/reference/flags.md.

// upstreamFlag is a flag of one of these programs.
type upstreamFlag struct{ name, kind, byDefault string }

// upstreamLists are the programs and the files with their flags.
var upstreamLists = []struct{ program, file string }{
	{"kube-scheduler", "kube-scheduler.txt"}, // compared with kube-scheduler in devcluster/upstream
	{"Cluster Autoscaler", "cluster-autoscaler.txt"},
}

func upstreamFlags(t *testing.T, file string) (out []upstreamFlag) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "testdata", "upstream", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(f) != 3 {
			t.Fatalf("%s: %q isn't NAME TYPE DEFAULT", file, line)
		}
		out = append(out, upstreamFlag{f[0], f[1], strings.Trim(f[2], "[]")})
	}
	if len(out) < 50 {
		t.Fatalf("%s has %d flags only", file, len(out))
	}
	return out
}

// otherDefaults are the flags that Berth honours with a default of its own, and why.
var otherDefaults = map[string]string{
	"address":                          "metrics and health are served over TLS at `--secure-port`; this one is for scrapers and probes made for Cluster Autoscaler",
	"authorization-always-allow-paths": "`/health-check`, which is Cluster Autoscaler's, may be asked by everybody as health is",
	"cloud-provider":                   "Berth can do without one",
	"contention-profiling":             "recording every blocked goroutine costs time",
	"kube-api-burst":                   "see `--kube-api-qps`",
	"kube-api-qps":                     "50 a second would be 50 binds a second",
	"leader-elect-resource-name":       "two Berths exclude each other; to exclude a kube-scheduler give `kube-scheduler`. With `--mode=autoscaler` it is `cluster-autoscaler`, as there",
	"leader-elect-resource-namespace":  "as kube-scheduler's",
	"profiling":                        "as kube-scheduler's",
	"scale-down-delay-type-local":      "one group's growth needn't keep idle nodes of others",
}

// runFlagSet returns the flags of berth run, with those that cobra adds to every command.
func runFlagSet() *pflag.FlagSet {
	cmd := runCommand()
	cmd.InitDefaultHelpFlag()
	return cmd.Flags()
}

func foreignFlags() map[string]config.ForeignFlag {
	out := map[string]config.ForeignFlag{}
	for _, f := range config.ForeignFlags() {
		out[f.Name] = f
	}
	return out
}

// TestNoUpstreamFlagIsForgotten has berth run take every flag, with the default that it has there
// unless otherDefaults says why not.
func TestNoUpstreamFlagIsForgotten(t *testing.T) {
	ours, foreign := runFlagSet(), foreignFlags()
	upstream, differ := map[string]bool{}, map[string]bool{}
	for _, list := range upstreamLists {
		for _, f := range upstreamFlags(t, list.file) {
			upstream[f.name] = true
			known := ours.Lookup(f.name)
			if known == nil {
				t.Errorf("berth run doesn't take --%s of %s: honour it, or name its fate in config/foreign_*.go", f.name, list.program)
				continue
			}
			if strings.Trim(known.DefValue, "[]") == f.byDefault {
				continue
			}
			differ[f.name] = true
			if _, is := foreign[f.name]; is || otherDefaults[f.name] == "" {
				t.Errorf("--%s is %q by default, and %q in %s: take that, or say why not in otherDefaults", f.name, known.DefValue, f.byDefault, list.program)
			}
		}
	}
	for name := range foreign {
		if !upstream[name] {
			t.Errorf("neither program has --%s, whose fate config/foreign_*.go names", name)
		}
	}
	for name := range otherDefaults {
		if !differ[name] {
			t.Errorf("otherDefaults has --%s, which has the same default", name)
		}
	}
}

// TestEveryForeignFlagMeetsItsFate puts each on a command line, first with its default and then
// with another value.
func TestEveryForeignFlagMeetsItsFate(t *testing.T) {
	other := map[string]string{"bool": "", "int": "77", "float64": "0.77", "duration": "77m", "string": "x", "strings": "x"}
	for _, list := range upstreamLists {
		for _, u := range upstreamFlags(t, list.file) {
			f, is := foreignFlags()[u.name]
			if !is {
				continue
			}
			kind := runFlagSet().Lookup(u.name).Value.Type()
			value := other[kind]
			if kind == "bool" {
				value = fmt.Sprint(u.byDefault != "true")
			}
			for _, given := range []string{u.byDefault, value} {
				run, fs := parsed(t, "--"+u.name+"="+given)
				notes, err := run.foreign(fs)
				switch {
				case !f.Refused:
					if want := "--" + u.name + " has no effect: " + f.Why; err != nil || !slices.Equal(notes, []string{want}) {
						t.Errorf("--%s=%s: got %q, %v; want %q", u.name, given, notes, err, want)
					}
				case given == u.byDefault:
					if err != nil || len(notes) > 0 {
						t.Errorf("--%s=%s, its default, is refused: %q, %v", u.name, given, notes, err)
					}
				default:
					if want := fmt.Sprintf("--%s is %q; %s", u.name, given, f.Why); err == nil || err.Error() != want {
						t.Errorf("--%s=%s: got %v, want %s", u.name, given, err, want)
					}
				}
			}
		}
	}
}

// upstreamReference returns what becomes of each flag, as a table.
func upstreamReference(t *testing.T) string {
	t.Helper()
	ours, foreign := runFlagSet(), foreignFlags()
	programs, differ := map[string][]string{}, map[string]string{}
	for _, list := range upstreamLists {
		for _, f := range upstreamFlags(t, list.file) {
			programs[f.name] = append(programs[f.name], list.program)
			if known := ours.Lookup(f.name); known != nil && strings.Trim(known.DefValue, "[]") != f.byDefault {
				differ[f.name] = fmt.Sprintf("honoured; the default is `%s`, and `%s` in %s: %s", known.DefValue, f.byDefault, list.program, otherDefaults[f.name])
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n## Flags of kube-scheduler and Cluster Autoscaler\n\n`berth run` takes every flag of both. Of one that has no effect the log says so once; one that is refused ends Berth before it has connected to anything. Underscores in names are dashes, as there.\n\n| flag | of | what becomes of it |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		fate := "honoured"
		if f, is := foreign[name]; is {
			fate = f.Fate()
		} else if differ[name] != "" {
			fate = differ[name]
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", name, strings.Join(programs[name], ", "), fate)
	}
	return b.String()
}
