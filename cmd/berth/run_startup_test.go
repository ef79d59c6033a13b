package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/version"
)

// TestTheFirstLineOfTheLog says what runs: its flags are those that make a difference, in the order
// of the command line, without credentials.
func TestTheFirstLineOfTheLog(t *testing.T) {
	file := schedulerFile(t, "profiles:\n- schedulerName: a\n- schedulerName: b\n")
	for _, x := range []struct {
		name string
		args []string
		want string // behind the version
	}{
		{"by default", nil, `rules="the API server's" mode=scheduler provider=none profiles=[default-scheduler] flags=[]`},
		{"with nodes", scaling, `rules="the API server's" mode="scheduler and autoscaler" provider=simulated profiles=[default-scheduler] flags="[--cloud-provider=simulated --cloud-config=groups.yaml]"`},
		{"scaling only", []string{"--mode=autoscaler", "--cloud-provider=clusterapi"}, `rules="the API server's" mode=autoscaler provider=clusterapi profiles=[default-scheduler] flags="[--mode=autoscaler --cloud-provider=clusterapi]"`},
		{"a shadow", []string{"--shadow"}, `rules="the API server's" mode="shadow of scheduler" provider=none profiles=[default-scheduler] flags="[--shadow=true]"`},
		{"profiles of a file", []string{file}, `rules="the API server's" mode=scheduler provider=none profiles="[a b]" flags="[` + file + `]"`},
		{"defaults, flags without effect, and repeated ones", []string{"--leader-elect=true", "--v=2", "--feature-gates=ComponentFlagz=true", "--nodes=0:3:a", "--nodes=1:1:b", "--profiling=true"},
			`rules="the API server's" mode=scheduler provider=none profiles=[default-scheduler] flags="[--v=2 --feature-gates=ComponentFlagz=true --nodes=0:3:a,1:1:b]"`},
		{"rules of a version", []string{"--emulated-version=kube=1.36"}, `rules=1.36 mode=scheduler provider=none profiles=[default-scheduler] flags="[--emulated-version=1.36]"`},
		{"credentials", []string{"--master=https://user:secret@api.example.com:6443", "--grpc-expander-url=secret@expander:7000"},
			`rules="the API server's" mode=scheduler provider=none profiles=[default-scheduler] flags="[--master=https://api.example.com:6443 --grpc-expander-url=expander:7000]"`},
	} {
		t.Run(x.name, func(t *testing.T) {
			f, fs := parsed(t, x.args...)
			cfg, err := f.schedulerConfig(fs, compat.Newest)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			slog.New(slog.NewTextHandler(&out, nil)).Info("starting Berth", f.startUp(fs, &cfg)...)
			_, got, _ := strings.Cut(strings.TrimSpace(out.String()), `msg="starting Berth" `)
			if want := "version=" + version.Get().Version + " " + x.want; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestVersionIsSaidInThreeWays, which are the same.
func TestVersionIsSaidInThreeWays(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"run", "--version"}} {
		for name, cmd := range map[string]*cobra.Command{"berth": root(), "kubectl berth": plugin()} {
			if name != "berth" && args[0] == "run" {
				continue
			}
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetArgs(args)
			if err := cmd.Execute(); err != nil || out.String() != versionText() || !strings.HasPrefix(out.String(), "berth "+version.Get().Version+" (") {
				t.Errorf("%s %s: %v and %q, want %q", name, strings.Join(args, " "), err, out.String(), versionText())
			}
		}
	}
}
