package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/devcluster/bench"
)

// TestBench runs cases of the benchmark at a small size. Whatever the speeds are, each
// contender runs and makes the API calls per pod that the case needs, Berth not one more.
func TestBench(t *testing.T) {
	o := bench.Options{Size: bench.Size{Nodes: 30, Pods: 60}, Berth: berth, Rounds: 1, Ceiling: true, Limit: 5 * time.Minute,
		Cases: []string{"basic", "preemption", "unschedulable", "mixed", "burst", "gangs-3", "gangs-rack", "gang-preemption", "gang-preemption-gangs", "gang-preemption-affinity",
			"gang-starvation", "groups-starvation"}, Progress: io.Discard}
	r, err := bench.Do(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]float64{ // API calls per pod
		"basic":                    {"POST pods/binding": 1, "POST events": 1},
		"preemption":               {"POST pods/binding": 1, "DELETE pods": 3},
		"gangs-3":                  {"POST pods/binding": 1, "POST events": 1, "PATCH podgroups/status": 1.0 / 3},
		"gang-preemption":          {"POST pods/binding": 1, "DELETE pods": 10},
		"gang-preemption-gangs":    {"POST pods/binding": 1, "DELETE pods": 5},
		"gang-preemption-affinity": {"POST pods/binding": 1, "DELETE pods": 10},
	}
	// Cases with a bare loop beside them, since its calls are others than those of the first case.
	withLoop := []string{"preemption", "gang-preemption", "gang-preemption-gangs", "gang-preemption-affinity", "gang-starvation", "groups-starvation"}
	// Attempts of Berth per pod: a preemptor has one before its victims leave, and one after.
	most := map[string]float64{"basic": 1, "mixed": 1, "preemption": 2, "gangs-3": 1}
	for i, c := range r.Cases {
		contenders := 2
		switch {
		case i == 0:
			contenders = 4
		case slices.Contains(withLoop, c.Name):
			contenders = 3
		}
		if c.Name != o.Cases[i] || len(c.Runs) != contenders {
			t.Errorf("case %d is %s with %d runs, want %s with %d", i, c.Name, len(c.Runs), o.Cases[i], contenders)
		}
		for _, run := range c.Runs {
			scheduler := run.Contender == bench.Berth || run.Contender == bench.KubeScheduler
			if run.PodsPerS.Mean <= 0 || run.CPUMs <= 0 || run.PeakMemory < 10<<20 || scheduler && run.Attempts < 0.99 {
				t.Errorf("%s: %+v", c.Name, run)
			}
			if n, bounded := most[c.Name]; bounded && run.Contender == bench.Berth && run.Attempts > n+0.05 {
				t.Errorf("%s: Berth tries %.2f times per pod, want %.0f at most", c.Name, run.Attempts, n)
			}
			for call, n := range want[c.Name] {
				got := run.Calls[call]
				// Berth calls exactly as often as needed. kube-scheduler may choose victims a second
				// time, when a preemptor comes back before its victims are gone, and so call more often.
				tooMany := run.Contender == bench.Berth && got > n+0.05
				if scheduler && (got < n-0.05 || tooMany) {
					t.Errorf("%s: %s makes %.2f calls %s per pod, want %.0f", c.Name, run.Contender, got, call, n)
				}
			}
		}
		if _, _, ok := c.Ratios(); !ok {
			t.Errorf("%s: no ratios", c.Name)
		}
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"basic: 30 nodes, 60 pods", "preemption: 30 nodes, 30 pods", "of the bind loop", "times the pods per second, with 1/"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}

// TestBenchStops: an interrupted benchmark leaves no file, and one with options that can't
// be used names the option.
func TestBenchStops(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(12*time.Second, cancel) // while it creates nodes or pods
	defer stop.Stop()
	_, err := bench.Do(ctx, bench.Options{Size: bench.Size{Nodes: 2000, Pods: 20000}, Berth: berth, Rounds: 1, Limit: time.Minute, Progress: io.Discard})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left behind: %v (%v)", left, err)
	}
	for want, o := range map[string]bench.Options{
		`--case "fast" is unknown; there are basic, `:     {Berth: berth, Cases: []string{"fast"}},
		`--scheduler "volcano" is unknown`:                {Berth: berth, Size: bench.Size{Nodes: 1, Pods: 1}, Rounds: 1, Schedulers: []string{"volcano"}},
		"--nodes, --pods and --rounds must be at least 1": {Berth: berth},
		"build it with make build":                        {Berth: filepath.Join(tmp, "none"), Size: bench.Size{Nodes: 1, Pods: 1}, Rounds: 1},
	} {
		if _, err := bench.Do(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
}

// TestWhatViewersCost measures with few nodes for a short time: all pods are bound whoever looks, and the viewers are
// answered.
func TestWhatViewersCost(t *testing.T) {
	v := bench.Viewing{Size: bench.Size{Nodes: 30, Pods: 60}, Rate: 20, Window: 2 * time.Second, Rounds: 1, Viewers: 2, Stalled: 1, Berth: berth, Limit: 5 * time.Minute, Progress: io.Discard}
	kinds, err := v.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(kinds) != 4 {
		t.Fatalf("%d kinds", len(kinds))
	}
	for _, k := range kinds {
		if k.Pods != 40 || k.P50 <= 0 || k.P99 < k.P50 || k.Max < k.P99 || k.Memory < 10<<20 || k.PeakMemory < k.Memory {
			t.Errorf("%+v", k)
		}
	}
	v.Viewers = 0
	if _, err := v.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "--viewers") {
		t.Errorf("no viewer: %v", err)
	}
}
