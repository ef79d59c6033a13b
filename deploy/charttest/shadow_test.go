package charttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestInstallShadow does what docs/shadow.md says: helm install with the shadow's values, and a
// wait until the Deployment is rolled out, beside kube-scheduler. The shadow is ready within a
// minute, compares every pod that kube-scheduler places from then on, asks the API server for
// nothing but lists, watches and who its callers are, and is gone without a trace.
func TestInstallShadow(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	c.startScheduler()
	for _, name := range []string{"n1", "n2"} {
		c.makeNode(name)
	}
	before, err := c.objects(ctx, "")
	must(t, err)

	port := freePort(t)
	values := valuesOf(t, "shadow")
	values["flags"] = map[string]any{"secure-port": float64(port), "bind-address": "127.0.0.1"}
	imageOf(t) // it is there: what is measured begins with helm install
	began := time.Now()
	must(t, c.install(values))
	installed := time.Since(began)
	berth := c.runContainer("berth")
	probed(t, c, port)
	ready := time.Since(began)
	eventually(t, "the Deployment to be rolled out", func(ctx context.Context) bool {
		d, err := c.client.AppsV1().Deployments(namespace).Get(ctx, "berth", metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration >= d.Generation && slices.ContainsFunc(d.Status.Conditions, func(x appsv1.DeploymentCondition) bool {
			return x.Type == appsv1.DeploymentAvailable && x.Status == v1.ConditionTrue
		})
	})
	t.Logf("helm install took %s, the shadow was ready after %s, the Deployment rolled out after %s", installed.Round(10*time.Millisecond), ready.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
	if ready > time.Minute {
		t.Errorf("the shadow was ready %s after helm install, want a minute at most", ready)
	}

	verdicts := func(of ...string) (n int) {
		for _, verdict := range of {
			n += c.shadowed(t, port, verdict)
		}
		return n
	}
	compared := []string{"same", "equal", "better", "worse"}
	earlier := verdicts(compared...)
	const pods = 12
	for i := range pods {
		c.createFor(t, "default-scheduler", fmt.Sprint("p", i))
	}
	eventually(t, "the shadow to have compared what kube-scheduler has placed", func(context.Context) bool {
		return verdicts(compared...) == earlier+pods
	})
	if n := verdicts("notAllowed", "onlyBerth"); n != 0 {
		t.Errorf("by its metrics kube-scheduler has placed %d pods where no rule lets it, or not at all", n)
	}

	must(t, berth.stop())
	must(t, c.uninstall())
	must(t, c.client.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	must(t, c.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})) // and their Leases
	leavesOnly(t, c, before)
	c.onlyRead(t, "system:serviceaccount:"+namespace+":berth")
}

// startScheduler starts kube-scheduler, until stop is called or the test ends. Flags add to those by which it serves
// nothing and isn't elected.
func (c *cluster) startScheduler(flags ...string) (stop func()) {
	c.t.Helper()
	p := exec.Command(devcluster, append([]string{"component", "kube-scheduler", "--kubeconfig", c.path, "--leader-elect=false", "--secure-port=0"}, flags...)...)
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(c.t, p.Start())
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	stop = sync.OnceFunc(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = p.Process.Kill()
			<-ended
		}
	})
	c.t.Cleanup(stop)
	return stop
}

// makeNode creates a node, and waits until it takes pods.
func (c *cluster) makeNode(name string) {
	c.t.Helper()
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	_, err := c.client.CoreV1().Nodes().Create(c.t.Context(), n, metav1.CreateOptions{})
	must(c.t, err)
	eventually(c.t, "a node to be ready", func(ctx context.Context) bool {
		n, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(n.Spec.Taints) == 0
	})
}

// shadowed returns how many pods the shadow at a port has compared with a verdict.
func (c *cluster) shadowed(t *testing.T, port int, verdict string) int {
	t.Helper()
	of := rest.CopyConfig(c.config) // with a client certificate
	of.TLSClientConfig.Insecure, of.TLSClientConfig.CAData, of.TLSClientConfig.CAFile = true, nil, ""
	web, err := rest.HTTPClientFor(of)
	must(t, err)
	defer web.CloseIdleConnections()
	var text []byte
	// A moment after it is ready it learns by whom client certificates are signed.
	eventually(t, "the shadow's metrics", func(context.Context) bool {
		r, err := web.Get(fmt.Sprintf("https://127.0.0.1:%d/metrics", port))
		must(t, err)
		defer r.Body.Close()
		text, err = io.ReadAll(r.Body)
		must(t, err)
		if r.StatusCode != http.StatusOK {
			web.CloseIdleConnections()
		}
		return r.StatusCode == http.StatusOK
	})
	found := regexp.MustCompile(`(?m)^berth_shadow_pods_total\{verdict="` + verdict + `"\} (\d+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the shadow has no metric of the verdict %s:\n%s", verdict, text)
	}
	count, err := strconv.Atoi(string(found[1]))
	must(t, err)
	return count
}

// onlyRead fails unless a user has asked the API server for lists and watches, and has been let:
// and, as every server that asks it who callers are, for that.
func (c *cluster) onlyRead(t *testing.T, user string) {
	t.Helper()
	raw, err := os.ReadFile(c.audit)
	must(t, err)
	asked := map[string]bool{}
	for line := range bytes.Lines(raw) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written, about somebody else
		}
		var e struct {
			Verb        string
			User        struct{ Username string }
			ObjectRef   *struct{ Resource, Namespace, Name string }
			Annotations map[string]string
		}
		must(t, json.Unmarshal(line, &e))
		if e.User.Username != user || e.ObjectRef == nil {
			continue
		}
		asked[e.Verb+" "+e.ObjectRef.Resource] = true
		if decision := e.Annotations["authorization.k8s.io/decision"]; decision != "allow" {
			t.Errorf("the shadow may not %s %s %s/%s: %s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name, decision)
		}
		who := e.Verb == "create" && (e.ObjectRef.Resource == "subjectaccessreviews" || e.ObjectRef.Resource == "tokenreviews") ||
			e.Verb == "get" && e.ObjectRef.Namespace == namespace && e.ObjectRef.Name == "extension-apiserver-authentication"
		if e.Verb != "list" && e.Verb != "watch" && !who {
			t.Errorf("the shadow has asked to %s %s %s/%s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
	}
	if !asked["watch pods"] || !asked["create subjectaccessreviews"] {
		t.Errorf("of the shadow the audit log has only %v", asked)
	}
}
