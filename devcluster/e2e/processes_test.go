package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file starts the processes of tests, and stops them with the test.

// startBerth starts Berth with the rights that its flags need. What it logs must not have its
// credentials in it.
func startBerth(t *testing.T, c *controlplane.Cluster, flags ...string) (*controlplane.Process, string) {
	t.Helper()
	log, kubeconfig := filepath.Join(t.TempDir(), "berth.log"), asDeployed(t, c, flags...)
	p, err := controlplane.StartProcess("berth", log, berth, append([]string{"run", "--kubeconfig", kubeconfig, "--secure-port", "0"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(10 * time.Second)
		if strings.Contains(logOf(t, log), planted) {
			t.Errorf("the log %s has the secret of a pod", log)
		}
		conf, err := clientcmd.LoadFromFile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		for name, user := range conf.AuthInfos {
			if user.Token == "" {
				t.Errorf("the kubeconfig has no token of user %s to look for", name)
			} else if strings.Contains(logOf(t, log), user.Token) {
				t.Errorf("the log %s has the token of Berth's account", log)
			}
		}
	})
	return p, log
}

// nodeGroups has the node groups of a text served by a process of their own, which outlives any
// Berth of the test, and returns the flags by which Berth gets its nodes there.
func nodeGroups(t *testing.T, c *controlplane.Cluster, text string) []string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "groups.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := c.ServeNodeGroups(berth, file, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Stop(10 * time.Second) })
	flags, err := g.Flags(g.Address)
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

// startForeign starts what plays Cluster Autoscaler.
func startForeign(t *testing.T, c *controlplane.Cluster, flags ...string) *controlplane.Process {
	t.Helper()
	log := filepath.Join(t.TempDir(), "foreign.log")
	p, err := controlplane.StartProcess("the other autoscaler", log, berth, slices.Concat([]string{"run", "--kubeconfig", c.Kubeconfig, "--secure-port=0",
		"--mode=autoscaler", "--leader-elect-resource-name=cluster-autoscaler"}, scaleSoon, flags)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(10 * time.Second) })
	return p
}

// schedulerDefaults configures a scheduler with kube-scheduler's defaults.
const schedulerDefaults = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %s}
`

// schedulerConfig writes a configuration, in which %s is the kubeconfig, to a file, and returns its
// path.
func schedulerConfig(t *testing.T, c *controlplane.Cluster, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, text, c.Kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// startScheduler starts kube-scheduler with a configuration file.
func startScheduler(t *testing.T, c *controlplane.Cluster, config string, flags ...string) *controlplane.Process {
	t.Helper()
	p, err := c.StartComponent("kube-scheduler", append([]string{"--config", config, "--secure-port", "0"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(10 * time.Second) })
	return p
}
