package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestKubectlShadowReport has users with a kubeconfig and nothing else read the report of a shadow, which holds no Lease, over a
// port-forward: one who may list pods, and whom the shadow's pod is found for, and one who may not, and names it.
func TestKubectlShadowReport(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	makeNode(t, client, "control-1", "8Gi")
	makeNode(t, client, "n1", "8Gi")
	credentials := map[string]*api.AuthInfo{}
	var viewers []rbacv1.Subject
	for _, name := range []string{"carol", "nina"} {
		if err := c.IssueClient(name, name, time.Hour); err != nil {
			t.Fatal(err)
		}
		files := c.ClientFiles(name)
		credentials[name] = &api.AuthInfo{ClientCertificate: files.Cert, ClientKey: files.Key}
		viewers = append(viewers, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name})
	}
	users := kubectlUsers(t, c, credentials)
	port := fmt.Sprint(freePort(t))
	_, log := startBerth(t, c, "--shadow", "--bind-address", "127.0.0.1", "--secure-port", port)
	within(t, "the shadow to know the cluster", time.Minute, logs(log, `"ready"`))
	shadow := podOfBerth(t, client, "control-1")
	bindViewer(t, client, "berth-viewer-shadow", viewers...)
	letListPods(t, client, viewers[0])

	// Another scheduler places a pod where Berth wouldn't: on a node that has too little.
	create(t, client, pod("misplaced", "64"))
	binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "misplaced"}, Target: v1.ObjectReference{Kind: "Node", Name: "n1"}}
	if err := client.CoreV1().Pods(v1.NamespaceDefault).Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	report := func(ctx context.Context, user string, args ...string) string {
		out, _ := users[user].berth(ctx, append([]string{"shadow", "report", "--port", port}, args...)...)
		return out
	}
	for user, args := range map[string][]string{"carol": nil, "nina": {"--pod", "kube-system/" + shadow}} {
		var r struct {
			Compared, Hidden int
			Verdicts         counts
			Differences      []struct{ Pod string }
		}
		last := ""
		within(t, user+" to read of the pod", time.Minute, func(ctx context.Context) bool {
			last = report(ctx, user, append(args, "-o", "json")...)
			return json.Unmarshal([]byte(last), &r) == nil && r.Verdicts["notAllowed"] == 1
		})
		named := user == "carol"
		if (len(r.Differences) == 1) != named || (r.Hidden == 1) == named || strings.Contains(last, "misplaced") != named {
			t.Errorf("%s reads\n%s", user, last)
		}
		if text := report(t.Context(), user, args...); !strings.Contains(text, "Berth") || strings.Contains(text, "default/misplaced") != named {
			t.Errorf("%s reads\n%s", user, text)
		}
	}
	if out := report(t.Context(), "nina"); !strings.Contains(out, "not authorized to list pods in namespace kube-system (403), by which the shadow is found; set its pod with --pod") {
		t.Errorf("without the right by which the shadow is found: %s", out)
	}
}
