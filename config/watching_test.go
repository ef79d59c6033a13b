package config

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestWatchingFlags sets each of the flags, and gives each a value that can't be honoured.
func TestWatchingFlags(t *testing.T) {
	parse := func(args ...string) (Watching, error) {
		var a Autoscaler
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		a.Flags(func(string) *pflag.FlagSet { return fs })
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return a.Watch, a.Validate()
	}
	got, err := parse("--namespace=ns", "--status-config-map-name=name", "--emit-per-nodegroup-metrics", "--max-inactivity=1m", "--max-failing-time=2m", "--max-startup-time=3m")
	want := Watching{Namespace: "ns", WriteStatus: true, StatusName: "name", PerGroupMetrics: true, MaxInactivity: time.Minute, MaxFailing: 2 * time.Minute, MaxStartup: 3 * time.Minute}
	if err != nil || got != want || got.StatusConfigMap() != "name" {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if got, err := parse("--write-status-configmap=false"); err != nil || got.StatusConfigMap() != "" {
		t.Errorf("got %+v and %v, want no ConfigMap", got, err)
	}
	for arg, want := range map[string]string{
		"--namespace=Kube_System":      `--namespace is "Kube_System"; it is not a valid name: `,
		"--namespace=":                 `--namespace is ""; it is not a valid name: `,
		"--status-config-map-name=a b": `--status-config-map-name is "a b"; it is not a valid name: `,
		"--max-inactivity=0s":          "--max-inactivity is 0s; it must be greater than 0",
		"--max-failing-time=-1m":       "--max-failing-time is -1m0s; it must not be negative",
		"--max-startup-time=0":         "--max-startup-time is 0s; it must be greater than 0",
	} {
		if _, err := parse(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s…", arg, err, want)
		}
	}
}
