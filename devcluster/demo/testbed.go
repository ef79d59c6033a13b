package demo

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/account"
	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/sim/checker"
)

// This file is what all demos run on: a dev cluster with a Berth process. What must hold:
// after startTestbed every way out stops both, and a process that ends by itself fails
// the demo.

// callTimeout is how long Berth waits for the node groups. On a busy laptop a call may take longer
// than the five seconds that are the default, and what wasn't answered counts as failed.
const callTimeout = time.Minute

// testbed is a dev cluster with Berth running on it.
type testbed struct {
	cluster *controlplane.Cluster
	berth   *controlplane.Process
	nodes   *controlplane.NodeGroups // serves the node groups; nil without any
	port    int                      // where Berth serves; 0 for nowhere
	client  kubernetes.Interface
	died    chan error // of a process that has ended by itself
	out     io.Writer
}

// program says how Berth runs on a testbed. Flags for the node groups are added to its own.
type program struct {
	berth  string // path of the binary
	dir    string // for logs and what else goes with the processes
	groups string // path of the file with node groups, "" for none
	serves bool   // over HTTPS, on a free port of loopback
	flags  []string
}

// startTestbed starts a dev cluster, a process that serves the node groups, if there are any, and
// Berth. Its caller has to stop the testbed.
func startTestbed(ctx context.Context, cluster controlplane.Options, p program) (*testbed, error) {
	out := cluster.Progress
	if _, err := exec.LookPath(p.berth); err != nil {
		return nil, fmt.Errorf("--berth: %w; build it with make build", err)
	}
	c, err := controlplane.Start(ctx, cluster)
	if err != nil {
		return nil, err
	}
	bed := &testbed{cluster: c, out: out, died: make(chan error, 2)}
	if err := bed.start(ctx, p); err != nil {
		bed.stop()
		return nil, err
	}
	return bed, nil
}

// start starts the processes beside the cluster. What it has started when it fails, stop ends.
func (bed *testbed) start(ctx context.Context, p program) (err error) {
	if bed.client, err = api.New(bed.cluster.Config); err != nil {
		return err
	}
	flags := slices.Clone(p.flags)
	if p.groups != "" {
		fmt.Fprintln(bed.out, "starting the node groups: berth provider simulated, which berth reaches over mutual TLS …")
		if bed.nodes, err = bed.cluster.ServeNodeGroups(p.berth, p.groups, p.dir); err != nil {
			return err
		}
		bed.watch(bed.nodes.Process)
		bed.nodes.Timeout = callTimeout
		provider, err := bed.nodes.Flags(bed.nodes.Address)
		if err != nil {
			return err
		}
		flags = append(flags, provider...)
	}
	fmt.Fprintln(bed.out, "starting berth …")
	kubeconfig := filepath.Join(p.dir, "kubeconfig")
	if err := account.Create(ctx, bed.cluster.Config, account.ConfigurationFor(flags), kubeconfig); err != nil {
		return err
	}
	if p.serves { // the port is free now, and connections of the cluster's own could take it soon
		if bed.port, err = controlplane.FreePort(); err != nil {
			return err
		}
	}
	args := append([]string{"run", "--kubeconfig", kubeconfig, "--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(bed.port)}, flags...)
	if bed.berth, err = controlplane.StartProcess("berth", filepath.Join(p.dir, "berth.log"), p.berth, args...); err != nil {
		return fmt.Errorf("starting %s: %w", p.berth, err)
	}
	bed.watch(bed.berth)
	return nil
}

// watch records when a process ends by itself. died has room for one error of each process, so that
// nothing waits for a demo that has ended.
func (bed *testbed) watch(p *controlplane.Process) {
	go func() {
		if err := p.Wait(); err != nil {
			bed.died <- err
		}
	}()
}

// stop ends Berth, then its node groups, then the cluster.
func (bed *testbed) stop() {
	if bed.berth != nil {
		bed.berth.Stop(10 * time.Second)
	}
	if bed.nodes != nil {
		bed.nodes.Stop(10 * time.Second)
	}
	bed.cluster.Stop()
}

// failed returns the error of a process that stopped by itself, if one did. Each error is returned once.
func (bed *testbed) failed() error {
	select {
	case err := <-bed.died:
		return err
	case err := <-bed.cluster.Failed():
		return err
	default:
		return nil
	}
}

// check reads nodes and pods back from the API server and verifies every placement: it
// returns how many there are, prints those that break a rule, and counts them.
// Pods are read first: the node of a pod that was read still exists, or was removed
// since then, after the pod had ended.
func (bed *testbed) check(ctx context.Context, namespace string) (pods, violations int, err error) {
	all, err := api.Pods(ctx, bed.client, namespace, "")
	if err != nil {
		return 0, 0, err
	}
	nodes, err := api.Nodes(ctx, bed.client)
	if err != nil {
		return 0, 0, err
	}
	byName := map[string]bool{}
	for _, n := range nodes {
		byName[n.Name] = true
	}
	var placed []*v1.Pod
	for _, p := range all {
		if p.Spec.NodeName == "" || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
			continue
		}
		if !byName[p.Spec.NodeName] {
			// The pod may have ended since it was read, and its node been removed.
			fresh, err := bed.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			if err == nil {
				p = fresh
			}
		}
		placed = append(placed, p)
	}
	found := checker.Check(nodes, placed, lifecycleTaint)
	for _, v := range found {
		fmt.Fprintln(bed.out, "VIOLATION:", v)
	}
	return len(placed), len(found), nil
}

// lifecycleTaint reports whether a taint is one that a node gets after its pods: the
// checker leaves it out.
func lifecycleTaint(t v1.Taint) bool {
	switch t.Key {
	case v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, "ToBeDeletedByClusterAutoscaler":
		return true
	}
	return false
}

// usage prints the CPU time and peak memory of Berth and of each component of the
// control plane, and returns Berth's and the API server's.
func (bed *testbed) usage() (berth, server controlplane.Usage) {
	fmt.Fprintf(bed.out, "\n%-26s %10s %12s\n", "process", "CPU", "peak memory")
	row := func(name string, u controlplane.Usage) {
		fmt.Fprintf(bed.out, "%-26s %9.1fs %8d MiB\n", name, u.CPU.Seconds(), u.PeakRSS>>20)
	}
	berth, server = bed.berth.Usage(), bed.cluster.Process("kube-apiserver").Usage()
	row("berth", berth)
	if bed.nodes != nil {
		row("node groups", bed.nodes.Usage())
	}
	row("kube-apiserver", server)
	for _, name := range []string{"etcd", "kube-controller-manager", "kubelets"} {
		if p := bed.cluster.Process(name); p != nil {
			row(name, p.Usage())
		}
	}
	if server.CPU > 0 {
		fmt.Fprintf(bed.out, "berth used %.2f of the API server's CPU time\n", float64(berth.CPU)/float64(server.CPU))
	}
	return berth, server
}
