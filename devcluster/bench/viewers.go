package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file measures what viewers of Berth cost those who don't look: how long pods wait for their node, and
// what memory Berth has, with viewers and without.
//
//	start Berth ─▶ windows before any viewer ─▶ in turn: a window without viewers, one with them, one in
//	which some of them stall ─▶ and again, as often as there are rounds
//
// What must hold: pods come at the same rate in all windows, one that is bound is deleted, so that the cluster
// stays as it is, and a window ends when all of its pods are bound. Windows in turn spread a slow minute of the
// machine over all kinds.

// Viewing is such a measurement. Size.Pods are on the nodes throughout.
type Viewing struct {
	Size
	// Rate is how many pods come in a second, at most.
	Rate int
	// Window is how long pods come in a window, and Rounds how many windows of each kind there are.
	Window time.Duration
	Rounds int
	// Viewers look at the page. Stalled open a stream and read nothing.
	Viewers, Stalled int
	Berth            string        // path of the binary
	Limit            time.Duration // of all
	Progress         io.Writer
}

// ViewingKind is what was measured in the windows of one kind.
type ViewingKind struct {
	Name             string `json:"name"`
	Viewers, Stalled int    `json:"-"`
	// Pods is how many latencies there are: from when the API server is asked to create a pod until a watch
	// shows that it is bound.
	Pods int     `json:"pods"`
	P50  float64 `json:"p50Ms"`
	P99  float64 `json:"p99Ms"`
	Max  float64 `json:"maxMs"`
	// P99More is by how much p99 is above that of the same round's window without viewers: the median of the
	// rounds.
	P99More float64 `json:"p99MoreMs"`
	// Decided and DecidedMore are the same from when a watch shows a pod until Berth has decided on its node:
	// Berth's own share, without what API server and etcd take to write.
	Decided     float64 `json:"decidedP99Ms"`
	DecidedMore float64 `json:"decidedP99MoreMs"`
	// Memory is the mean resident set, and PeakMemory the largest, in bytes.
	Memory     int64 `json:"memoryBytes"`
	PeakMemory int64 `json:"peakMemoryBytes"`
	// CPU is how many processors Berth has used.
	CPU float64 `json:"cpus"`

	windows []window
}

// window is what was measured in one.
type window struct {
	latencies []time.Duration
	decided   []time.Duration // at least 0: of two watches either may be first
	memory    []int64         // samples of the resident set
	cpu, took time.Duration
}

// viewing is a measurement that is under way.
type viewing struct {
	*attempt
	o     Viewing
	bound chan boundPod
	came  sync.Map // time.Time at which a watch showed a pod of this name
	seq   uint64   // of the last decision that was read
	next  int      // number of the next pod
}

// boundPod is a pod that a watch has shown to be bound, and when.
type boundPod struct {
	name string
	at   time.Time
}

// Do runs the measurement on a control plane of its own.
func (o Viewing) Do(ctx context.Context) ([]ViewingKind, error) {
	if o.Nodes < 1 || o.Pods < 0 || o.Rate < 1 || o.Rounds < 1 || o.Viewers < 1 || o.Stalled < 0 || o.Window < time.Second {
		return nil, errors.New("--nodes, --rate, --rounds and --viewers must be at least 1, --pods and --stalled at least 0, --window at least 1s")
	}
	if _, err := exec.LookPath(o.Berth); err != nil {
		return nil, fmt.Errorf("--berth: %w; build it with make build", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("took longer than --limit %s", o.Limit))
	defer cancel()
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: o.Progress, NoControllers: true})
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	b := &bench{o: Options{Size: o.Size, Berth: o.Berth}, progress: newProgress(o.Progress), cluster: c, config: api.Config(c.Config)}
	if b.client, err = api.New(b.config); err != nil {
		return nil, err
	}
	if b.file, err = b.configuration(); err != nil {
		return nil, err
	}
	if err := b.createCluster(ctx); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, Case{before: []standing{{count: podsOf, shape: light}}}); err != nil {
		return nil, err
	}
	v := &viewing{attempt: &attempt{bench: b, name: Berth, died: make(chan error, 2)}, o: o, bound: make(chan boundPod, 1<<12)}
	defer v.stop()
	if err := watchBound(ctx, b.config, func(name string) { v.bound <- boundPod{name, time.Now()} }); err != nil {
		return nil, err
	}
	if err := watchPods(ctx, b.config, "spec.nodeName=", func(name string) { v.came.Store(name, time.Now()) }); err != nil {
		return nil, err
	}
	if err := v.start(); err != nil {
		return nil, err
	}
	return v.run(ctx)
}

// run measures all windows, the first of which doesn't count: Berth is still reading the cluster in it.
func (v *viewing) run(ctx context.Context) ([]ViewingKind, error) {
	kinds := []ViewingKind{{Name: "before any viewer"}, {Name: "no viewer"}, {Name: fmt.Sprintf("%d viewers", v.o.Viewers), Viewers: v.o.Viewers}}
	if v.o.Stalled > 0 {
		kinds = append(kinds, ViewingKind{Name: fmt.Sprintf("these, and %d that read nothing", v.o.Stalled), Viewers: v.o.Viewers, Stalled: v.o.Stalled})
	}
	if _, err := v.window(ctx, &ViewingKind{Name: "warming up"}); err != nil {
		return nil, err
	}
	if _, err := v.decided(ctx); err != nil {
		return nil, err
	}
	measure := func(kinds []ViewingKind) error {
		for i := range kinds {
			w, err := v.window(ctx, &kinds[i])
			if err == nil {
				w.decided, err = v.decided(ctx)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", kinds[i].Name, err)
			}
			kinds[i].windows = append(kinds[i].windows, w)
		}
		return nil
	}
	for range v.o.Rounds {
		if err := measure(kinds[:1]); err != nil {
			return nil, err
		}
	}
	for range v.o.Rounds {
		if err := measure(kinds[1:]); err != nil {
			return nil, err
		}
	}
	for i := range kinds {
		kinds[i].sum(kinds[1].windows)
	}
	v.show("")
	return kinds, nil
}

// window has pods come while the viewers of its kind look, and returns when all of them are bound.
func (v *viewing) window(ctx context.Context, k *ViewingKind) (w window, err error) {
	outer := ctx // of what goes on when the viewers have left
	ctx, cancel := context.WithCancel(ctx)
	work, ctx := errgroup.WithContext(ctx)
	defer func() {
		cancel()
		if failed := work.Wait(); failed != nil {
			err = failed // which has ended what err is of
		}
	}()
	leave, err := v.look(work, k)
	if err != nil {
		return w, err
	}
	defer leave()
	work.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-v.died:
			return cmp.Or(err, errors.New("Berth ended"))
		}
	})
	created := map[string]time.Time{}
	var mu sync.Mutex // of created
	began, cpu := time.Now(), v.usage().CPU
	work.Go(func() error {
		return paced(ctx, perSecond(v.o.Rate), int(v.o.Window.Seconds()*float64(v.o.Rate)), func(int) error {
			pod := plain(v.next)
			v.next++
			mu.Lock()
			created[pod.Name] = time.Now()
			mu.Unlock()
			_, err := v.client.CoreV1().Pods(measured).Create(ctx, pod, metav1.CreateOptions{})
			return wrapped("creating a pod", err)
		})
	})
	sample := time.NewTicker(250 * time.Millisecond)
	defer sample.Stop()
	for all := int(v.o.Window.Seconds() * float64(v.o.Rate)); len(w.latencies) < all; {
		select {
		case <-ctx.Done():
			return w, context.Cause(ctx)
		case p := <-v.bound:
			mu.Lock()
			w.latencies = append(w.latencies, p.at.Sub(created[p.name]))
			mu.Unlock()
			work.Go(func() error {
				return wrapped("deleting a pod", v.client.CoreV1().Pods(measured).Delete(outer, p.name, metav1.DeleteOptions{}))
			})
		case <-sample.C:
			w.memory = append(w.memory, v.processes[0].Usage().RSS)
			v.show("%s: %6d of %d bound", k.Name, len(w.latencies), all)
		}
	}
	w.cpu, w.took = v.usage().CPU-cpu, time.Since(began)
	return w, nil
}

// sum computes what is told of all windows, beside those without viewers.
func (k *ViewingKind) sum(without []window) {
	var all, more, decided, later []float64
	var took, cpu time.Duration
	var memory, samples int64
	for i, w := range k.windows {
		own := milliseconds(w.latencies)
		more = append(more, quantile(own, 0.99)-quantile(milliseconds(without[i].latencies), 0.99))
		all = append(all, own...)
		if own = milliseconds(w.decided); len(own) > 0 {
			later = append(later, quantile(own, 0.99)-quantile(milliseconds(without[i].decided), 0.99))
			decided = append(decided, own...)
		}
		for _, m := range w.memory {
			memory, samples, k.PeakMemory = memory+m, samples+1, max(k.PeakMemory, m)
		}
		took, cpu = took+w.took, cpu+w.cpu
	}
	slices.Sort(all)
	k.Pods, k.P50, k.P99, k.Max = len(all), quantile(all, 0.5), quantile(all, 0.99), quantile(all, 1)
	if slices.Sort(decided); len(decided) > 0 {
		k.Decided, k.DecidedMore = quantile(decided, 0.99), middle(later)
	}
	k.P99More, k.Memory, k.CPU = middle(more), memory/max(1, samples), cpu.Seconds()/took.Seconds()
}

// milliseconds returns times in order.
func milliseconds(of []time.Duration) []float64 {
	out := make([]float64, len(of))
	for i, d := range of {
		out[i] = float64(d) / 1e6
	}
	slices.Sort(out)
	return out
}

// quantile returns the least number that is no less than such a share of all, which are in order.
func quantile(all []float64, share float64) float64 {
	return all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
}

// PrintViewing writes what was measured as a table.
func PrintViewing(to io.Writer, kinds []ViewingKind) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tpods\tp50 ms\tp99 ms\tmax ms\tmore\tdecided p99 ms\tmore\tMiB\tpeak MiB\tCPUs\t")
	for _, k := range kinds {
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.1f\t%+.2f\t%.2f\t%+.2f\t%.1f\t%.1f\t%.2f\t\n", k.Name, k.Pods, k.P50, k.P99, k.Max, k.P99More, k.Decided, k.DecidedMore, mebibytes(k.Memory), mebibytes(k.PeakMemory), k.CPU)
	}
	return w.Flush()
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
