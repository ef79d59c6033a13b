package charttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file runs the pod of a Berth whose provider is a sidecar, with a real kubelet.

// groupsAtTheSocket are the node groups of that provider: its nodes are the only ones with so many cores.
const groupsAtTheSocket = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- {name: bought, max: 1, launchDelay: {min: 1s, max: 1s}, startup: {min: 1s, max: 1s}, template: {allocatable: {cpu: "64", memory: 64Gi, pods: "10"}}}
`

// withAProvider: the kubelet starts the provider, then the check, which has to succeed, and then Berth. All three meet at the
// socket; the provider has no port of the node. It buys a node for a pod that fits on no other, and deletes it when
// the pod is gone.
func (r *realNodes) withAProvider(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	_, err := r.client.CoreV1().ConfigMaps(namespace).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "groups"}, Data: map[string]string{"groups.yaml": groupsAtTheSocket}}, metav1.CreateOptions{})
	must(t, err)
	// The simulated provider makes nodes of the API, where one of a cloud makes instances.
	_, err = r.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "provider"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "berth", Namespace: namespace}}}, metav1.CreateOptions{})
	must(t, err)
	base := r.with()
	image := base["image"].(map[string]any)
	values := r.with(`
flags: {scan-interval: 1s, scale-down-unneeded-time: 3s, scale-down-delay-after-add: 0s, node-delete-delay-after-taint: 1s}
extraVolumes: [{name: groups, configMap: {name: groups}}]
provider:
  args: [provider, simulated, "--listen=unix:///run/berth-provider/provider.sock", --cloud-config=/etc/groups/groups.yaml]
  socket: true
  check: true
  serviceAccountToken: true
  volumeMounts: [{name: groups, mountPath: /etc/groups}]
`)
	provider := values["provider"].(map[string]any)
	provider["image"], provider["env"] = image, base["extraEnv"] // as Berth's: the API server serves on loopback
	r.runsBerth(values)
	r.startedInOrder(t)

	r.put("large", r.asks("berth", "", 150, ""))
	var bought string
	eventually(t, "the pod that fits on no node to run on one that the provider has made", func(ctx context.Context) bool {
		p, err := r.client.CoreV1().Pods("default").Get(ctx, "large", metav1.GetOptions{})
		if err == nil {
			bought = p.Spec.NodeName
		}
		return err == nil && p.Status.Phase == v1.PodRunning && strings.HasPrefix(bought, "bought-")
	})
	r.drop("large")
	eventually(t, "the provider to delete the node that nobody needs", func(ctx context.Context) bool {
		_, err := r.client.CoreV1().Nodes().Get(ctx, bought, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	r.removeBerth()
	must(t, r.client.CoreV1().ConfigMaps(namespace).Delete(ctx, "groups", metav1.DeleteOptions{}))
	must(t, r.client.RbacV1().ClusterRoleBindings().Delete(ctx, "provider", metav1.DeleteOptions{}))
}

// startedInOrder checks how the kubelet has started the pod: the check began when the provider ran and ended with 0, Berth
// began after it, and of the two that go on running only Berth listens on a port.
func (r *realNodes) startedInOrder(t *testing.T) {
	t.Helper()
	list, err := r.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=berth"})
	must(t, err)
	if len(list.Items) != 1 {
		t.Fatalf("there are %d pods of Berth, want one", len(list.Items))
	}
	s := &list.Items[0].Status
	if len(s.InitContainerStatuses) != 2 || len(s.ContainerStatuses) != 1 {
		t.Fatalf("the pod has %d init containers and %d others, want the provider and the check, and Berth", len(s.InitContainerStatuses), len(s.ContainerStatuses))
	}
	provider, check, berth := s.InitContainerStatuses[0], s.InitContainerStatuses[1].State.Terminated, s.ContainerStatuses[0]
	if provider.State.Running == nil || check == nil || check.ExitCode != 0 || berth.State.Running == nil {
		t.Fatalf("the provider is %+v, the check %+v, Berth %+v; want a check that has ended with 0, and the others running", provider.State, check, berth.State)
	}
	if check.StartedAt.Before(&provider.State.Running.StartedAt) || berth.State.Running.StartedAt.Before(&check.FinishedAt) {
		t.Errorf("the provider was started at %s, the check ran from %s to %s, and Berth was started at %s", provider.State.Running.StartedAt, check.StartedAt, check.FinishedAt, berth.State.Running.StartedAt)
	}
	if ports := r.portsOf(t, "real-a", berth.ContainerID); !slices.Equal(ports, []int{r.port}) {
		t.Errorf("Berth listens on the ports %v of the node, want %d", ports, r.port)
	}
	if ports := r.portsOf(t, "real-a", provider.ContainerID); len(ports) != 0 {
		t.Errorf("the provider listens on the ports %v of the node, want the socket alone", ports)
	}
}

// portsOf returns the TCP ports that the first process of a container on a node listens on. Containers with their node's
// network are processes of this machine, with its network.
func (r *realNodes) portsOf(t *testing.T, node, container string) (out []int) {
	t.Helper()
	said, err := r.ctr(node, "tasks", "ls")
	must(t, err)
	process := ""
	for line := range strings.Lines(said) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == strings.TrimPrefix(container, "containerd://") {
			process = filepath.Join("/proc", f[1])
		}
	}
	if process == "" {
		t.Fatalf("containerd on %s runs no %s:\n%s", node, container, said)
	}
	opened, err := os.ReadDir(filepath.Join(process, "fd"))
	must(t, err)
	mine := map[string]bool{}
	for _, fd := range opened {
		if to, err := os.Readlink(filepath.Join(process, "fd", fd.Name())); err == nil { // it may have been closed since
			mine[to] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(filepath.Join(process, "net", table))
		must(t, err)
		for line := range strings.Lines(string(raw)) {
			// The second field is ADDRESS:PORT in hexadecimal, the fourth the state, and the tenth the socket.
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !mine[fmt.Sprintf("socket:[%s]", f[9])] {
				continue
			}
			port, err := strconv.ParseInt(f[1][strings.LastIndex(f[1], ":")+1:], 16, 32)
			must(t, err)
			out = append(out, int(port))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
