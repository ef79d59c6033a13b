package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file is a benchmark as a whole: its options, its result, and which contender runs
// which case in which order. What must hold: all contenders have one control plane, one
// configuration and the same state of the cluster at their start.

// Options of a benchmark. Size, Berth, Rounds, Limit and Progress are needed.
type Options struct {
	Size
	// MoreNodes gives cases whose nodes take fewer than Pods as many as take them all.
	MoreNodes bool
	Berth     string   // path of the binary
	Cases     []string // names; all when empty
	Rounds    int      // how often each contender runs a case
	// Schedulers to run; kube-scheduler and Berth when empty.
	Schedulers []string
	// Ceiling adds the bare loops of API calls to the contenders, in the first case and in those whose pods have
	// devices, take the place of others or come last.
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

// Result is what a benchmark found. As JSON it is what internal/test/gate reads: keys and units
// stay.
type Result struct {
	// CPUs are those of this machine, which all processes share.
	CPUs int `json:"cpus"`
	// Cases are in the order in which they ran, without those that had no complete run.
	Cases []CaseResult `json:"cases"`
}

// CaseResult are the runs of a case, in the order in which they were made.
type CaseResult struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Nodes and Pods are as the run had them: those of the options, or what the case makes of them.
	Nodes int   `json:"nodes"`
	Pods  int   `json:"pods"`
	Runs  []Run `json:"runs"`
}

// Run is one contender's run of a case. CPU times are milliseconds per measured
// pod, from the start of the contender until it has written its last event. Calls are per pod as well,
// by verb and resource; those of the benchmark itself are left out.
type Run struct {
	Contender string `json:"contender"`
	// Round counts from 0.
	Round       int     `json:"round"`
	PodsPerS    Rates   `json:"podsPerSecond"`
	FirstAfterS float64 `json:"firstAfterSeconds"` // from its start
	// AllAfterS is from the contender's start until the last bind.
	AllAfterS float64 `json:"allAfterSeconds"`
	// CPUMs is that of all the contender's processes: of kube-scheduler with an autoscaler, both.
	CPUMs       float64 `json:"cpuMsPerPod"`
	APIServerMs float64 `json:"apiServerCPUMsPerPod"`
	EtcdMs      float64 `json:"etcdCPUMsPerPod"`
	// PeakMemory is the largest resident set, of several processes their sum.
	PeakMemory int64 `json:"peakMemoryBytes"`
	// Attempts are by the scheduler's own metrics; 0 for the bare loops.
	Attempts     float64            `json:"attemptsPerPod,omitempty"`
	Calls        map[string]float64 `json:"apiCallsPerPod"`
	EventsAfterS float64            `json:"eventsAfterSeconds"` // from the last bind to the last event
}

// bench is a benchmark that is under way, on its own control plane.
type bench struct {
	o       Options
	cluster *controlplane.Cluster
	// client and config have no rate limit: what limits a run must be the contender.
	client kubernetes.Interface
	config *rest.Config
	file   string // the KubeSchedulerConfiguration of both schedulers
	// podGroups says that the control plane serves pod groups.
	podGroups bool
	*progress
}

// Do runs the benchmark on a control plane of its own. When it returns an error, the
// result has what was measured until then.
func Do(ctx context.Context, o Options) (*Result, error) {
	if len(o.Schedulers) == 0 {
		o.Schedulers = []string{KubeScheduler, Berth}
	}
	chosen, err := o.validate()
	if err != nil {
		return nil, err
	}
	groups := slices.ContainsFunc(chosen, Case.hasPodGroups)
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: o.Progress, NoControllers: true, PodGroups: groups})
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	b := &bench{o: o, progress: newProgress(o.Progress), cluster: c, config: api.Config(c.Config), podGroups: groups}
	if b.client, err = api.New(b.config); err != nil {
		return nil, err
	}
	if b.file, err = b.configuration(); err != nil {
		return nil, err
	}
	if err := b.createCluster(ctx); err != nil {
		return nil, err
	}
	out := &Result{CPUs: runtime.NumCPU()}
	for i, c := range chosen {
		if b.o.Size = o.Size; o.MoreNodes {
			b.o.Size = c.enough(o.Size)
		}
		contenders := slices.Clone(o.Schedulers)
		switch {
		case o.Ceiling && i == 0:
			contenders = append(contenders, BareBinds, BareBindEvents)
		case o.Ceiling && (c.devices > 0 || c.victims > 0 || c.comeLast): // its calls are others than those of the cases before
			contenders = append(contenders, BareBindEvents)
		}
		r, err := b.runCase(ctx, c, contenders)
		if len(r.Runs) > 0 {
			out.Cases = append(out.Cases, r)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// validate returns the cases that were asked for. An error names the flag, its value
// and what would be accepted.
func (o *Options) validate() ([]Case, error) {
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
	return chosen, nil
}

// runCase runs a case with each contender in turn, and that as many times as there are
// rounds. Taking turns spreads a slow minute of the machine over all contenders.
func (b *bench) runCase(ctx context.Context, c Case, contenders []string) (CaseResult, error) {
	r := CaseResult{Name: c.Name, About: c.About, Nodes: max(b.o.Nodes, c.nodeCount(b.o.Size)), Pods: c.size(b.o.Size)}
	for round := range b.o.Rounds {
		for _, name := range contenders {
			run, err := b.run(ctx, c, name, round)
			if err != nil {
				return r, fmt.Errorf("%s with %s: %w", c.Name, name, err)
			}
			r.Runs = append(r.Runs, *run)
		}
	}
	return r, nil
}

// Names returns the names of the cases.
func Names() (out []string) {
	for _, c := range Cases {
		out = append(out, c.Name)
	}
	return out
}

// configuration writes the file that both schedulers run with, and returns its path: the
// defaults, with limits of the client so high that they limit nothing.
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

// each calls f for 0 to n-1, several at a time, and shows how many calls are done.
func (b *bench) each(ctx context.Context, what string, n int, f func(ctx context.Context, i int) error) error {
	var mu sync.Mutex
	done, lastShown := 0, time.Now()
	err := api.Each(ctx, n, func(ctx context.Context, i int) error {
		if err := f(ctx, i); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		if time.Since(lastShown) > time.Second {
			lastShown = time.Now()
			b.show("creating %s: %d of %d", what, done, n)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("creating %s: %w", what, err)
	}
	return nil
}
