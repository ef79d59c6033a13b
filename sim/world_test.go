package sim_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

const head = "apiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: test}\nspec:\n"

// play runs a scenario whose spec is given, with every check on.
func play(t *testing.T, spec string) (*scenario.Summary, []string) {
	t.Helper()
	run, err := scenario.Parse("test.yaml", []byte(head+spec))
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	w, err := sim.New(run, sim.Options{Check: true, Hooks: []drive.Hook{drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for i := range r.Decisions {
			log = append(log, fmt.Sprintf("%s %s", now.Sub(sim.Epoch).Round(time.Second), r.Decisions[i].String()))
		}
	})}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := w.Stats().Violations; len(v) > 0 {
		t.Errorf("violations: %v", v)
	}
	return s, log
}

const nodes = `  nodes: [{name: n, count: 2, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
`

const container = `template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}`

func TestJobRunsToItsEnd(t *testing.T) {
	s, _ := play(t, nodes+`  workload: [{name: j, kind: Job, count: 12, parallelism: 3, runFor: {min: 60s, max: 60s}, `+container+`}]
`)
	if s.Pods.Completed != 12 || s.Pods.Running != 0 || s.Pods.Total != 12 {
		t.Errorf("%+v", s.Pods)
	}
	// Four rounds of a minute each, three pods at a time.
	if s.VirtualSeconds < 240 || s.VirtualSeconds > 270 {
		t.Errorf("12 pods, 3 at a time, took %.0f s", s.VirtualSeconds)
	}
}

// TestPodsThatNeverComeAreCounted ends a run before most of its workload comes.
func TestPodsThatNeverComeAreCounted(t *testing.T) {
	const late = nodes + `  workload:
  - {name: early, count: 2, runFor: {min: 60s, max: 60s}, ` + container + `}
  - {name: late, count: 3, arrive: {after: 50h}, ` + container + `}
  - {name: job, kind: Job, count: 4, parallelism: 2, arrive: {after: 60h}, ` + container + `}
  - {name: set, kind: ReplicaSet, copies: 2, count: 5, arrive: {after: 40h, over: 20h}, ` + container + `}
  - {name: agent, kind: DaemonSet, arrive: {after: 70h}, ` + container + `}
`
	for end, want := range map[string]int{"": 3 + 4 + 5 + 1, "  end: {at: 39h}\n": 3 + 4 + 10 + 1, "  end: {at: 80h}\n": 0} {
		run, err := scenario.Parse("test.yaml", []byte(head+late+end))
		if err != nil {
			t.Fatal(err)
		}
		w, err := sim.New(run, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Pods.ToCome != want {
			t.Errorf("the end is %q: %d pods are still to come, want %d", end, s.Pods.ToCome, want)
		}
	}
}

func TestStatefulSetComesInOrderAndKeepsNames(t *testing.T) {
	s, log := play(t, nodes+`  workload: [{name: db, kind: StatefulSet, count: 3, `+container+`}]
  faults: [{kind: DeletePod, at: [2m, 3m]}]
`)
	var placed []string
	for _, l := range log {
		if _, pod, ok := strings.Cut(l, "Placed pod default/"); ok {
			placed = append(placed, strings.Fields(pod)[0])
		}
	}
	if len(placed) != 5 || !slices.Equal(placed[:3], []string{"db-0", "db-1", "db-2"}) {
		t.Errorf("placed %v; want db-0, db-1, db-2 and two of them again", placed)
	}
	for _, p := range placed[3:] {
		if !slices.Contains(placed[:3], p) {
			t.Errorf("%s is no name of the set", p)
		}
	}
	if s.Pods.Running != 3 {
		t.Errorf("%d pods run", s.Pods.Running)
	}
}

func TestDaemonSetFollowsTheNodes(t *testing.T) {
	s, log := play(t, `  nodeGroups: [{name: g, max: 5, launchDelay: {min: 10s, max: 10s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  workload:
  - {name: agent, kind: DaemonSet, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
  - {name: w, kind: Job, count: 3, runFor: {min: 5m, max: 5m}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 3500m}}}]}}}
`)
	if s.Nodes.Peak != 3 || s.Pods.Completed != 3 {
		t.Errorf("%d nodes at the peak, %d pods completed", s.Nodes.Peak, s.Pods.Completed)
	}
	agents := 0
	for _, l := range log {
		if strings.Contains(l, "Placed pod default/agent-") {
			agents++
		}
	}
	if agents != 3 || s.Nodes.Final != 0 {
		t.Errorf("%d daemon pods for 3 nodes, %d nodes left", agents, s.Nodes.Final)
	}
}

func TestBudgetsHoldEvictions(t *testing.T) {
	spec := nodes + `  workload: [{name: w, kind: ReplicaSet, count: 4, maxUnavailable: %d, ` + container + `}]
  faults: [{kind: EvictPod, at: [1m, 2m, 3m]}]
`
	if s, _ := play(t, fmt.Sprintf(spec, 0)); s.Pods.Evicted != 0 || s.Pods.Total != 4 {
		t.Errorf("with nothing to spare: %+v", s.Pods)
	}
	if s, _ := play(t, fmt.Sprintf(spec, 1)); s.Pods.Evicted != 3 || s.Pods.Total != 7 || s.Pods.Running != 4 {
		t.Errorf("with one to spare: %+v", s.Pods)
	}
}

func TestImagesArePulledOncePerNodeAndShareTheStorage(t *testing.T) {
	spec := nodes + `  images: [{name: big, layers: [{bytes: 1G}]}]
  storage: {sharedRate: %s}
  workload: [{name: w, count: 8, runFor: {min: 1m, max: 1m}, template: {spec: {containers: [{name: c, image: big, resources: {requests: {cpu: "1"}}}]}}}]
`
	// Two nodes write 1 GB each through 100 MB/s: 20 s, and no pod waits longer.
	s, _ := play(t, fmt.Sprintf(spec, "100M"))
	if s.TimeToRunning.Max < 20 || s.TimeToRunning.Max > 25 || s.PeakWriteRate != 100e6 {
		t.Errorf("started after %.1f s at %.0f bytes/s", s.TimeToRunning.Max, s.PeakWriteRate)
	}
	if s, _ := play(t, fmt.Sprintf(spec, "1000M")); s.TimeToRunning.Max > 7 {
		t.Errorf("with ten times the rate: started after %.1f s", s.TimeToRunning.Max)
	}
}

// TestRegistryLimitsEachConnection pulls 1 GB to each of two nodes. A pull has a share of
// the registry for each of its streams, whatever others pull.
func TestRegistryLimitsEachConnection(t *testing.T) {
	for _, x := range []struct {
		streams  string
		min, max float64 // seconds
		rate     float64 // of both together
	}{
		{"0", 50, 55, 40e6}, // 1 when it isn't given
		{"2", 25, 30, 80e6},
		{"50", 1, 7, 1800e6}, // the storage is slower: 900 MB/s for each
	} {
		s, _ := play(t, nodes+fmt.Sprintf(`  images: [{name: big, layers: [{bytes: 1G}]}]
  storage: {sharedRate: 1800M, pullStreams: %s}
  registry: {connectionRate: 20M}
  workload: [{name: w, count: 2, runFor: {min: 1m, max: 1m}, template: {spec: {containers: [{name: c, image: big, resources: {requests: {cpu: "3"}}}]}}}]
`, x.streams))
		if s.TimeToRunning.Max < x.min || s.TimeToRunning.Max > x.max || s.PeakWriteRate != x.rate {
			t.Errorf("%s streams: started after %.1f s at %.0f bytes/s; want %.0f to %.0f s at %.0f", x.streams, s.TimeToRunning.Max, s.PeakWriteRate, x.min, x.max, x.rate)
		}
	}
}

func TestMachinesThatNeverRegisterAreRemoved(t *testing.T) {
	s, log := play(t, `  nodeGroups: [{name: g, max: 5, launchDelay: {min: 10s, max: 10s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  workload: [{name: w, count: 4, runFor: {min: 1m, max: 1m}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}}]
  faults: [{kind: NeverRegisters, rate: 1, until: 5m}]
  policy: {flags: [--max-node-provision-time=3m]}
`)
	if s.Pods.Completed != 4 || s.Nodes.FailedLaunches != 4 || s.Nodes.Launched != 4 || s.Decisions["InstanceRemoved"] != 4 {
		t.Errorf("%+v %+v\n%s", s.Pods, s.Nodes, strings.Join(log, "\n"))
	}
}

func TestLaunchesAreCapped(t *testing.T) {
	run, err := scenario.Parse("test.yaml", []byte(head+`  nodeGroups:
  - {name: a, max: 50, launchDelay: {min: 20s, max: 40s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  - {name: b, max: 50, launchDelay: {min: 20s, max: 40s}, template: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}}}
  workload:
  - {name: w, count: 40, runFor: {min: 10m, max: 10m}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}}
  - {name: x, count: 20, runFor: {min: 10m, max: 10m}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "7"}}}]}}}
  policy: {flags: [--max-nodes-launching=7]}
`))
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	var w *sim.World
	w, err = sim.New(run, sim.Options{Check: true, Hooks: []drive.Hook{drive.HookFunc(func(time.Time, time.Duration, []step.Input, *step.Ready) {
		if w != nil {
			most = max(most, w.Stats().Launching+w.Stats().Starting)
		}
	})}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range w.Stats().Samples {
		most = max(most, x.Launching+x.Starting)
	}
	if most != 7 || s.Pods.Completed != 60 {
		t.Errorf("%d nodes were launching at a time, %d pods completed", most, s.Pods.Completed)
	}
}

// TestDigestIsTheSameEverywhere plays one world with one and with many
// threads.
func TestDigestIsTheSameEverywhere(t *testing.T) {
	spec := `  seed: 5
  nodeGroups: [{name: g, max: 20, launchDelay: {min: 10s, max: 60s}, failureRate: 0.2, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  workload: [{name: w, kind: Job, copies: 6, count: 10, arrive: {over: 5m, pattern: poisson}, runFor: {min: 1m, max: 9m}, ` + container + `}]
  faults: [{kind: CrashBerth, at: [3m]}, {kind: SpotReclaim, perHour: 60, until: 20m}]
`
	digests := map[string]bool{}
	for _, n := range []int{1, 2, 8} {
		old := runtime.GOMAXPROCS(n)
		s, _ := play(t, spec)
		runtime.GOMAXPROCS(old)
		digests[s.Digest] = true
		if s.Pods.Completed < 50 {
			t.Errorf("only %d pods completed", s.Pods.Completed)
		}
	}
	if len(digests) != 1 {
		t.Errorf("digests differ: %v", digests)
	}
}

// TestTrace plays the production trace.
func TestTrace(t *testing.T) {
	dir := testkit.OpenbTrace(t, "..")
	run, err := scenario.Parse("test.yaml", []byte(head+"  traces: [{format: openb, path: "+dir+", speed: 100}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(run, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Pods.Total != 8152 || s.Pods.Bound != 8152 || s.Pods.Completed != 8151 || s.Nodes.Peak != 1523 {
		t.Errorf("%+v on %d nodes; want all of 8,152 pods bound and all but one, which has no end, completed", s.Pods, s.Nodes.Peak)
	}
}

// TestNightBatch holds the three scenarios of examples/night-batch to the
// published case (see its README).
func TestNightBatch(t *testing.T) {
	got := map[string]*scenario.Summary{}
	for _, name := range []string{"capped", "baked", "unlimited"} {
		runs, err := scenario.Load([]string{"../examples/night-batch/" + name + ".yaml"})
		if err != nil {
			t.Fatal(err)
		}
		w, err := sim.New(runs[0], sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got[name], err = w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, why := range got[name].Check(runs[0].Spec.Expect) {
			t.Errorf("%s: %s", name, why)
		}
	}
	const published = 22 * 60
	if s := got["capped"].TimeToRunning.Max; s < published*0.85 || s > published*1.15 {
		t.Errorf("at most 70 launching: all run after %.0f s, published are 22 minutes", s)
	}
	if s := got["capped"].PeakWriteRate; s < 13e9 || s > 14.1e9 {
		t.Errorf("at most 70 launching: the peak is %.1f GB/s, published are 14", s/1e9)
	}
	if s := got["baked"].TimeToRunning.Max; s >= 300 {
		t.Errorf("baked: all run after %.0f s, published is under 5 minutes", s)
	}
	if s := got["baked"].PeakWriteRate; s < 5.5e9 || s > 6.5e9 {
		t.Errorf("baked: the peak is %.1f GB/s, published are 6", s/1e9)
	}
	// Bought, timed out and removed, bought again, and the same again.
	if s := got["unlimited"]; s.Nodes.FailedLaunches < 300 || s.Decisions["ScaledUp"] < 3 || s.TimeToRunning.Max < 2*published {
		t.Errorf("unlimited: %d launches failed in %d orders, all run after %.0f s", s.Nodes.FailedLaunches, s.Decisions["ScaledUp"], s.TimeToRunning.Max)
	}
}

// A StatefulSet's pods get the claims of its templates; volumes are made where
// Berth puts the pods, and hold the pods there.
func TestStatefulSetGetsItsVolumes(t *testing.T) {
	run, err := scenario.Parse("test.yaml", []byte(head+`  nodes:
  - {name: a, count: 1, template: {labels: {topology.kubernetes.io/zone: a}, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  - {name: b, count: 1, template: {labels: {topology.kubernetes.io/zone: b}, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  objects:
  - {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: csi.example, volumeBindingMode: WaitForFirstConsumer}
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      replicas: 3
      selector: {matchLabels: {app: db}}
      template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
      volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]bool{}
	waited := 0
	w, err := sim.New(run, sim.Options{Check: true, Hooks: []drive.Hook{drive.HookFunc(func(_ time.Time, _ time.Duration, in []step.Input, r *step.Ready) {
		for _, x := range in {
			if o, ok := x.(step.ObjectSet); ok {
				if c, ok := o.Object.(*v1.PersistentVolumeClaim); ok && c.Status.Phase == v1.ClaimBound {
					claims[c.Name] = true
				}
			}
		}
		for _, b := range r.Binds {
			waited += len(b.Claims)
		}
	})}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := w.Stats().Violations; s.Pods.Running != 3 || len(claims) != 3 || waited != 3 || len(v) > 0 {
		t.Errorf("%d pods run, claims bound %v, %d were waited for, violations %v", s.Pods.Running, claims, waited, v)
	}
}
