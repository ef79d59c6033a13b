// Package realnode runs a real node on this machine: containerd, and the kubelet, which registers with a cluster
// and runs pods. It needs root and what hack/build-node builds. Simulated kubelets leave its node alone.
//
//	realnode.go  the node: start, end, images
//	image.go     an image made of one program
//	cgroups.go   the control group of the node
//	config.go    what containerd, CNI and the kubelet are told
package realnode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/kubelets"
)

// Image is the image that waits until it is asked to end. Containers use it without pulling it.
const Image = "localhost/wait:1"

// Options of a node.
type Options struct {
	Name       string
	Kubeconfig string // of the cluster that it joins, with all rights
	Programs   string // folder with what hack/build-node has built
	Dir        string // for its state; removed at its end
	// Port is where the kubelet serves those who have a certificate of the cluster.
	Port int
	// Network tells the networks of several nodes apart: 0 to 255. The pods' addresses are in 10.88.Network.0/24.
	Network int
	// Images are the paths of archives whose images the node has from its start.
	Images []string
}

// Node is a real node that runs.
type Node struct {
	o          Options
	containerd *controlplane.Process
	kubelet    *controlplane.Process
}

// Start starts a node, and returns once the cluster shows it ready. An error says what this machine lacks.
func Start(ctx context.Context, client kubernetes.Interface, o Options) (_ *Node, err error) {
	if err := check(o); err != nil {
		return nil, err
	}
	n := &Node{o: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Stop())
		}
	}()
	if err := n.configure(); err != nil {
		return nil, err
	}
	if n.containerd, err = controlplane.StartProcess("containerd", n.path("containerd.log"), filepath.Join(o.Programs, "containerd"), "--config", n.path("containerd.toml")); err != nil {
		return nil, err
	}
	if err := n.wait(ctx, 30*time.Second, "containerd to serve", func() bool { _, err := n.ctr("version"); return err == nil }); err != nil {
		return nil, err
	}
	if err := n.Load(Image, filepath.Join(o.Programs, "wait")); err != nil {
		return nil, err
	}
	for _, archive := range o.Images {
		if err := n.Import(archive); err != nil {
			return nil, err
		}
	}
	if err := n.makeCgroup(); err != nil {
		return nil, err
	}
	n.kubelet, err = controlplane.StartProcess("kubelet", n.path("kubelet.log"), filepath.Join(o.Programs, "kubelet"), "--config", n.path("kubelet.yaml"),
		"--kubeconfig", o.Kubeconfig, "--root-dir", n.path("kubelet"), "--hostname-override", o.Name, "--node-labels", kubelets.RealNode+"=true")
	if err != nil {
		return nil, err
	}
	return n, n.wait(ctx, time.Minute, "the node to be ready", func() bool {
		node, err := client.CoreV1().Nodes().Get(ctx, o.Name, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue })
	})
}

// check returns an error that says what is missing for a node.
func check(o Options) error {
	if os.Geteuid() != 0 {
		return errors.New("a real node needs root: containers have namespaces and control groups")
	}
	for _, program := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "wait", "cni/ptp"} {
		if _, err := os.Stat(filepath.Join(o.Programs, program)); err != nil {
			return fmt.Errorf("%w; build what a real node needs: ./hack/build-node", err)
		}
	}
	if _, err := exec.LookPath("runc"); err != nil {
		return fmt.Errorf("%w; install it (Debian: apt-get install runc)", err)
	}
	return nil
}

// path returns the path of a file of the node.
func (n *Node) path(name string) string { return filepath.Join(n.o.Dir, name) }

// ctr runs containerd's own client among the images and containers of the kubelet.
func (n *Node) ctr(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(n.o.Programs, "ctr"), append([]string{"--address", n.path("containerd.sock"), "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// wait waits for something, at most so long, as long as the node's processes run.
func (n *Node) wait(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if holds() {
			return nil
		}
		for _, p := range []*controlplane.Process{n.containerd, n.kubelet} {
			if p != nil && p.Ended() {
				return p.Wait()
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return fmt.Errorf("waited %s for %s; the logs are %s and %s", limit, what, n.path("containerd.log"), n.path("kubelet.log"))
}

// Stop ends the node with all its containers, and removes its files. The Node object stays.
func (n *Node) Stop() error {
	if n.kubelet != nil {
		n.kubelet.Stop(10 * time.Second)
	}
	if n.containerd != nil {
		n.stopContainers()
		n.containerd.Stop(10 * time.Second)
	}
	n.stopShims()
	err := n.removeCgroup()
	if unmounted := n.unmount(); unmounted != nil {
		return errors.Join(err, unmounted) // its files are behind mounts
	}
	return errors.Join(err, os.RemoveAll(n.o.Dir))
}

// stopContainers kills all containers.
func (n *Node) stopContainers() {
	list, err := n.ctr("tasks", "ls", "--quiet")
	if err != nil {
		return // then stopShims kills them
	}
	for _, id := range strings.Fields(list) {
		_, _ = n.ctr("tasks", "rm", "--force", id)
	}
}

// stopShims kills the shims that are left, with the process groups that they lead: they outlive containerd.
func (n *Node) stopShims() {
	out, _ := exec.Command("pgrep", "-f", "containerd-shim.*"+n.path("containerd.sock")).Output()
	for _, pid := range strings.Fields(string(out)) {
		var id int
		if _, err := fmt.Sscan(pid, &id); err == nil {
			_ = syscall.Kill(id, syscall.SIGKILL)
		}
	}
}

// unmount takes away all that is mounted below the node's folder, the innermost first.
func (n *Node) unmount() error {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return err
	}
	defer f.Close()
	var mounts []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[1], n.o.Dir+"/") {
			mounts = append(mounts, fields[1])
		}
	}
	slices.Reverse(mounts)
	var failed error
	for _, m := range mounts {
		failed = errors.Join(failed, syscall.Unmount(m, syscall.MNT_DETACH))
	}
	return failed
}

// Runs reports whether a container runs, by its ID.
func (n *Node) Runs(id string) bool {
	list, err := n.ctr("tasks", "ls")
	if err != nil {
		return false
	}
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == id && f[2] == "RUNNING" {
			return true
		}
	}
	return false
}
