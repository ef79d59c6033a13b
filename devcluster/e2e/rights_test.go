package e2e

import (
	"bytes"
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

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestWhoLacksARightIsNoLeader has a Berth that may not list one kind, and one that may not use
// the Lease that its configuration names. The first is alive, says at /readyz what it lacks, and
// takes the Lease when it has got the right; the second says so and ends, as does one whose port
// somebody else has.
func TestWhoLacksARightIsNoLeader(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t, "get leases.coordination.k8s.io mine in kube-system", "list csidrivers.storage.k8s.io", "watch csidrivers.storage.k8s.io")
	kubeconfig, ctx := asDeployed(t, c), t.Context()
	other := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(other, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {resourceName: mine}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(limit, berth, "run", "--kubeconfig", kubeconfig, "--secure-port", "0", "--config", other).CombinedOutput()
	if want := "the Lease kube-system/mine can't be used for leader election: not authorized to get it"; err == nil || limit.Err() != nil || !bytes.Contains(out, []byte(want)) {
		t.Errorf("it ended with %v, want an error that says %q:\n%s", err, want, out)
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	out, err = exec.CommandContext(limit, berth, "run", "--kubeconfig", kubeconfig, "--bind-address", "127.0.0.1", "--secure-port", port).CombinedOutput()
	if want := "serving on port " + port + ": "; err == nil || limit.Err() != nil || !bytes.Contains(out, []byte(want)) || !bytes.Contains(out, []byte("choose another with --secure-port")) {
		t.Errorf("it ended with %v, want an error that says %q:\n%s", err, want, out)
	}

	role, err := client.RbacV1().ClusterRoles().Get(ctx, "berth-watching-base", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := role.DeepCopy()
	for i := range role.Rules {
		role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(r string) bool { return r == "csidrivers" })
	}
	if role, err = client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to be gone", func(ctx context.Context) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:kube-system:berth-base",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "storage.k8s.io", Resource: "csidrivers", Verb: "list"}}}
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && !review.Status.Allowed
	})
	free := freePort(t)
	startBerth(t, c, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(free))
	web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	probe := func(ctx context.Context, path string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", free, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := web.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	eventually(t, "all other caches to be full", func(ctx context.Context) bool {
		code, body := probe(ctx, "/readyz")
		return code == http.StatusInternalServerError && strings.Count(body, "[-]") == 1 && strings.Contains(body, "[-]cache-csidrivers failed")
	})
	if code, body := probe(ctx, "/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d, want 200:\n%s", code, body)
	}
	leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)
	if lease, err := leases.Get(ctx, "berth", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Lease is %v, %v; want none", lease, err)
	}
	whole.ResourceVersion = role.ResourceVersion
	if _, err := client.RbacV1().ClusterRoles().Update(ctx, whole, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it to be ready, and to lead", func(ctx context.Context) bool {
		code, _ := probe(ctx, "/readyz")
		lease, err := leases.Get(ctx, "berth", metav1.GetOptions{})
		return code == http.StatusOK && err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != ""
	})
}
