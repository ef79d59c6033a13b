package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file asks a running Berth as people do who have a kubeconfig and nothing else: through the
// API server, which forwards a port to the kubelet of the node of Berth's pod. The Berth of a dev
// cluster is a process; a Pod object of the name that it has in the Lease stands for it.

// pricedGroups are node groups with a price. A launch takes long enough to be seen.
const pricedGroups = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
seed: 1
groups:
- {name: small, max: 4, pricePerHour: 0.4, launchDelay: {min: 8s, max: 8s}, startup: {min: 1s, max: 1s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`

// kubectlUser is somebody with a kubeconfig.
type kubectlUser struct {
	t                  *testing.T
	folder, kubeconfig string
}

// berth returns what kubectl berth prints.
func (u *kubectlUser) berth(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(u.folder, "kubectl-berth"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig, "NO_COLOR=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kubectlUsers are users of a cluster, by name, each with a kubeconfig of its own.
func kubectlUsers(t *testing.T, c *controlplane.Cluster, credentials map[string]*clientcmdapi.AuthInfo) map[string]*kubectlUser {
	t.Helper()
	out := map[string]*kubectlUser{}
	for name, auth := range credentials {
		u := &kubectlUser{t: t, folder: t.TempDir()}
		u.kubeconfig = filepath.Join(u.folder, "config")
		for _, as := range []string{"kubectl-berth", "kubectl_complete-berth"} {
			if err := os.Symlink(berth, filepath.Join(u.folder, as)); err != nil {
				t.Fatal(err)
			}
		}
		err := clientcmd.WriteToFile(clientcmdapi.Config{
			Clusters:  map[string]*clientcmdapi.Cluster{"dev": {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}},
			AuthInfos: map[string]*clientcmdapi.AuthInfo{name: auth}, CurrentContext: "dev",
			Contexts: map[string]*clientcmdapi.Context{"dev": {Cluster: "dev", AuthInfo: name, Namespace: "default"}},
		}, u.kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = u
	}
	return out
}

// podOfBerth creates the Pod object that stands for a Berth on this machine, on a node, and returns its name.
func podOfBerth(t *testing.T, client kubernetes.Interface, node string) string {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	p := pod(host, "100m")
	p.Namespace, p.Spec.NodeName, p.Spec.ServiceAccountName = metav1.NamespaceSystem, node, "berth"
	p.Labels = map[string]string{"app.kubernetes.io/name": "berth", "app.kubernetes.io/instance": "berth"}
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "berth"}}
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	create(t, client, p)
	eventually(t, "Berth's pod to run", func(ctx context.Context) bool {
		p, err := client.CoreV1().Pods(p.Namespace).Get(ctx, host, metav1.GetOptions{})
		return err == nil && p.Status.Phase == v1.PodRunning
	})
	return host
}

// bindViewer gives users what deploy/ has for people who ask Berth: the ClusterRole for its paths
// and the Role for the way to its pod.
func bindViewer(t *testing.T, client kubernetes.Interface, role string, users ...rbacv1.Subject) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "viewers"}
	paths := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: users, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	way := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: users, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), paths, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(t.Context(), way, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what a cluster has in kube-system stays when another test gets the cluster
		if err := client.RbacV1().RoleBindings(metav1.NamespaceSystem).Delete(context.Background(), meta.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// letListPods lets users list the pods of all namespaces: Berth tells them their names then.
func letListPods(t *testing.T, client kubernetes.Interface, users ...rbacv1.Subject) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pod-lister"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pod-listers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: users}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runbooks returns the arguments of kubectl berth that the chart's alerts tell people to begin with, for a node
// group.
func runbooks(t *testing.T, group string) (out [][]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "chart", "files", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Groups[0].Rules {
		command, ok := strings.CutPrefix(strings.ReplaceAll(r.Annotations["runbook"], "{{ $labels.node_group }}", group), "kubectl berth ")
		if !ok || strings.Contains(command, "{{") {
			t.Errorf("%s has the runbook %q, want a command of kubectl berth", r.Alert, r.Annotations["runbook"])
			continue
		}
		out = append(out, strings.Fields(command))
	}
	if len(out) < 14 {
		t.Errorf("there are %d runbooks; are they found?", len(out))
	}
	return out
}

// TestKubectlBerth has one user with a token and one with a client certificate, who have nothing
// but the roles of deploy/ for them, ask the leader; one without these is told which right is
// missing, one after the other.
func TestKubectlBerth(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	makeNode(t, client, "control-1", "8Gi")
	byCertificate := func(name string) *clientcmdapi.AuthInfo {
		if err := c.IssueClient(name, name, time.Hour); err != nil {
			t.Fatal(err)
		}
		files := c.ClientFiles(name)
		return &clientcmdapi.AuthInfo{ClientCertificate: files.Cert, ClientKey: files.Key}
	}
	sa := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), sa, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	users := kubectlUsers(t, c, map[string]*clientcmdapi.AuthInfo{
		"robot": {Token: token.Status.Token}, "carol": byCertificate("carol"), "norman": byCertificate("norman"),
	})
	refuses := func(user, want string, args ...string) {
		t.Helper()
		if out, err := users[user].berth(t.Context(), args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("kubectl berth %v by %s: %v\n%s\nwant …%s…", args, user, err, out, want)
		}
	}

	// Before there is a Berth: an administrator is told that, others that they may not know.
	admin := &kubectlUser{t: t, folder: users["carol"].folder, kubeconfig: c.Kubeconfig}
	users["admin"] = admin
	refuses("admin", "no Lease kube-system/berth", "status")

	groups := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(groups, []byte(pricedGroups), 0o600); err != nil {
		t.Fatal(err)
	}
	process, _ := startBerth(t, c, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(freePort(t)), "--cloud-provider=simulated", "--cloud-config="+groups, "--scan-interval=2s",
		"--scale-down-unneeded-time=5s", "--scale-down-delay-after-add=0s", "--scale-down-delay-after-delete=0s")
	eventually(t, "a Berth to lead", func(ctx context.Context) bool {
		l, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "berth", metav1.GetOptions{})
		return err == nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
	})
	refuses("admin", "not found, which the Lease names as the leader", "status")
	podOfBerth(t, client, "control-1")
	role := "berth-viewer-simulated"
	bindViewer(t, client, role, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "robot"}, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "carol"})
	letListPods(t, client, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "robot"}, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "carol"})
	create(t, client, pod("web-0", "3"), pod("web-1", "3"), pod("huge", "64")) // one is placed, one has a node bought

	for _, name := range []string{"robot", "carol"} {
		u := users[name]
		says := func(args []string, patterns ...string) {
			t.Helper()
			var last string
			defer func() {
				if t.Failed() {
					t.Logf("kubectl berth %v by %s says last:\n%s\nwant all of %q", args, name, last, patterns)
				} else {
					t.Logf("kubectl berth %v by %s:\n%s", args, name, last)
				}
			}()
			within(t, strings.Join(args, " "), time.Minute, func(ctx context.Context) bool {
				if out, err := u.berth(ctx, args...); err == nil || out != "" { // otherwise it was cut off
					last = out
				}
				for _, p := range patterns {
					if !regexp.MustCompile(p).MatchString(last) {
						return false
					}
				}
				return true
			})
		}
		says([]string{"status"}, `(?m)^Berth `, `\d on nodes, \d pending`, `(?m)^Pending pods$`, `1 +Insufficient cpu \(NodeResourcesFit\) +default/huge`, `(?m)^Recent decisions$`, `ScaledUp group small nodes 1`)
		says([]string{"explain", "pod", "huge"}, `pod default/huge is pending`, `needs 64 cpu`)
		says([]string{"explain", "pod", "web-0", "-n", "default"}, `pod default/web-0`)
		says([]string{"explain", "node", "control-1"}, `node control-1 stays`, `not in a node group`)
		says([]string{"explain", "group", "small"}, `target size 1, min 0, max 4`)
		says([]string{"top", "--once"}, `(?m)^  NODE +GROUP +CPU +MEMORY +PODS +\$/H`, `control-1 +- +[█░]+ +\d+ % `, `small +[█░]+`, `0\.40`)
		says([]string{"top"}, `(?m)^  NODE +GROUP`) // into a pipe: once, too
		out, err := u.berth(t.Context(), "status", "-o", "json")
		status := struct {
			Nodes   struct{ Total int }
			Pending []struct{ Example string }
		}{}
		if err != nil || json.Unmarshal([]byte(out), &status) != nil || status.Nodes.Total < 1 || len(status.Pending) == 0 || strings.Contains(out, "\x1b") {
			t.Errorf("status -o json by %s: %v\n%s", name, err, out)
		}
	}

	for _, command := range runbooks(t, "small") {
		if out, err := users["carol"].berth(t.Context(), command...); err != nil || out == "" {
			t.Errorf("an alert tells to run kubectl berth %q: %v\n%s", command, err, out)
		}
	}

	complete := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(users["carol"].folder, "kubectl_complete-berth"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+users["carol"].kubeconfig)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("completing %q: %v", args, err)
		}
		return string(out)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"exp"}, "explain\t"}, {[]string{"explain", ""}, "pod\t"}, {[]string{"explain", "pod", "hu"}, "huge\n:4"}, {[]string{"explain", "pod", "default/hu"}, "default/huge\n:4"},
		{[]string{"explain", "node", "control"}, "control-1\n:4"}, {[]string{"explain", "group", ""}, "small\n:4"},
	} {
		if got := complete(x.args...); !strings.HasPrefix(got, x.want) {
			t.Errorf("completing %q gives\n%swant\n%s", x.args, got, x.want)
		}
	}

	// The one without rights gets them one by one, as the errors say.
	norman := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "norman"}
	refuses("norman", `not authorized to get the Lease kube-system/berth, which names the leader: leases.coordination.k8s.io "berth" is forbidden: User "norman" cannot get`, "status")
	refuses("norman", "kubectl -n kube-system create rolebinding berth-viewer-NAME --role=berth-viewer --user=NAME", "status")
	if _, err := client.RbacV1().Roles(metav1.NamespaceSystem).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "lease-only"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grant := func(name, role string) {
		t.Helper()
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{norman}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}}
		if _, err := client.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventuallyRefuses := func(want string) {
		t.Helper()
		var last string
		defer func() {
			if t.Failed() {
				t.Logf("norman is told last:\n%s\nwant …%s…", last, want)
			}
		}()
		within(t, want, 20*time.Second, func(ctx context.Context) bool {
			if said, _ := users["norman"].berth(ctx, "status"); said != "" { // nothing when it is cut short
				last = said
			}
			return strings.Contains(last, want)
		})
	}
	grant("lease", "lease-only")
	eventuallyRefuses("not authorized to get Berth's pod kube-system/")
	grant("way", role)
	eventuallyRefuses("not authorized to get /api/v1alpha1/overview of Berth (403); a cluster administrator can grant it with: kubectl create clusterrolebinding berth-viewer-NAME --clusterrole=berth-viewer --user=NAME")

	// Nobody leads any more.
	process.Stop(10 * time.Second)
	refuses("carol", "no leader: the Lease kube-system/berth has no holder", "status")
}
