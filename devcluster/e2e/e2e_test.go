// Package e2e tests the berth binary against a real control plane. The test binary is also the
// components' binary, as devcluster is: Start runs it again as "component NAME".
//
// Tests mostly wait, and so run in parallel (go test -parallel), each on a control plane that no
// other test has at that time (clusters_test.go). Those that measure, or have the machine to
// themselves for another reason, don't; they run first.
//
// This file has the suite's start, tests of a live cluster as a whole, and what people see when
// something can't start. Processes that tests start are in processes_test.go, what else they
// share in kit_test.go.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/components"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/demo"
	"github.com/berthproject/berth/internal/test/testkit"
)

var berth string // the binary under test

func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "component":
		cmd := components.Command()
		cmd.SetArgs(os.Args[2:])
		err = cmd.Execute()
	case len(os.Args) > 1 && os.Args[1] == "up":
		err = up()
	case len(os.Args) > 2 && os.Args[1] == "storm":
		err = stormUntilInterrupted(os.Args[2])
	default:
		os.Exit(run(m))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run builds the berth binary and runs the tests, and compares after all of them what Berth
// may do with what it has done.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-e2e-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	berth = filepath.Join(dir, "berth")
	build := exec.Command("go", "build", "-o", berth, "./cmd/berth")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building berth: %v\n%s", err, out))
	}
	flag.Parse()
	if *audits == "" {
		*audits = filepath.Join(dir, "audits")
	}
	if err := os.MkdirAll(*audits, 0o700); err != nil {
		panic(err)
	}
	code := m.Run()
	stopIdle()
	// What a part of the suite doesn't need says nothing.
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if code == 0 && (whole || *rights) {
		if err := checkRights(); err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: rights of deploy/\n%v\n", err)
			return 1
		}
	}
	return code
}

// TestNightBatch scales up from nothing, runs a fifth of the batch and scales
// back to nothing, and then drains four services; the demo checks every placement and its own
// expectations. What Berth saw is recorded, and replayed it decides the same.
func TestNightBatch(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "recording")
	n := demo.Night{AuditLog: auditLog(t), Record: recording, Berth: berth, Groups: filepath.Join("..", "..", "examples", "demo", "groups.yaml"), Scale: 20, Services: 4, Out: &lines{t: t}}
	if err := n.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out struct {
		Steps            int
		Decisions        map[string]int
		Digest, Recorded string
		Differences      []struct{ What, Recorded, Now string }
	}
	replay := func(more ...string) {
		t.Helper()
		raw, err := exec.CommandContext(t.Context(), berth, append([]string{"simulate", "--replay", recording, "-o", "json"}, more...)...).Output()
		if err != nil {
			t.Fatalf("replaying: %v\n%s", err, raw)
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
	}
	replay()
	if out.Recorded == "" || out.Digest != out.Recorded || out.Decisions["Placed"] < 400 || out.Decisions["ScaledUp"] == 0 || out.Decisions["NodeRemoved"] == 0 ||
		out.Decisions["PodEvicted"] == 0 || out.Decisions["HomeTaken"] != out.Decisions["PodEvicted"] {
		t.Errorf("the replay: %+v", out)
	}
	replay("--autoscaler-flag=--max-nodes-total=3")
	if len(out.Differences) == 0 {
		t.Error("three nodes for the whole batch would have made no difference")
	}
}

// TestTrace places the first pods of the production trace.
func TestTrace(t *testing.T) {
	dir := testkit.OpenbTrace(t, filepath.Join("..", ".."))
	tr := demo.Trace{AuditLog: auditLog(t), Berth: berth, Dir: dir, MaxPods: 2000, Limit: 8 * time.Minute, Out: &lines{t: t}}
	if err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLiveCluster: a pod that fits runs, one that fits nowhere is told why, one of another
// scheduler is left alone, a gated one runs when its gate is gone, quantities beyond what
// Berth can count are reported, and a second Berth takes over when the first stops.
func TestLiveCluster(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	first, _ := startBerth(t, c)
	makeNode(t, client, "n1", "8Gi")
	makeNode(t, client, "odd", "7Ei")

	small, hopeless, gated, foreign := pod("small", "1"), pod("hopeless", "9223372036854775807"), pod("gated", "1"), pod("foreign", "3")
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/wait"}}
	foreign.Spec.SchedulerName = "another"
	create(t, client, small, hopeless, gated, foreign)
	eventually(t, "a pod that fits to run", func(ctx context.Context) bool { return get(ctx, client, "small").Status.Phase == v1.PodRunning })
	eventually(t, "the condition of a pod that fits nowhere", func(ctx context.Context) bool {
		return strings.Contains(refusal(get(ctx, client, "hopeless")), "2 Insufficient cpu")
	})
	if p := get(t.Context(), client, "foreign"); p.Spec.NodeName != "" {
		t.Errorf("a pod of another scheduler was bound to %s", p.Spec.NodeName)
	}
	if p := get(t.Context(), client, "gated"); p.Spec.NodeName != "" {
		t.Errorf("a gated pod was bound to %s", p.Spec.NodeName)
	}
	g := get(t.Context(), client, "gated")
	g.Spec.SchedulingGates = nil
	if _, err := client.CoreV1().Pods(v1.NamespaceDefault).Update(t.Context(), g, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to run once its gate is gone", func(ctx context.Context) bool { return get(ctx, client, "gated").Status.Phase == v1.PodRunning })
	eventually(t, "events about the odd node and the hopeless pod", func(ctx context.Context) bool {
		list, err := client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
		seen := map[string]bool{}
		for i := range list.Items {
			seen[list.Items[i].Regarding.Name+" "+list.Items[i].Reason] = true
		}
		return err == nil && seen["odd InvalidQuantity"] && seen["hopeless InvalidQuantity"] && seen["hopeless FailedScheduling"] && seen["small Scheduled"]
	})

	// A second Berth stands by, and takes over when the first goes.
	_, log := startBerth(t, c)
	eventually(t, "the second Berth to stand by", func(context.Context) bool {
		raw, _ := os.ReadFile(log)
		return bytes.Contains(raw, []byte("standing by: another instance is the leader"))
	})
	first.Stop(10 * time.Second)
	create(t, client, pod("later", "1"))
	within(t, "the second Berth to take over", time.Minute, func(ctx context.Context) bool { return get(ctx, client, "later").Status.Phase == v1.PodRunning })
}

// TestUpLeavesNothingBehind starts a cluster in a process of its own and
// interrupts it.
func TestUpLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	u := startUp(t, "up")
	u.ready()
	u.stop()
}

// TestUpTriesAgain kills an API server before it serves: it ends as one does whose port
// another process has taken.
func TestUpTriesAgain(t *testing.T) {
	t.Parallel()
	u := startUp(t, "up")
	var pid []byte
	eventually(t, "an API server", func(ctx context.Context) bool {
		pid, _ = exec.CommandContext(ctx, "pgrep", "-f", "component kube-apiserver.*"+u.tmp).Output()
		return len(pid) > 0
	})
	if out, err := exec.Command("kill", "-9", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	u.ready()
	if !strings.Contains(u.output(), "kube-apiserver stopped unexpectedly (signal: killed)") || !strings.Contains(u.output(), "trying again …") {
		t.Errorf("the output is\n%s", u.output())
	}
	u.stop()
}

// upProcess is a process that runs a cluster, as "devcluster up" and "devcluster storm" do.
type upProcess struct {
	t     *testing.T
	tmp   string
	cmd   *exec.Cmd
	ended chan error
	mu    sync.Mutex
	out   bytes.Buffer
}

// startUp starts this test binary in another role, with arguments.
func startUp(t *testing.T, args ...string) *upProcess {
	t.Helper()
	u := &upProcess{t: t, tmp: t.TempDir(), cmd: exec.Command(os.Args[0], args...), ended: make(chan error, 1)}
	u.start()
	return u
}

// start starts the process, whose temporary files and output are its own.
func (u *upProcess) start() {
	u.t.Helper()
	u.cmd.Env = append(os.Environ(), "TMPDIR="+u.tmp)
	u.cmd.Stdout = writerFunc(func(p []byte) (int, error) { u.mu.Lock(); defer u.mu.Unlock(); return u.out.Write(p) })
	u.cmd.Stderr = u.cmd.Stdout
	if err := u.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() { u.ended <- u.cmd.Wait() }()
}

// output returns what the process has written so far.
func (u *upProcess) output() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.out.String()
}

// ready waits until the cluster serves.
func (u *upProcess) ready() {
	u.t.Helper()
	eventually(u.t, "the cluster to be up", func(context.Context) bool {
		select {
		case err := <-u.ended:
			u.t.Fatalf("ended before it was up: %v\n%s", err, u.output())
		default:
		}
		return strings.Contains(u.output(), "READY")
	})
}

// stop interrupts the process, and fails the test if files or processes are left.
func (u *upProcess) stop() {
	u.t.Helper()
	if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		u.t.Fatal(err)
	}
	if err := <-u.ended; err != nil {
		u.t.Fatalf("%v\n%s", err, u.output())
	}
	u.leavesNothing()
}

// leavesNothing fails the test if files or processes are left.
func (u *upProcess) leavesNothing() {
	u.t.Helper()
	left, err := filepath.Glob(filepath.Join(u.tmp, "*"))
	if err != nil || len(left) > 0 {
		u.t.Errorf("files are left behind: %v (%v)", left, err)
	}
	if ps, _ := exec.Command("pgrep", "-f", u.tmp).Output(); len(ps) > 0 {
		u.t.Errorf("processes are left behind: %s", ps)
	}
}

// up is the main function of an upProcess.
func up() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stdout})
	if err != nil {
		return err
	}
	fmt.Println("READY")
	<-ctx.Done()
	c.Stop()
	return nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// writeFile writes a file of a name into a folder of its own, and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// deadKubeconfig returns the path of a kubeconfig with an address where nobody listens.
func deadKubeconfig(t *testing.T) string {
	t.Helper()
	return writeFile(t, "kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
}

// TestBadStarts: what can't start says which flag or file is wrong, and what would be
// accepted. Berth starts without an API server (TestStartsBeforeTheAPIServer), a simulated provider
// doesn't.
func TestBadStarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if _, err := controlplane.Start(t.Context(), controlplane.Options{Port: port}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", port)) {
		t.Errorf("a port in use: %v", err)
	}
	dead := deadKubeconfig(t)
	withoutCertificates := writeFile(t, "kubeconfig", strings.Replace(logOf(t, dead), "server:", "certificate-authority: /does/not/exist, server:", 1))
	groups := filepath.Join("..", "..", "examples", "demo", "groups.yaml")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--kubeconfig", "/does/not/exist"}, "--kubeconfig: stat /does/not/exist: no such file or directory; set it to the path"},
		{[]string{"run", "--kubeconfig", withoutCertificates}, "unable to read certificate-authority /does/not/exist"},
		{[]string{"provider", "simulated", "--kubeconfig", dead, "--cloud-config", groups}, "the API server at https://127.0.0.1:1 is not reachable"},
		{[]string{"run", "--no-such-flag"}, "unknown flag: --no-such-flag"},
		{[]string{"run", "--config", "/does/not/exist"}, "reading the scheduler configuration"},
		{[]string{"run", "--kubeconfig", dead, "--cloud-provider", "simulated"}, "--cloud-provider and --cloud-config go together"},
		{[]string{"run", "--kubeconfig", dead, "--cloud-provider", "simulated", "--cloud-config", "/none.yaml"}, "reading node groups: open /none.yaml"},
		{[]string{"run", "--mode", "driver"}, `--mode is "driver"; it must be scheduler, autoscaler or unset`},
		{[]string{"run", "--mode", "autoscaler"}, "--mode=autoscaler needs a cloud provider; set --cloud-provider"},
		{[]string{"run", "--mode", "scheduler", "--cloud-provider", "simulated"}, "--mode=scheduler does not add or remove nodes"},
		{[]string{"run", "--expander", "magic"}, `--expander is "magic"; unknown expander "magic"; give one or more of random, most-pods,`},
		{[]string{"fly"}, `unknown command "fly"`},
	} {
		out, err := exec.Command(berth, c.args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("berth %s:\n got %s(%v)\nwant …%s…", strings.Join(c.args, " "), out, err, c.want)
		}
	}
}
