package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// TestKubeadmManifest runs Berth by the command line of examples/kubeadm, as the user that kubeadm
// makes for kube-scheduler: it is ready by the manifest's probe, holds the manifest's Lease and
// binds a pod.
func TestKubeadmManifest(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "examples", "kubeadm", "kube-scheduler.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest v1.Pod
	if err := yaml.UnmarshalStrict(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	container := manifest.Spec.Containers[0]
	if !slices.Equal(container.Command[:2], []string{"/ko-app/berth", "run"}) {
		t.Fatalf("the command is %q", container.Command)
	}
	c, client := startCluster(t)
	ctx := t.Context()

	// The file that kubeadm makes is for the user system:kube-scheduler.
	conf, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range conf.AuthInfos {
		user.Impersonate = "system:kube-scheduler"
	}
	file := filepath.Join(t.TempDir(), "scheduler.conf")
	if err := clientcmd.WriteToFile(*conf, file); err != nil {
		t.Fatal(err)
	}
	flags := slices.Clone(container.Command[2:])
	for i, f := range flags {
		flags[i] = strings.ReplaceAll(f, "/etc/kubernetes/scheduler.conf", file)
	}
	port := freePort(t) // other tests' Berths may have the usual one
	log := filepath.Join(t.TempDir(), "berth.log")
	p, err := controlplane.StartProcess("berth", log, berth, append(append([]string{"run"}, flags...), fmt.Sprint("--secure-port=", port))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(10 * time.Second)
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("berth's log:\n%s", text)
		}
	})

	web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	probe := func(probe *v1.Probe) func(context.Context) bool {
		return func(ctx context.Context) bool {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s:%d%s", probe.HTTPGet.Host, port, probe.HTTPGet.Path), nil)
			if err != nil {
				return false
			}
			answer, err := web.Do(req)
			if err != nil {
				return false
			}
			answer.Body.Close()
			return answer.StatusCode == http.StatusOK
		}
	}
	within(t, "the start-up probe", time.Minute, probe(container.StartupProbe))
	within(t, "the readiness probe", time.Minute, probe(container.ReadinessProbe))
	within(t, "the liveness probe", time.Minute, probe(container.LivenessProbe))

	makeNode(t, client, "n1", "8Gi")
	create(t, client, pod("small", "1"))
	within(t, "the pod to run", time.Minute, func(ctx context.Context) bool { return get(ctx, client, "small").Status.Phase == v1.PodRunning })
	lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-scheduler", metav1.GetOptions{})
	if err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		t.Errorf("the Lease is %v, %v; want it held", lease, err)
	}
	text, err := os.ReadFile(log)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("kube-scheduler's user may not do all that Berth does: %s", line)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
