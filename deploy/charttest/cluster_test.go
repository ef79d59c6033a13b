package charttest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// This file is a dev cluster, in a process of its own, and what Helm does to it.

// cluster is a running dev cluster.
type cluster struct {
	t       *testing.T
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
	helm    *action.Configuration
	mapper  meta.RESTMapper
	path    string // of the kubeconfig
	audit   string // path of what the service accounts of kube-system have asked for
}

// startCluster starts a cluster with further flags, which is stopped with the test.
func startCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	if _, err := os.Stat(devcluster); err != nil {
		t.Fatalf("there is no dev cluster (%v): run make devcluster in the checkout's root", err)
	}
	dir := t.TempDir()
	c := &cluster{t: t, path: filepath.Join(dir, "kubeconfig"), audit: filepath.Join(dir, "audit.log")}
	p := exec.Command(devcluster, append([]string{"up", "--kubeconfig", c.path, "--audit-log", c.audit}, flags...)...)
	out, err := p.StdoutPipe()
	must(t, err)
	p.Stderr = os.Stderr
	must(t, p.Start())
	t.Cleanup(func() {
		must(t, p.Process.Signal(syscall.SIGTERM))
		if err := p.Wait(); err != nil {
			t.Errorf("the dev cluster: %v", err)
		}
	})
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatal("the dev cluster has ended before it was ready")
		}
		if strings.HasPrefix(lines.Text(), "ready") {
			break
		}
	}
	c.config, err = clientcmd.BuildConfigFromFlags("", c.path)
	must(t, err)
	c.config.QPS, c.config.Burst = 500, 1000
	c.client, err = kubernetes.NewForConfig(c.config)
	must(t, err)
	c.dynamic, err = dynamic.NewForConfig(c.config)
	must(t, err)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	settings := cli.New()
	settings.KubeConfig = c.path
	settings.SetNamespace(namespace)
	c.helm = action.NewConfiguration()
	must(t, c.helm.Init(settings.RESTClientGetter(), namespace, "secret"))
	return c
}

// install runs helm install berth deploy/chart --namespace kube-system.
func (c *cluster) install(values map[string]any) error {
	i := action.NewInstall(c.helm)
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = "berth", namespace, kube.HookOnlyStrategy, time.Minute
	_, err := i.RunWithContext(c.t.Context(), loadChart(c.t), values)
	return err
}

// upgrade runs helm upgrade berth deploy/chart.
func (c *cluster) upgrade(values map[string]any) error {
	u := action.NewUpgrade(c.helm)
	u.Namespace, u.WaitStrategy, u.Timeout = namespace, kube.HookOnlyStrategy, time.Minute
	_, err := u.RunWithContext(c.t.Context(), "berth", loadChart(c.t), values)
	return err
}

// uninstall runs helm uninstall berth.
func (c *cluster) uninstall() error {
	u := action.NewUninstall(c.helm)
	u.WaitStrategy, u.Timeout = kube.HookOnlyStrategy, time.Minute
	_, err := u.Run("berth")
	return err
}

// objects returns the names of all objects of the cluster that have a label, of all with "",
// but events, which go by themselves.
func (c *cluster) objects(ctx context.Context, label string) ([]string, error) {
	lists, err := c.client.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	var out []string
	for _, l := range lists {
		version, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			if r.Name == "events" {
				continue
			}
			all, err := c.dynamic.Resource(version.WithResource(r.Name)).List(ctx, metav1.ListOptions{LabelSelector: label})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Name, err)
			}
			for i := range all.Items {
				out = append(out, fmt.Sprintf("%s.%s %s/%s", r.Name, version.Group, all.Items[i].GetNamespace(), all.Items[i].GetName()))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// tryCreate has the API server say whether it would create an object; unknown fields are errors.
func (c *cluster) tryCreate(o *unstructured.Unstructured) error {
	return c.createWith(o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
}

// createWith creates an object of any kind.
func (c *cluster) createWith(o *unstructured.Unstructured, options metav1.CreateOptions) error {
	m, err := c.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	var resources dynamic.ResourceInterface = c.dynamic.Resource(m.Resource)
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		resources = c.dynamic.Resource(m.Resource).Namespace(o.GetNamespace())
	}
	_, err = resources.Create(c.t.Context(), o, options)
	return err
}

// eventually polls until something holds.
func eventually(t *testing.T, what string, ok func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("waited two minutes in vain for: %s", what)
		case <-tick.C:
		}
	}
}

// freePort returns a port of loopback that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
