package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/config"
)

// This file specifies what berth run refuses before it connects to a cluster, and under
// which Lease and with which extenders each mode runs.

// parsed returns the flags of berth run after parsing arguments.
func parsed(t *testing.T, args ...string) (*runFlags, *pflag.FlagSet) {
	t.Helper()
	f, fs := newRunFlags(), pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f, fs
}

func TestRunRefusesFlagsThatItCantHonour(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string // "" when they are taken
	}{
		{"no flags", nil, ""},
		{"a provider with its file", []string{"--cloud-provider=simulated", "--cloud-config=groups.yaml"}, ""},
		{"scheduling only", []string{"--mode=scheduler"}, ""},
		{"scaling only", []string{"--mode=autoscaler", "--cloud-provider=simulated", "--cloud-config=groups.yaml"}, ""},
		{"unknown mode", []string{"--mode=both"}, `--mode is "both"; it must be scheduler, autoscaler or left out`},
		{"a scheduler with a provider", []string{"--mode=scheduler", "--cloud-provider=simulated"}, "--mode=scheduler adds and removes no nodes; leave --cloud-provider and --cloud-config out"},
		{"an autoscaler without a provider", []string{"--mode=autoscaler"}, "--mode=autoscaler has to know where nodes come from; give --cloud-provider and --cloud-config"},
		{"an external provider with its file", []string{"--cloud-provider=externalgrpc", "--cloud-config=external.yaml"}, ""},
		{"Cluster API in the same cluster", []string{"--cloud-provider=clusterapi"}, ""},
		{"Cluster API elsewhere", []string{"--cloud-provider=clusterapi", "--cloud-config=kubeconfig"}, ""},
		{"unknown provider", []string{"--cloud-provider=aws"}, `--cloud-provider is "aws"; it must be externalgrpc, clusterapi or simulated. Cluster Autoscaler's own providers are reached through externalgrpc: docs/external-providers.md`},
		{"a provider without its file", []string{"--cloud-provider=simulated"}, "--cloud-provider and --cloud-config go together; give both or neither"},
		{"a file without a provider", []string{"--cloud-config=groups.yaml"}, "--cloud-provider and --cloud-config go together; give both or neither"},
		{"no room for a recording", []string{"--record-limit=0"}, "--record-limit is 0; it must be greater than 0"},
		{"a flag of the autoscaler", []string{"--max-nodes-total=-1"}, "--max-nodes-total is -1; it must be at least 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := parsed(t, c.args...)
			got := ""
			if err := f.validate(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%v:\n got %s\nwant %s", c.args, got, c.want)
			}
		})
	}
}

// TestTheLeaseIsThatOfTheMode has a file that names a Lease and an extender, which are a
// scheduler's.
func TestTheLeaseIsThatOfTheMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false, resourceName: mine}
extenders: [{urlPrefix: 'http://extender', filterVerb: filter}]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		args      []string
		elected   bool
		lease     string
		extenders int
	}{
		{"defaults", nil, true, "berth", 0},
		{"a file", []string{"--config", file}, false, "mine", 1},
		{"a flag over a file", []string{"--config", file, "--leader-elect"}, true, "mine", 1},
		{"a flag over the defaults", []string{"--leader-elect=false"}, false, "berth", 0},
		{"an autoscaler", []string{"--config", file, "--mode=autoscaler"}, true, autoscalerLease, 0},
		{"an autoscaler without election", []string{"--config", file, "--mode=autoscaler", "--leader-elect=false"}, false, autoscalerLease, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, fs := parsed(t, c.args...)
			cfg, err := f.schedulerConfig(fs)
			if err != nil {
				t.Fatal(err)
			}
			want := config.Default().LeaderElection
			want.Enabled, want.Name = c.elected, c.lease
			if cfg.LeaderElection != want || len(cfg.Extenders) != c.extenders {
				t.Errorf("got %+v and %d extenders, want %+v and %d", cfg.LeaderElection, len(cfg.Extenders), want, c.extenders)
			}
		})
	}
}

// TestAnAutoscalerRefusesAPolicyOfPreemption has a file that says when pods preempt, beside
// another scheduler, which wouldn't ask.
func TestAnAutoscalerRefusesAPolicyOfPreemption(t *testing.T) {
	for policy, refused := range map[string]bool{"preempt-first": false, "buy-first": true, "cheapest": true} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: batch, pluginConfig: [{name: PreemptOrBuy, args: {policy: " + policy + "}}]}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{"--mode=autoscaler", "--mode="} {
			f, fs := parsed(t, "--config", file, mode)
			_, err := f.schedulerConfig(fs)
			want := ""
			if refused && mode == "--mode=autoscaler" {
				want = file + `: profile "batch" has the policy ` + policy + " (PreemptOrBuy), and with --mode=autoscaler the other scheduler preempts, without asking; leave PreemptOrBuy out, or have Berth schedule"
			}
			if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
				t.Errorf("%s, %s: got %v, want %q", policy, mode, err, want)
			}
		}
	}
}
