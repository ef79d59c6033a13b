package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has leaders that lose the Lease without noticing, and watches what they write from
// then on: nothing.

// line is the connection of one Berth to the API server. It can be cut: requests hang then. Of
// writes, but for those of the Lease, it notes those that came through since it was asked.
type line struct {
	kubeconfig string
	mu         sync.Mutex
	cut        chan struct{} // closed when the line works; guarded by mu
	wrote      []string      // guarded by mu
}

func newLine(t *testing.T, c *controlplane.Cluster) *line {
	t.Helper()
	transport, err := rest.TransportFor(c.Config) // which says to the API server who asks
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cut: make(chan struct{})}
	close(l.cut)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Only when the body has been read does the server notice that the Berth has hung up.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.mu.Lock()
		cut := l.cut
		l.mu.Unlock()
		select {
		case <-cut:
		case <-r.Context().Done(): // the Berth has given the request up
			return
		}
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "reviews") {
			l.mu.Lock()
			l.wrote = append(l.wrote, r.Method+" "+r.URL.Path)
			l.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(l.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// hang has requests hang until works is called.
func (l *line) hang() (works func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cut := make(chan struct{})
	l.cut = cut
	return func() { close(cut) }
}

// written returns what was written since the last call.
func (l *line) written() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.wrote
	l.wrote = nil
	return out
}

// TestADeposedLeaderWritesNothing takes the Lease from a leader in two ways while it binds, at 20
// pods a second, so that there is always more to write: it is stopped for longer than the Lease
// lasts and resumed, and its connection hangs for as long. Another Berth takes over. From when
// it goes on the first one writes nothing, and it ends with an error that says why.
func TestADeposedLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	const nodes = 20
	c, client := startCluster(t)
	for i := range nodes {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{v1.LabelHostname: fmt.Sprint("n", i)}}}
		n.Status.Allocatable = list("cpu", "64", "memory", "64Gi", "pods", "110")
		if _, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	nodesReady(t, client)
	slow := filepath.Join(t.TempDir(), "slow.yaml")
	if err := os.WriteFile(slow, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {qps: 20, burst: 20}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		depose func(berth *os.Process, l *line) (goOn func())
		says   string
	}{
		{"stopped", func(berth *os.Process, _ *line) func() {
			_ = berth.Signal(syscall.SIGSTOP)
			return func() { _ = berth.Signal(syscall.SIGCONT) }
		}, "the Lease kube-system/berth was lost"},
		{"cutoff", func(_ *os.Process, l *line) func() { return l.hang() }, "the Lease kube-system/berth was lost"},
	} {
		t.Run(x.name, func(t *testing.T) {
			l, log := newLine(t, c), filepath.Join(t.TempDir(), "first.log")
			out, err := os.Create(log)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			first := exec.Command(berth, "run", "--kubeconfig", l.kubeconfig, "--secure-port", "0", "--config", slow)
			first.Stdout, first.Stderr = out, out
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- first.Wait() }()
			t.Cleanup(func() { _ = first.Process.Kill() })
			eventually(t, "the first Berth to lead", logs(log, `"taking over"`))
			second, other := startBerth(t, c)
			defer second.Stop(10 * time.Second)
			eventually(t, "the second Berth to stand by", logs(other, "standing by: another instance is the leader"))
			for i := range 600 {
				create(t, client, pod(fmt.Sprintf("%s-%d", x.name, i), "10m"))
			}
			eventually(t, "the first Berth to bind", func(context.Context) bool { return len(l.written()) > 0 })
			bound := func(ctx context.Context) (n int) {
				list, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
				if err != nil {
					return 0
				}
				for i := range list.Items {
					if strings.HasPrefix(list.Items[i].Name, x.name) {
						n++
					}
				}
				return n
			}
			if n := bound(t.Context()); n >= 600 {
				t.Fatal("all pods are bound already: the first Berth has nothing left to write")
			}
			goOn := x.depose(first.Process, l)
			within(t, "the second Berth to take over", time.Minute, logs(other, `"taking over"`))
			l.written()
			goOn()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the first Berth ended as if all were well")
				}
			case <-time.After(30 * time.Second):
				t.Error("the first Berth goes on 30s after another has taken over")
			}
			if raw, _ := os.ReadFile(log); !bytes.Contains(raw, []byte(x.says)) {
				t.Errorf("the first Berth doesn't say %q:\n%s", x.says, raw)
			}
			if late := l.written(); len(late) > 0 {
				t.Errorf("the first Berth wrote %d times after another has taken over, first %s", len(late), late[0])
			}
			eventually(t, "all pods to be bound", func(ctx context.Context) bool { return bound(ctx) == 600 })
		})
	}
}
