package demo

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/account"
	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/tools/checker"
)

// This file is what all demos run on: a dev cluster with a Berth process. What must hold:
// after startTestbed every way out stops both, and a process that ends by itself fails
// the demo.

// testbed is a dev cluster with Berth running on it.
type testbed struct {
	cluster *controlplane.Cluster
	berth   *controlplane.Process
	client  kubernetes.Interface
	died    chan error // Berth has ended by itself
	out     io.Writer
}

// startTestbed starts a dev cluster and a Berth process with more flags, whose log is
// in dir. Its caller has to stop the testbed.
func startTestbed(ctx context.Context, cluster controlplane.Options, berth, dir string, flags ...string) (*testbed, error) {
	out := cluster.Progress
	if _, err := exec.LookPath(berth); err != nil {
		return nil, fmt.Errorf("--berth: %w; build it with make build", err)
	}
	c, err := controlplane.Start(ctx, cluster)
	if err != nil {
		return nil, err
	}
	bed := &testbed{cluster: c, out: out, died: make(chan error, 1)}
	if bed.client, err = api.New(c.Config); err != nil {
		c.Stop()
		return nil, err
	}
	fmt.Fprintln(out, "starting berth …")
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := account.Create(ctx, c.Config, account.ConfigurationFor(flags), kubeconfig); err != nil {
		c.Stop()
		return nil, err
	}
	args := append([]string{"run", "--kubeconfig", kubeconfig, "--secure-port", "0"}, flags...)
	if bed.berth, err = controlplane.StartProcess("berth", filepath.Join(dir, "berth.log"), berth, args...); err != nil {
		c.Stop()
		return nil, fmt.Errorf("starting %s: %w", berth, err)
	}
	go func() {
		if err := bed.berth.Wait(); err != nil {
			bed.died <- err
		}
	}()
	return bed, nil
}

// stop ends Berth and then the cluster.
func (bed *testbed) stop() {
	bed.berth.Stop(10 * time.Second)
	bed.cluster.Stop()
}

// failed returns the error of a process that stopped by itself, if one did.
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

// lifecycleTaint tells whether a taint is one that a node gets after its pods: the
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
