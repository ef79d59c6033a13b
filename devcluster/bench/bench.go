package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/tools/checker"
)

// Options of a benchmark.
type Options struct {
	Size
	Berth  string   // path of the binary
	Cases  []string // names; all when empty
	Rounds int      // how often each contender runs a case
	// Schedulers to run; kube-scheduler and Berth when empty.
	Schedulers []string
	// Ceiling adds the bare loops of API calls to the contenders.
	Ceiling  bool
	Limit    time.Duration // of one run
	Progress io.Writer
}

// Names of the contenders.
const (
	KubeScheduler  = "kube-scheduler"
	Berth          = "berth"
	BareBinds      = "bind loop"
	BareBindEvents = "bind+event loop"
)

// Result is what a benchmark found.
type Result struct {
	CPUs  int          `json:"cpus"`
	Nodes int          `json:"nodes"`
	Cases []CaseResult `json:"cases"`
}

// CaseResult are the runs of a case.
type CaseResult struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Pods  int    `json:"pods"`
	Runs  []Run  `json:"runs"`
}

// Run is one contender's run of a case. CPU times are milliseconds per measured
// pod, from the start of the contender until it has written its last event.
type Run struct {
	Contender    string             `json:"contender"`
	Round        int                `json:"round"`
	PodsPerS     Rates              `json:"podsPerSecond"`
	FirstAfterS  float64            `json:"firstAfterSeconds"` // from its start
	AllAfterS    float64            `json:"allAfterSeconds"`
	CPUMs        float64            `json:"cpuMsPerPod"`
	APIServerMs  float64            `json:"apiServerCPUMsPerPod"`
	EtcdMs       float64            `json:"etcdCPUMsPerPod"`
	PeakMemory   int64              `json:"peakMemoryBytes"`
	Attempts     float64            `json:"attemptsPerPod,omitempty"`
	Calls        map[string]float64 `json:"apiCallsPerPod"`
	EventsAfterS float64            `json:"eventsAfterSeconds"` // from the last bind to the last event
}

type bench struct {
	o       Options
	cluster *controlplane.Cluster
	client  kubernetes.Interface
	config  *rest.Config
	file    string // the KubeSchedulerConfiguration of both schedulers
	width   int    // of the progress line
}

// Do runs the benchmark on a control plane of its own. What it returns with an
// error is what was measured until then.
func Do(ctx context.Context, o Options) (*Result, error) {
	chosen := Cases
	if len(o.Cases) > 0 {
		chosen = nil
		for _, name := range o.Cases {
			i := slices.IndexFunc(Cases, func(c Case) bool { return c.Name == name })
			if i < 0 {
				return nil, fmt.Errorf("--case %q is unknown; there are %s", name, strings.Join(Names(), ", "))
			}
			chosen = append(chosen, Cases[i])
		}
	}
	if len(o.Schedulers) == 0 {
		o.Schedulers = []string{KubeScheduler, Berth}
	}
	for _, name := range o.Schedulers {
		if name != KubeScheduler && name != Berth {
			return nil, fmt.Errorf("--scheduler %q is unknown; there are %s and %s", name, KubeScheduler, Berth)
		}
	}
	if o.Nodes < 1 || o.Pods < 1 || o.Rounds < 1 {
		return nil, errors.New("--nodes, --pods and --rounds must be at least 1")
	}
	if _, err := exec.LookPath(o.Berth); err != nil {
		return nil, fmt.Errorf("--berth: %w; build it with make build", err)
	}
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: o.Progress, NoControllers: true})
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	b := &bench{o: o, cluster: c, config: api.Config(c.Config)}
	if b.client, err = api.New(b.config); err != nil {
		return nil, err
	}
	if b.file, err = b.configuration(); err != nil {
		return nil, err
	}
	if err := b.grounds(ctx); err != nil {
		return nil, err
	}
	out := &Result{CPUs: runtime.NumCPU(), Nodes: o.Nodes}
	for i, c := range chosen {
		contenders := slices.Clone(o.Schedulers)
		if o.Ceiling && i == 0 {
			contenders = append(contenders, BareBinds, BareBindEvents)
		}
		r := CaseResult{Name: c.Name, About: c.About, Pods: c.size(o.Size)}
		for round := range o.Rounds {
			for _, name := range contenders {
				run, err := b.run(ctx, c, name, round)
				if err != nil {
					if r.Runs != nil {
						out.Cases = append(out.Cases, r)
					}
					return out, fmt.Errorf("%s with %s: %w", c.Name, name, err)
				}
				r.Runs = append(r.Runs, *run)
			}
		}
		out.Cases = append(out.Cases, r)
	}
	return out, nil
}

// Names are those of the cases.
func Names() (out []string) {
	for _, c := range Cases {
		out = append(out, c.Name)
	}
	return out
}

// configuration writes the file that both schedulers run with: the defaults,
// with the client's limits off.
func (b *bench) configuration() (string, error) {
	path := filepath.Join(b.cluster.Dir(), "scheduler.yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
  qps: 5000
  burst: 5000
leaderElection:
  leaderElect: false
`, b.cluster.Kubeconfig)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// start starts a contender. The port is that of its metrics, 0 for none.
func (b *bench) start(name string) (p *controlplane.Process, port int, err error) {
	switch name {
	case BareBinds, BareBindEvents:
		p, err := b.cluster.StartComponent("bindloop", "--kubeconfig", b.cluster.Kubeconfig, "--namespace", measured,
			"--events="+strconv.FormatBool(name == BareBindEvents))
		return p, 0, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, fmt.Errorf("finding a free port: %w", err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	flags := []string{"--config", b.file, "--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port),
		"--authentication-kubeconfig", b.cluster.Kubeconfig, "--authorization-kubeconfig", b.cluster.Kubeconfig,
		"--authorization-always-allow-paths", "/metrics"}
	if name == KubeScheduler {
		p, err = b.cluster.StartComponent("kube-scheduler", flags...)
		return p, port, err
	}
	p, err = controlplane.StartProcess("berth", filepath.Join(b.cluster.Dir(), "berth.log"), b.o.Berth, append([]string{"run"}, flags...)...)
	return p, port, err
}

// settle is how long events have to have stopped until the last is taken to be
// written.
const settle = 2 * time.Second

// run has a contender place the pods of a case.
func (b *bench) run(ctx context.Context, c Case, name string, round int) (*Run, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limit, fmt.Errorf("took longer than --limit %s", b.o.Limit))
	defer cancel()
	what := fmt.Sprintf("%s, round %d of %d, %s", c.Name, round+1, b.o.Rounds, name)
	b.say("%s: clearing", what)
	if err := b.reset(ctx); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, c); err != nil {
		return nil, err
	}
	n := c.size(b.o.Size)
	if err := b.each(ctx, what+": pods", n, func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().Pods(measured).Create(ctx, c.shape(i), metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	count, err := startCounter(ctx, b.config)
	if err != nil {
		return nil, err
	}
	server, etcd := b.cluster.Process("kube-apiserver"), b.cluster.Process("etcd")
	callsBefore, err := b.calls(ctx)
	if err != nil {
		return nil, err
	}
	serverBefore, etcdBefore := server.Usage(), etcd.Usage()
	begin := time.Now()
	p, port, err := b.start(name)
	if err != nil {
		return nil, err
	}
	defer p.Stop(10 * time.Second)
	died := make(chan error, 1)
	go func() { died <- p.Wait() }()
	var churn sync.WaitGroup
	churning, stopChurn := context.WithCancel(ctx)
	defer func() { stopChurn(); churn.Wait() }()
	failed := make(chan error, 1)
	if c.churn > 0 && port != 0 {
		churn.Go(func() { failed <- b.churn(churning, c.churn) })
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	wait := func() error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-died:
			return cmp.Or(err, errors.New("it ended"))
		case err := <-b.cluster.Failed():
			return err
		case err := <-failed:
			return err
		case <-tick.C:
			return nil
		}
	}
	for last := 0; count.count() < n; {
		if err := wait(); err != nil {
			return nil, fmt.Errorf("%d of %d pods bound: %w", count.count(), n, err)
		}
		now := count.count()
		b.say("%s: %6d of %d bound, %5d pods/s", what, now, n, now-last)
		last = now
	}
	stopChurn()
	bound := count.times()
	callsAfter, ended, err := b.settled(ctx, what, wait)
	if err != nil {
		return nil, err
	}
	usage := p.Usage()
	per := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(n) }
	first, last := bound[0], bound[len(bound)-1]
	if c.standing != nil {
		first = begin
	}
	out := &Run{
		Contender: name, Round: round, PodsPerS: rates(first, bound), FirstAfterS: bound[0].Sub(begin).Seconds(), AllAfterS: last.Sub(begin).Seconds(),
		CPUMs: per(usage.CPU), APIServerMs: per(server.Usage().CPU - serverBefore.CPU), EtcdMs: per(etcd.Usage().CPU - etcdBefore.CPU),
		PeakMemory: usage.PeakRSS, Calls: callsAfter.since(callsBefore), EventsAfterS: max(0, ended.Sub(last).Seconds()),
	}
	for k := range out.Calls {
		out.Calls[k] /= float64(n)
	}
	if port != 0 {
		tries, err := attempts(ctx, port)
		if err != nil {
			return nil, err
		}
		out.Attempts = tries / float64(n)
		if err := b.check(ctx, n); err != nil {
			return nil, err
		}
	}
	b.say("")
	fmt.Fprintf(b.o.Progress, "%s: %d pods in %.1f s, %.0f pods/s, %.2f ms of CPU a pod\n", what, n, out.AllAfterS, out.PodsPerS.Mean, out.CPUMs)
	return out, nil
}

// settled waits until the contender writes nothing more, and returns the calls
// made until then and when the last was seen.
func (b *bench) settled(ctx context.Context, what string, wait func() error) (calls, time.Time, error) {
	now, err := b.calls(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	for at := time.Now(); ; {
		if time.Since(at) >= settle {
			return now, at, nil
		}
		b.say("%s: all bound, waiting for events", what)
		if err := wait(); err != nil {
			return nil, time.Time{}, fmt.Errorf("waiting for events: %w", err)
		}
		next, err := b.calls(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		if next.ended() != now.ended() {
			at = time.Now()
		}
		now = next
	}
}

// check verifies every placement.
func (b *bench) check(ctx context.Context, n int) error {
	pods, err := api.Pods(ctx, b.client, metav1.NamespaceAll, "spec.nodeName!=")
	if err != nil {
		return err
	}
	nodes, err := api.Nodes(ctx, b.client)
	if err != nil {
		return err
	}
	placed := 0
	for _, p := range pods {
		if p.Namespace == measured {
			placed++
		}
	}
	if placed != n {
		return fmt.Errorf("expected %d pods to be bound, found %d", n, placed)
	}
	if found := checker.Check(nodes, pods, nil); len(found) > 0 {
		return fmt.Errorf("%d placements break a rule; the first: %s", len(found), found[0])
	}
	return nil
}

// each calls f for 0 to n-1, several at a time, and tells how far it is.
func (b *bench) each(ctx context.Context, what string, n int, f func(ctx context.Context, i int) error) error {
	var mu sync.Mutex
	done, told := 0, time.Now()
	err := api.Each(ctx, n, func(ctx context.Context, i int) error {
		if err := f(ctx, i); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		if time.Since(told) > time.Second {
			told = time.Now()
			b.say("creating %s: %d of %d", what, done, n)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("creating %s: %w", what, err)
	}
	return nil
}

// say replaces the progress line.
func (b *bench) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(b.o.Progress, "\r%-*s", b.width, text)
	b.width = len(text)
	if text == "" {
		fmt.Fprint(b.o.Progress, "\r")
	}
}
