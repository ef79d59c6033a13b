package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// tokenFor makes a service account that may get some paths, and returns a file
// with its token.
func tokenFor(t *testing.T, client kubernetes.Interface, name string, paths ...string) string {
	t.Helper()
	ctx := t.Context()
	sa := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(ctx, sa, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}}}
	if slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, "/api/") }) { // names of pods are for those who may list them
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	}
	if len(paths) > 0 {
		if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}}}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(token.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asking returns a function that gets a path of a Berth's HTTPS server, with the token in a file, ""
// for none. It returns the status and the body, or 0 and the error when nothing answers.
func asking(t *testing.T, server string) func(ctx context.Context, path, token string) (int, string) {
	t.Helper()
	web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return func(ctx context.Context, path, token string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			raw, err := os.ReadFile(token)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+string(raw))
		}
		resp, err := web.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
}

// TestObserve asks a running Berth over HTTPS: everybody gets its health; metrics,
// configuration and explanations get only those whom the API server allows to.
func TestObserve(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	makeNode(t, client, "n1", "8Gi")
	port := freePort(t)
	_, log := startBerth(t, c, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port))
	server := fmt.Sprintf("https://127.0.0.1:%d", port)
	reader := tokenFor(t, client, "reader", "/metrics", "/metrics/resources", "/configz", "/debug/explain", "/api/v1alpha1/*", "/debug/status")
	stranger := tokenFor(t, client, "stranger")
	get := asking(t, server)
	eventually(t, "Berth to be ready", func(ctx context.Context) bool { code, _ := get(ctx, "/readyz", ""); return code == http.StatusOK })
	eventually(t, "Berth to lead", func(ctx context.Context) bool {
		code, _ := get(ctx, "/debug/explain?pod=default/nobody", reader)
		return code == http.StatusNotFound
	})
	for _, x := range []struct {
		path, token string
		code        int
	}{
		{"/healthz", "", 200}, {"/livez", "", 200}, {"/metrics", "", 403}, {"/metrics", stranger, 403}, {"/debug/explain?pod=default/p", stranger, 403},
		{"/metrics", reader, 200}, {"/metrics/resources", reader, 200}, {"/metrics/resources", stranger, 403}, {"/configz", reader, 200}, {"/statusz", stranger, 403}, {"/flagz", stranger, 403}, {"/statusz", "", 403}, {"/debug/pprof/", reader, 403}, {"/debug/explain?pod=nonsense", reader, 400},
		{"/debug/explain?pod=default/nobody", reader, 404},
	} {
		if code, body := get(t.Context(), x.path, x.token); code != x.code {
			t.Errorf("%s with token %q: %d, want %d: %s", x.path, filepath.Base(x.token), code, x.code, body)
		}
	}
	create(t, client, pod("fits", "1"), pod("waits", "7"))
	eventually(t, "a pod to be bound", func(ctx context.Context) bool {
		p, err := client.CoreV1().Pods("default").Get(ctx, "fits", metav1.GetOptions{})
		return err == nil && p.Spec.NodeName != ""
	})
	hasLines := func(path string, lines ...string) {
		t.Helper()
		var missing []string
		defer func() {
			if t.Failed() {
				t.Logf("%s lacks: %s", path, strings.Join(missing, "\n"))
			}
		}()
		eventually(t, path+" to have all lines", func(ctx context.Context) bool {
			code, body := get(ctx, path, reader)
			if code != http.StatusOK {
				return false
			}
			missing = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(body, line+"\n") })
			return len(missing) == 0
		})
	}
	hasLines("/metrics",
		`scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1`,
		`scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1`,
		`scheduler_pending_pods{queue="unschedulable"} 1`, `scheduler_pending_pods{queue="active"} 0`,
		`scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1`,
		`scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1`, `scheduler_pod_scheduling_attempts_bucket{le="1"} 1`,
		`scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2`,
		`scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",profile="default-scheduler",status="Success"} 1`,
		`scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeResourcesFit",profile="default-scheduler"} 2`,
		`scheduler_plugin_evaluation_total{extension_point="Score",plugin="NodeResourcesFit",profile="default-scheduler"} 1`,
		`scheduler_pod_scheduled_after_flush_total 0`, `berth_decisions_total{kind="Placed"} 1`)
	hasLines("/metrics/resources",
		`kube_pod_resource_request{namespace="default",node="n1",pod="fits",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 1`,
		`kube_pod_resource_request{namespace="default",node="",pod="waits",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 7`)
	if raw, err := os.ReadFile(log); err != nil || strings.Contains(string(raw), "fits") {
		t.Errorf("the log names single pods (%v):\n%s", err, raw)
	}
	explain := func(args ...string) string {
		out, _ := exec.CommandContext(t.Context(), berth, append([]string{"explain", "--server", server}, args...)...).CombinedOutput()
		return string(out)
	}
	for _, x := range []struct {
		args []string
		want []string
	}{
		{[]string{"pod", "default/waits", "--token-file", reader, "--insecure-skip-tls-verify"}, []string{"pod default/waits is pending (", ", unschedulable, 1 attempt)",
			"0/1 nodes are available: 1 Insufficient cpu.", "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.", "n1: needs 7 cpu, has 3 available",
			"retried when a node or node group with 7 cpu is added, or the request is lowered: the largest has 4", "Waits pod default/waits: 0/1 nodes"}},
		{[]string{"pod", "default/fits", "--token-file", reader, "--insecure-skip-tls-verify"}, []string{"pod default/fits is placed on n1", "Placed pod default/fits node n1"}},
		{[]string{"pod", "default/fits", "--token-file", reader, "--insecure-skip-tls-verify", "-o", "json"}, []string{`"outcome": "Placed"`, `"kind": "Placed"`}},
		{[]string{"pod", "default/fits", "--token-file", reader}, []string{"berth: querying Berth: ", "--insecure-skip-tls-verify"}},
		{[]string{"pod", "default/fits", "--insecure-skip-tls-verify"}, []string{"(403); ask for the ClusterRole berth-viewer"}},
		{[]string{"pod", "default/nobody", "--token-file", reader, "--insecure-skip-tls-verify"}, []string{"pod default/nobody not found"}},
		{[]string{"pod", "nobody", "--token-file", reader, "--insecure-skip-tls-verify"}, []string{"pod default/nobody not found"}},
		{[]string{"pod", "a/b/c"}, []string{"name one pod: berth explain pod NAMESPACE/NAME"}},
	} {
		got := explain(x.args...)
		for _, want := range x.want {
			if !strings.Contains(got, want) {
				t.Errorf("berth explain %v:\n%s\nwant …%s…", x.args, got, want)
			}
		}
	}
	for _, path := range []string{"/metrics", "/metrics/resources", "/configz", "/debug/explain?pod=default/waits", "/debug/explain?pod=default/fits"} {
		if code, body := get(t.Context(), path, reader); code != http.StatusOK || strings.Contains(body, planted) {
			t.Errorf("%s: %d; want 200 without a pod's secret:\n%s", path, code, body)
		}
	}
	for _, part := range []string{`"componentconfig": {`, `"kind": "KubeSchedulerConfiguration"`, `"schedulerName": "default-scheduler"`, `"berth": {`} {
		if _, body := get(t.Context(), "/configz", reader); !strings.Contains(body, part) {
			t.Errorf("/configz lacks %s:\n%s", part, body)
		}
	}
	// No credential is in the log, and a port in use is named in the error.
	raw, _ := os.ReadFile(reader)
	if text, _ := os.ReadFile(log); strings.Contains(string(text), string(raw)) {
		t.Error("a token is in the log")
	}
	out, err := exec.CommandContext(t.Context(), berth, "run", "--kubeconfig", asDeployed(t, c), "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "choose another with --secure-port") {
		t.Errorf("on a port in use: %v\n%s", err, out)
	}
}
