package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/edge/incumbent"
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
		{"unknown mode", []string{"--mode=both"}, `--mode is "both"; it must be scheduler, autoscaler or unset`},
		{"a scheduler with a provider", []string{"--mode=scheduler", "--cloud-provider=simulated"}, "--mode=scheduler does not add or remove nodes; omit --cloud-provider and --cloud-config"},
		{"an autoscaler without a provider", []string{"--mode=autoscaler"}, "--mode=autoscaler needs a cloud provider; set --cloud-provider and --cloud-config"},
		{"an external provider with its file", []string{"--cloud-provider=externalgrpc", "--cloud-config=external.yaml"}, ""},
		{"Cluster API in the same cluster", []string{"--cloud-provider=clusterapi"}, ""},
		{"Cluster API elsewhere", []string{"--cloud-provider=clusterapi", "--cloud-config=kubeconfig"}, ""},
		{"discovery in Cluster API", []string{"--cloud-provider=clusterapi", "--node-group-auto-discovery=clusterapi:namespace=a"}, ""},
		{"unknown provider", []string{"--cloud-provider=aws"}, `--cloud-provider is "aws"; it must be externalgrpc, clusterapi or simulated. For Cluster Autoscaler's built-in providers use externalgrpc: docs/external-providers.md`},
		{"a provider without its file", []string{"--cloud-provider=simulated"}, "--cloud-provider and --cloud-config go together; set both or neither"},
		{"a file without a provider", []string{"--cloud-config=groups.yaml"}, "--cloud-provider and --cloud-config go together; set both or neither"},
		{"groups and their limits", []string{"--cloud-provider=simulated", "--cloud-config=groups.yaml", "--nodes=0:3:a", "--nodes=1:1:b"}, ""},
		{"groups without a provider", []string{"--nodes=0:3:a"}, "--nodes and --node-group-auto-discovery select node groups of a cloud provider; set --cloud-provider and --cloud-config, or omit them"},
		{"discovery by a server of another process", []string{"--cloud-provider=externalgrpc", "--cloud-config=external.yaml", "--node-group-auto-discovery=asg:tag=x"}, `--node-group-auto-discovery is "asg:tag=x", but --cloud-provider=externalgrpc can't discover groups: its server determines the groups; pass the flag to the server if it supports it, or name groups with --nodes`},
		{"discovery of groups that are listed", []string{"--cloud-provider=simulated", "--cloud-config=groups.yaml", "--node-group-auto-discovery=x"}, `--node-group-auto-discovery is "x", but --cloud-provider=simulated can't discover groups: its groups are those in --cloud-config`},
		{"prices of a provider's groups", []string{"--cloud-provider=clusterapi", "--node-prices=prices.yaml"}, ""},
		{"prices without a provider", []string{"--node-prices=prices.yaml"}, "--node-prices prices node groups of a cloud provider; set --cloud-provider and --cloud-config, or omit it"},
		{"no binds", []string{"--kube-api-qps=0"}, "--kube-api-qps is 0 and --kube-api-burst 4000; both must be greater than 0"},
		{"a wait of less than nothing", []string{"--pod-max-in-unschedulable-pods-duration=-1s"}, "--pod-max-in-unschedulable-pods-duration is -1s; it must not be negative"},
		{"no room for a recording", []string{"--record-limit=0"}, "--record-limit is 0; it must be greater than 0"},
		{"a shadow", []string{"--shadow"}, ""},
		{"a shadow with one role", []string{"--shadow", "--mode=scheduler"}, ""},
		{"a shadow of no scheduler", []string{"--shadow", "--mode=autoscaler", "--cloud-provider=clusterapi"}, "--shadow compares placements, but --mode=autoscaler makes none; omit --mode"},
		{"a shadow with nodes", []string{"--shadow", "--cloud-provider=clusterapi"}, ""},
		{"a shadow of no groups", []string{"--shadow", "--cloud-provider=externalgrpc"}, "--cloud-provider and --cloud-config go together; set both or neither"},
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
		{"a Lease by name", []string{"--config", file, "--leader-elect-resource-name=kube-scheduler", "--leader_elect"}, true, "kube-scheduler", 1},
		{"an autoscaler", []string{"--config", file, "--mode=autoscaler"}, true, incumbent.AutoscalerLease, 0},
		{"an autoscaler's Lease by name", []string{"--config", file, "--mode=autoscaler", "--leader-elect-resource-name=mine"}, true, "mine", 0},
		{"a shadow", []string{"--config", file, "--shadow", "--leader-elect"}, false, "mine", 1},
		{"an autoscaler without election", []string{"--config", file, "--mode=autoscaler", "--leader-elect=false"}, false, incumbent.AutoscalerLease, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, fs := parsed(t, c.args...)
			cfg, err := f.schedulerConfig(fs, compat.Newest)
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

// TestMistakesInFlagsAreNamed has values that are refused as they are read.
func TestMistakesInFlagsAreNamed(t *testing.T) {
	for arg, want := range map[string]string{
		"--nodes=5:3:a":                  `invalid argument "5:3:a" for "--nodes" flag: "5:3:a" has a minimum of 5 above the maximum of 3; set the minimum to at most 3`,
		"--nodes=a":                      `invalid argument "a" for "--nodes" flag: "a" must be MIN:MAX:NAME, two whole numbers of at least 0 and the name of a node group, such as 0:10:workers`,
		"--feature-gates=GangScheduling": `invalid argument "GangScheduling" for "--feature-gates" flag: "GangScheduling" must be NAME=true or NAME=false, several separated by commas`,
		"--scale-up-from-zero=maybe":     `invalid argument "maybe" for "--scale-up-from-zero" flag: it must be true or false`,
	} {
		f, fs := newRunFlags(), pflag.NewFlagSet("run", pflag.ContinueOnError)
		fs.Usage = func() {}
		f.register(fs)
		if err := fs.Parse([]string{arg}); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", arg, err, want)
		}
	}
	f, fs := newRunFlags(), pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse([]string{"--nodes=0:3:a", "--nodes=0:4:a"}); err == nil || !strings.Contains(err.Error(), `node group "a" is given twice; give each group once`) {
		t.Errorf("a group with two limits: %v", err)
	}
}

// TestFlagsOfTheLeaseAreChecked as a file's settings are.
func TestFlagsOfTheLeaseAreChecked(t *testing.T) {
	for arg, want := range map[string]string{
		"--leader-elect-resource-lock=endpoints": `--leader-elect.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"`,
		"--leader-elect-lease-duration=5s":       "--leader-elect.leaseDuration: Invalid value",
	} {
		f, fs := parsed(t, arg)
		if _, err := f.schedulerConfig(fs, compat.Newest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", arg, err, want)
		}
	}
	f, fs := parsed(t, "--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=4s", "--leader-elect-resource-namespace=berth")
	cfg, err := f.schedulerConfig(fs, compat.Newest)
	if want := (config.LeaderElection{Enabled: true, Namespace: "berth", Name: "berth", LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 4 * time.Second}); err != nil || cfg.LeaderElection != want {
		t.Errorf("got %+v, %v; want %+v", cfg.LeaderElection, err, want)
	}
}

// TestFlagsOfKubeSchedulerSetWhatTheySetThere without a file; with one, the limit of calls is the
// file's, as there.
func TestFlagsOfKubeSchedulerSetWhatTheySetThere(t *testing.T) {
	args := []string{"--kube-api-qps=7", "--kube-api-burst=9", "--pod-max-in-unschedulable-pods-duration=2m"}
	f, fs := parsed(t, args...)
	cfg, err := f.schedulerConfig(fs, compat.Newest)
	if notes, _ := f.foreign(fs); err != nil || cfg.BindQPS != 7 || cfg.BindBurst != 9 || cfg.Queue.Leftover != 2*time.Minute || len(notes) > 0 {
		t.Errorf("got %v binds a second, %d at once, %s, %q, %v; want 7, 9 and 2m", cfg.BindQPS, cfg.BindBurst, cfg.Queue.Leftover, notes, err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {qps: 500, burst: 600}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, fs = parsed(t, append(args, "--config", file)...)
	cfg, err = f.schedulerConfig(fs, compat.Newest)
	notes, _ := f.foreign(fs)
	if err != nil || cfg.BindQPS != 500 || cfg.BindBurst != 600 || cfg.Queue.Leftover != 2*time.Minute || len(notes) != 2 {
		t.Errorf("with a file: got %v binds a second, %d at once, %s, %q, %v; want 500, 600, 2m and two notes", cfg.BindQPS, cfg.BindBurst, cfg.Queue.Leftover, notes, err)
	}
}

// TestAShadowSaysWhichFlagsItDoesWithout: those that say how Berth writes.
func TestAShadowSaysWhichFlagsItDoesWithout(t *testing.T) {
	f, fs := parsed(t, "--shadow", "--leader-elect=true", "--leader-elect-resource-name=mine", "--surge")
	notes, err := f.foreign(fs)
	want := []string{
		"--leader-elect has no effect with --shadow: a shadow writes nothing and needs no Lease",
		"--leader-elect-resource-name has no effect with --shadow: a shadow needs no Lease",
		"--surge has no effect with --shadow: a shadow evicts no pods",
	}
	if err != nil || !slices.Equal(notes, want) {
		t.Errorf("got %q, %v\nwant %q", notes, err, want)
	}
	f, fs = parsed(t, "--leader-elect=true", "--surge")
	if notes, err := f.foreign(fs); err != nil || len(notes) > 0 {
		t.Errorf("without --shadow: %q, %v; want nothing to be said", notes, err)
	}
	for _, x := range shadowless {
		if fs.Lookup(x.name) == nil {
			t.Errorf("there is no flag --%s", x.name)
		}
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
			_, err := f.schedulerConfig(fs, compat.Newest)
			want := ""
			if refused && mode == "--mode=autoscaler" {
				want = file + `: profile "batch" has the policy ` + policy + " (PreemptOrBuy), but with --mode=autoscaler the other scheduler preempts without asking; remove PreemptOrBuy, or let Berth schedule"
			}
			if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
				t.Errorf("%s, %s: got %v, want %q", policy, mode, err, want)
			}
		}
	}
}
