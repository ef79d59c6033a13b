package demo

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/tools/checker"
)

// stage is a dev cluster with Berth running on it.
type stage struct {
	cluster *controlplane.Cluster
	berth   *controlplane.Process
	client  kubernetes.Interface
	died    chan error
	out     io.Writer
}

// withoutKubelets among the flags is for setStage itself.
const withoutKubelets = "without-kubelets"

// setStage starts a dev cluster and a Berth process with more flags.
func setStage(ctx context.Context, out io.Writer, berth, dir string, flags ...string) (*stage, error) {
	bare := slices.Contains(flags, withoutKubelets)
	flags = slices.DeleteFunc(flags, func(f string) bool { return f == withoutKubelets })
	if _, err := exec.LookPath(berth); err != nil {
		return nil, fmt.Errorf("--berth: %w; build it with make build", err)
	}
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: out, NoKubelets: bare})
	if err != nil {
		return nil, err
	}
	s := &stage{cluster: c, out: out, died: make(chan error, 1)}
	if s.client, err = api.New(c.Config); err != nil {
		c.Stop()
		return nil, err
	}
	fmt.Fprintln(out, "starting berth …")
	args := append([]string{"run", "--kubeconfig", c.Kubeconfig, "--secure-port", "0"}, flags...)
	if s.berth, err = controlplane.StartProcess("berth", filepath.Join(dir, "berth.log"), berth, args...); err != nil {
		c.Stop()
		return nil, fmt.Errorf("starting %s: %w", berth, err)
	}
	go func() {
		if err := s.berth.Wait(); err != nil {
			s.died <- err
		}
	}()
	return s, nil
}

func (s *stage) strike() {
	s.berth.Stop(10 * time.Second)
	s.cluster.Stop()
}

// failed returns the error of a process that stopped by itself, if one did.
func (s *stage) failed() error {
	select {
	case err := <-s.died:
		return err
	case err := <-s.cluster.Failed():
		return err
	default:
		return nil
	}
}

// check reads nodes and pods back from the API server and verifies every
// placement. Pods are read first: a pod read is then on a node that is still
// there or was just removed as empty, after the pod ended.
func (s *stage) check(ctx context.Context, namespace string) (pods int, found []checker.Violation, err error) {
	all, err := api.Pods(ctx, s.client, namespace, "")
	if err != nil {
		return 0, nil, err
	}
	nodes, err := api.Nodes(ctx, s.client)
	if err != nil {
		return 0, nil, err
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
			// It may have ended since it was read, and its node have gone.
			fresh, err := s.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			if err == nil {
				p = fresh
			}
		}
		placed = append(placed, p)
	}
	return len(placed), checker.Check(nodes, placed, lifecycleTaint), nil
}

// lifecycleTaint leaves out taints that come to a node after its pods.
func lifecycleTaint(t v1.Taint) bool {
	switch t.Key {
	case v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, "ToBeDeletedByClusterAutoscaler":
		return true
	}
	return false
}

// usage prints the CPU time and peak memory of Berth and the control plane.
func (s *stage) usage() (berth, server controlplane.Usage) {
	fmt.Fprintf(s.out, "\n%-26s %10s %12s\n", "process", "CPU", "peak memory")
	row := func(name string, u controlplane.Usage) {
		fmt.Fprintf(s.out, "%-26s %9.1fs %8d MiB\n", name, u.CPU.Seconds(), u.PeakRSS>>20)
	}
	berth, server = s.berth.Usage(), s.cluster.Process("kube-apiserver").Usage()
	row("berth", berth)
	row("kube-apiserver", server)
	for _, name := range []string{"etcd", "kube-controller-manager", "kubelets"} {
		if p := s.cluster.Process(name); p != nil {
			row(name, p.Usage())
		}
	}
	if server.CPU > 0 {
		fmt.Fprintf(s.out, "berth used %.2f of the API server's CPU time\n", float64(berth.CPU)/float64(server.CPU))
	}
	return berth, server
}
