package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// TestStartsBeforeTheAPIServer has Berth start when nobody listens at the address of its kubeconfig, as
// a static pod may: it says so at once, is alive and not ready, and goes on when the API server answers.
func TestStartsBeforeTheAPIServer(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	makeNode(t, client, "n1", "8Gi")
	create(t, client, pod("early", "1"))
	reader := tokenFor(t, client, "reader", "/statusz", "/flagz")
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	kubeconfig, server := kubeconfigVia(t, asDeployed(t, c), address)
	port := freePort(t)
	log := filepath.Join(t.TempDir(), "berth.log")
	p, err := controlplane.StartProcess("berth", log, berth, "run", "--kubeconfig", kubeconfig, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(10 * time.Second) })
	get := asking(t, fmt.Sprintf("https://127.0.0.1:%d", port))
	eventually(t, "Berth to be alive without an API server", func(ctx context.Context) bool { code, _ := get(ctx, "/healthz", ""); return code == http.StatusOK })
	if code, body := get(t.Context(), "/livez", ""); code != http.StatusOK {
		t.Errorf("/livez answers %d: %s", code, body)
	}
	code, body := get(t.Context(), "/readyz", "")
	for _, part := range []string{"[-]api-server failed", "[-]sched-handler-sync failed", "[+]shutdown ok"} {
		if code != http.StatusInternalServerError || !strings.Contains(body, part) {
			t.Errorf("/readyz answers %d, want 500 with %q: %s", code, part, body)
		}
	}
	if text := logOf(t, log); strings.Count(text, "waiting for the API server") != 1 || !strings.Contains(text, address) || !strings.Contains(text, "check that it is running and that the kubeconfig points to it") {
		t.Errorf("the log doesn't say, once, where nobody answers, and what to do:\n%s", text)
	}
	forward(t, address, server)
	eventually(t, "a pod to be bound once the API server answers", func(ctx context.Context) bool {
		p, err := client.CoreV1().Pods("default").Get(ctx, "early", metav1.GetOptions{})
		return err == nil && p.Spec.NodeName == "n1"
	})
	if code, body := get(t.Context(), "/readyz?verbose", ""); code != http.StatusOK || !strings.Contains(body, "[+]api-server ok") || !strings.Contains(body, "[+]sched-handler-sync ok") {
		t.Errorf("/readyz answers %d, want 200: %s", code, body)
	}
	for path, want := range map[string]string{"/statusz": "Emulation version", "/flagz": kubeconfig} {
		if code, body := get(t.Context(), path, reader); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s answers %d, want 200 with %q: %s", path, code, want, body)
		}
		if code, body := get(t.Context(), path, ""); code != http.StatusForbidden {
			t.Errorf("%s answers a stranger %d: %s", path, code, body)
		}
	}
}

// TestAnInterruptEndsTheWait of a Berth that nobody answers, without an error.
func TestAnInterruptEndsTheWait(t *testing.T) {
	kubeconfig, _ := kubeconfigVia(t, deadKubeconfig(t), fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	cmd := exec.Command(berth, "run", "--kubeconfig", kubeconfig, "--secure-port", "0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := ""
	for part := make([]byte, 4096); !strings.Contains(text, "is not reachable"); {
		n, err := stderr.Read(part)
		if text += string(part[:n]); err != nil {
			t.Fatalf("it ended before it said that nobody answers: %v\n%s", err, text)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stderr)
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted, it ends with %v\n%s", err, text)
	}
}

// kubeconfigVia copies a kubeconfig with another address of the API server, and returns the one it had.
func kubeconfigVia(t *testing.T, from, address string) (path, had string) {
	t.Helper()
	conf, err := clientcmd.LoadFromFile(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range conf.Clusters {
		u, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		had, cluster.Server = u.Host, "https://"+address
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*conf, path); err != nil {
		t.Fatal(err)
	}
	return path, had
}

// forward takes connections to an address to another one until the test ends.
func forward(t *testing.T, address, to string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			join := func(a, b net.Conn) { _, _ = io.Copy(a, b); _ = a.Close(); _ = b.Close() }
			go join(in, out)
			go join(out, in)
		}
	}()
}
