package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/edge/incumbent"
	"github.com/berthproject/berth/internal/test/peers"
)

// This file specifies beside which programs Berth refuses to run, by its flags and its
// configuration, and what it says then.

// incumbentsOf returns what a Berth with these flags looks for, and its log.
func incumbentsOf(t *testing.T, client *fake.Clientset, args ...string) (*incumbent.Programs, *bytes.Buffer) {
	t.Helper()
	f, fs := parsed(t, args...)
	if err := f.validate(); err != nil {
		t.Fatal(err)
	}
	cfg, err := f.schedulerConfig(fs, compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	return incumbent.New(f.incumbents(&cfg), client, slog.New(slog.NewTextHandler(out, nil))), out
}

// schedulerFile writes a configuration file, and returns the flag that names it.
func schedulerFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config=" + path
}

// scaling are flags with which Berth resizes node groups.
var scaling = []string{"--cloud-provider=simulated", "--cloud-config=groups.yaml"}

// TestBesideALiveKubeScheduler has a kube-scheduler renew its Lease, and Berths with different
// flags: those that would place its pods are refused.
func TestBesideALiveKubeScheduler(t *testing.T) {
	const theirs = "profiles:\n- schedulerName: default-scheduler\n"
	for _, x := range []struct {
		name    string
		args    func(t *testing.T) []string
		refused bool
	}{
		{"by default", nil, true},
		{"with nodes", func(*testing.T) []string { return scaling }, true},
		{"scheduling only", func(*testing.T) []string { return []string{"--mode=scheduler"} }, true},
		{"without leader election", func(*testing.T) []string { return []string{"--leader-elect=false"} }, true},
		{"without leader election, though the Lease is named", func(*testing.T) []string {
			return []string{"--leader-elect=false", "--leader-elect-resource-name=kube-scheduler"}
		}, true},
		{"with a Lease of that name elsewhere", func(*testing.T) []string {
			return []string{"--leader-elect-resource-name=kube-scheduler", "--leader-elect-resource-namespace=other"}
		}, true},
		{"with a profile of that name among others", func(t *testing.T) []string { return []string{schedulerFile(t, theirs+"- schedulerName: mine\n")} }, true},
		{"with another schedulerName", func(t *testing.T) []string { return []string{schedulerFile(t, "profiles:\n- schedulerName: mine\n")} }, false},
		{"with its Lease", func(*testing.T) []string { return []string{"--leader-elect-resource-name=kube-scheduler"} }, false},
		{"with its Lease by a file", func(t *testing.T) []string {
			return []string{schedulerFile(t, theirs+"leaderElection: {resourceName: kube-scheduler}\n")}
		}, false},
		{"scaling only", func(*testing.T) []string { return append(scaling, "--mode=autoscaler") }, false},
		{"as a shadow", func(*testing.T) []string { return []string{"--shadow"} }, false},
		{"with the override", func(*testing.T) []string { return []string{"--allow-second-scheduler"} }, false},
		{"with the other override", func(*testing.T) []string { return []string{"--allow-second-autoscaler"} }, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				peers.HoldLease(t, client, incumbent.SchedulerLease, "node-1_theirs", 0).Renew()
				var args []string
				if x.args != nil {
					args = x.args(t)
				}
				i, _ := incumbentsOf(t, client, args...)
				err := i.NoScheduler(t.Context())
				if (err != nil) != x.refused {
					t.Fatalf("got %v, want it refused: %t", err, x.refused)
				}
				if err == nil {
					return
				}
				for _, want := range []string{`"node-1_theirs" renews the Lease kube-system/kube-scheduler`, "--shadow", "another schedulerName", "leaderElection.resourceName", "docs/migration.md", "--allow-second-scheduler"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got\n%v\nwant %q in it", err, want)
					}
				}
			})
		})
	}
}

// groupsOf is a provider with these groups, or one that doesn't answer.
type groupsOf struct {
	nodegroup.Provider
	names []string
	err   error
}

func (g groupsOf) Groups(context.Context) (out []nodegroup.Group, err error) {
	for _, name := range g.names {
		out = append(out, nodegroup.Group{ID: name})
	}
	return out, g.err
}

// statusOfAutoscaler is a status as Cluster Autoscaler writes it, with the groups a and b.
const statusOfAutoscaler = `time: 2026-11-22 10:00:00.123456789 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health: {status: Healthy, nodeCounts: {registered: {total: 3, ready: 3, notStarted: 0, unready: {total: 0, resourceUnready: 0}}, longUnregistered: 0, unregistered: 0}}
nodeGroups:
- name: a
  health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 3}
- name: b
  health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 3}
`

// TestBesideALiveClusterAutoscaler has a Cluster Autoscaler with the groups a and b renew its Lease.
// Berths that have one of them, or may have one, are refused.
func TestBesideALiveClusterAutoscaler(t *testing.T) {
	const own = "--status-config-map-name=berth-status"
	with := func(args ...string) []string { return append(scaling[:len(scaling):len(scaling)], args...) }
	others := groupsOf{names: []string{"c", "d"}}
	for _, x := range []struct {
		name   string
		args   []string
		status string // of Cluster Autoscaler, "" for no ConfigMap
		ours   groupsOf
		want   string // in the error, "" for none
	}{
		{"its groups", with(own), statusOfAutoscaler, groupsOf{names: []string{"b", "c", "a"}}, "both would resize the node groups a, b. Ways on:"},
		{"one of its groups", with(own), statusOfAutoscaler, groupsOf{names: []string{"b", "c"}}, "both would resize the node groups b. Ways on:"},
		{"others than its groups", with(own), statusOfAutoscaler, others, ""},
		{"others than its groups, and its status ConfigMap", with(), statusOfAutoscaler, others, "both would write the status ConfigMap kube-system/cluster-autoscaler-status"},
		{"others than its groups, and no status", with("--write-status-configmap=false"), statusOfAutoscaler, others, ""},
		{"it writes no status", with(own), "", others, "which node groups it has isn't known: there is no status ConfigMap kube-system/cluster-autoscaler-status"},
		{"it has just started", with(own), "autoscalerStatus: Initializing\n", others, "which node groups it has isn't known: the status in the ConfigMap kube-system/cluster-autoscaler-status: its autoscalerStatus is \"Initializing\""},
		{"its status has another format", with(own), "Cluster-wide:\n  Health: Healthy (ready=3)\n", others, "its autoscalerStatus is \"\""},
		{"its status can't be read", with(own), "nodeGroups: {", others, "which node groups it has isn't known: the status in the ConfigMap kube-system/cluster-autoscaler-status: reading the key status"},
		{"it has no groups", with(own), "autoscalerStatus: Running\n", others, ""},
		{"a provider that doesn't answer", with(own), statusOfAutoscaler, groupsOf{err: errors.New("timed out")}, "reading the provider's groups: timed out"},
		{"by its Lease", with("--mode=autoscaler"), statusOfAutoscaler, groupsOf{names: []string{"a"}}, ""},
		{"scaling only, by another Lease", with("--mode=autoscaler", "--leader-elect-resource-name=mine"), statusOfAutoscaler, groupsOf{names: []string{"a"}}, "both would resize the node groups a."},
		{"by kube-scheduler's Lease", with("--leader-elect-resource-name=kube-scheduler"), statusOfAutoscaler, groupsOf{names: []string{"a"}}, "both would resize the node groups a."},
		{"it runs in another namespace, which is named", with("--namespace=scaling"), "", groupsOf{names: []string{"a"}}, ""},
		{"as a shadow", with("--shadow"), statusOfAutoscaler, groupsOf{names: []string{"a"}}, ""},
		{"with the override", with("--allow-second-autoscaler"), statusOfAutoscaler, groupsOf{names: []string{"a"}}, ""},
		{"with the other override", with("--allow-second-scheduler"), statusOfAutoscaler, groupsOf{names: []string{"a"}}, "both would resize the node groups a."},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				if x.status != "" {
					client = fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: incumbent.AutoscalerStatus}, Data: map[string]string{"status": x.status}})
				}
				peers.HoldLease(t, client, incumbent.AutoscalerLease, "node-1_theirs", 0).Renew()
				i, _ := incumbentsOf(t, client, x.args...)
				err := i.NoAutoscaler(t.Context(), x.ours)
				if got := errorText(err); (x.want == "") != (err == nil) || !strings.Contains(got, x.want) {
					t.Fatalf("got %v, want %q", err, x.want)
				}
				if err == nil || x.ours.err != nil {
					return
				}
				for _, want := range []string{`"node-1_theirs" renews the Lease kube-system/cluster-autoscaler`, "--shadow", "scale deployment cluster-autoscaler --replicas 0", "--nodes=MIN:MAX:NAME", "docs/migration.md", "--allow-second-autoscaler"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got\n%v\nwant %q in it", err, want)
					}
				}
			})
		})
	}
}

// TestALeaderLooksAgain: a scheduler and an autoscaler that were started since it was looked for
// them are found by who becomes the leader, before the simulated provider looks for its nodes.
func TestALeaderLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: incumbent.AutoscalerStatus},
			Data: map[string]string{"status": "autoscalerStatus: Running\nnodeGroups: [{name: large-cpu}]\n"}})
		p := processOf(t, client)
		if err := p.incumbents.NoScheduler(t.Context()); err != nil {
			t.Fatal(err)
		}
		o, end, err := p.options(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		for _, lease := range []string{incumbent.SchedulerLease, incumbent.AutoscalerLease} {
			peers.HoldLease(t, client, lease, "theirs", 0).Renew()
		}
		err = o.OnBecomeLeader(t.Context())
		for _, want := range []string{"a kube-scheduler is running", "both would resize the node groups large-cpu."} {
			if got := errorText(err); !strings.Contains(got, want) {
				t.Errorf("got\n%v\nwant %q in it", err, want)
			}
		}
		for _, a := range client.Actions() {
			if a.GetResource().Resource == "nodes" {
				t.Errorf("the provider has begun its work: %v", a)
			}
		}
	})
}

// TestOneThatIsInterruptedWhileItLooksEnds without an error.
func TestOneThatIsInterruptedWhileItLooksEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		peers.HoldLease(t, client, incumbent.SchedulerLease, "theirs", 0)
		ctx, interrupt := context.WithTimeout(t.Context(), 5*time.Second)
		defer interrupt()
		began := time.Now()
		if err := processOf(t, client).work(ctx, nil, nil); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("it ended with %v after %s", err, time.Since(began))
		}
	})
}

// TestOneWithoutAProviderResizesNothing, and asks for no Lease of an autoscaler.
func TestOneWithoutAProviderResizesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		peers.HoldLease(t, client, incumbent.AutoscalerLease, "theirs", 0).Renew()
		i, _ := incumbentsOf(t, client)
		if err := i.NoAutoscaler(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestWhoMayNotReadALeaseIsWarned, with the right and what to do, and runs. One that may not read
// the status of an autoscaler that is running doesn't.
func TestWhoMayNotReadALeaseIsWarned(t *testing.T) {
	forbid := func(c *fake.Clientset, resource string) {
		c.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "it", errors.New("no rule allows it"))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		peers.HoldLease(t, client, incumbent.SchedulerLease, "theirs", 0).Renew()
		peers.HoldLease(t, client, incumbent.AutoscalerLease, "theirs", 0).Renew()
		restricted, began := fake.NewClientset(), time.Now()
		forbid(restricted, "leases")
		i, log := incumbentsOf(t, restricted, scaling...)
		if err := errors.Join(i.NoScheduler(t.Context()), i.NoAutoscaler(t.Context(), groupsOf{})); err != nil || time.Since(began) > 0 {
			t.Errorf("got %v after %s, want no error at once", err, time.Since(began))
		}
		for _, want := range []string{"level=WARN", "not authorized to get a Lease (403)", "lease=kube-system/kube-scheduler", "lease=kube-system/cluster-autoscaler", "allow get of this Lease in a Role", "--allow-second-scheduler", "--allow-second-autoscaler"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log is\n%s\nwant %q in it", log, want)
			}
		}
		forbid(client, "configmaps")
		i, _ = incumbentsOf(t, client, scaling...)
		const want = "which node groups it has isn't known: not authorized to get the ConfigMap kube-system/cluster-autoscaler-status (403)"
		if err := i.NoAutoscaler(t.Context(), groupsOf{names: []string{"a"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
