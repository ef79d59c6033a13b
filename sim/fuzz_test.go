package sim_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// This file lets the input of a simulation be anything: it is refused with an error, or it can
// be played.

// large is a text that makes many objects, or names a file that isn't one.
var large = regexp.MustCompile(`(count|copies|initial|max|replicas|completions|parallelism|limit)["']?\s*:\s*["']?([0-9]{4,}|[0-9]+[eExXoO_])|/dev|/proc`)

// small reports whether a run is short enough to be played in a fuzz target.
func small(r *scenario.Run) bool {
	pods := 0
	for i := range r.Arrivals {
		pods += min(100, r.Arrivals[i].Pods())
	}
	nodes := 0
	for i := range r.Spec.Nodes {
		nodes += min(100, r.Spec.Nodes[i].Count)
	}
	for i := range r.Spec.NodeGroups {
		nodes += min(100, r.Spec.NodeGroups[i].Initial)
	}
	there := scenario.Arrival{Objects: r.Objects}
	return pods+there.Pods() < 30 && nodes < 30 && len(r.Objects) < 30
}

// playBriefly plays the first minutes of a run, with its invariants checked after every Step.
func playBriefly(t *testing.T, r *scenario.Run) {
	if !small(r) {
		return
	}
	r.Spec.End.At.Duration = 20 * time.Minute
	r.Spec.End.Quiet.Duration = time.Minute
	w, err := sim.New(r, sim.Options{Check: true})
	if err != nil {
		return // said to whoever gave it
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	if _, err := w.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Logf("it ends with %v", err)
	}
}

// longAmounts would take seconds to years to be read, or to be counted with.
var longAmounts = []string{"4e999999999", "-4e999999999", "1e-999999999", "0e999999999", "9223372036854775808e99999999"}

// dumpWith has an amount in each kind of object that has one.
func dumpWith(amount string) string {
	return strings.ReplaceAll(`kind: List
apiVersion: v1
items:
- {kind: Node, apiVersion: v1, metadata: {name: node}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}
- {kind: Node, apiVersion: v1, metadata: {name: odd}, status: {allocatable: {cpu: "X", memory: "X", pods: 110}, capacity: {cpu: "X"}}}
- {kind: StorageClass, apiVersion: storage.k8s.io/v1, metadata: {name: s}, provisioner: d, volumeBindingMode: WaitForFirstConsumer}
- {kind: CSIStorageCapacity, apiVersion: storage.k8s.io/v1, metadata: {name: s}, storageClassName: s, capacity: "X", maximumVolumeSize: "X", nodeTopology: {}}
- {kind: PersistentVolume, apiVersion: v1, metadata: {name: v}, spec: {storageClassName: s, capacity: {storage: "X"}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}}
- {kind: PersistentVolumeClaim, apiVersion: v1, metadata: {name: c}, spec: {storageClassName: s, accessModes: [ReadWriteOnce], resources: {requests: {storage: "X"}}}}
- {kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: "X"}}}, {name: d, resources: {requests: {cpu: 3}}}], overhead: {cpu: "X"}, volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}
- {kind: ReplicaSet, apiVersion: apps/v1, metadata: {name: r}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, resources: {requests: {memory: "X"}}}]}}}}
`, "X", amount)
}

// scenarioWith has an amount in each part of a scenario that has one.
func scenarioWith(amount string) string {
	return strings.ReplaceAll(`apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: amounts}
spec:
  nodes: [{name: n, template: {allocatable: {cpu: "X", memory: 8Gi, pods: 10}}}]
  nodeGroups: [{name: g, max: 3, template: {allocatable: {cpu: "X", memory: "X", pods: 10}}}]
  objects:
  - {kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: "X"}}}]}}
  workload: [{name: w, count: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "X", memory: 1Gi}}}]}}}]
`, "X", amount)
}

// TestAmountsThatTakeForeverArePlayedAtOnce, as far as they are accepted: the size of a group's nodes
// must be above 0.
func TestAmountsThatTakeForeverArePlayedAtOnce(t *testing.T) {
	for _, amount := range longAmounts {
		path := filepath.Join(t.TempDir(), "dump.yaml")
		if err := os.WriteFile(path, []byte(dumpWith(amount)), 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := scenario.Load([]string{path})
		if err != nil {
			t.Fatalf("%s: %v", amount, err)
		}
		playBriefly(t, runs[0])
		r, err := scenario.Parse("nowhere/scenario.yaml", []byte(scenarioWith(amount)))
		if positive := amount[0] != '-' && amount[0] != '0'; positive != (err == nil) {
			t.Fatalf("%s: %v", amount, err)
		}
		if err == nil {
			playBriefly(t, r)
		}
	}
}

// smallExamples returns the files of the examples and of the random worlds' tests that have fewer
// bytes than a limit.
func smallExamples(t testing.TB, limit int) (out [][]byte) {
	for _, pattern := range []string{"soak/testdata/*.yaml", "../examples/*/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) < limit {
				out = append(out, raw)
			}
		}
	}
	return out
}

// FuzzScenario reads any text as a scenario.
func FuzzScenario(f *testing.F) {
	for _, raw := range smallExamples(f, 8<<10) {
		f.Add(raw)
	}
	for _, amount := range longAmounts {
		f.Add([]byte(scenarioWith(amount)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if large.Match(raw) {
			return
		}
		r, err := scenario.Parse("nowhere/scenario.yaml", raw)
		if err != nil {
			return
		}
		playBriefly(t, r)
	})
}

// FuzzDump reads any text as a dump or a manifest.
func FuzzDump(f *testing.F) {
	for _, path := range []string{"../examples/explain/dump.yaml", "../examples/headroom/buffers.yaml", "../examples/headroom/request.yaml"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","annotations":{"berth.dev/run-for":"1s..2s","berth.dev/arrive-after":"-1s"}},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}]}`))
	f.Add([]byte("apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}\n---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r}\nspec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {maxUnavailable: 200%, selector: {}}\n"))
	f.Add([]byte("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: -3, completions: 5, template: {spec: {containers: [{name: c}]}}}\n---\n- a\n---\n[]\n---\n{kind: StatefulSet, apiVersion: apps/v1, metadata: {name: s}, spec: {replicas: 2}}\n"))
	f.Add([]byte("kind: List\napiVersion: v1\nitems:\n- {kind: Node, apiVersion: v1, metadata: {name: node}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}\n- {kind: StorageClass, apiVersion: storage.k8s.io/v1, metadata: {name: s}, provisioner: d, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [{}]}\n- {kind: PersistentVolumeClaim, apiVersion: v1, metadata: {name: c, namespace: default}, spec: {storageClassName: s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n- {kind: Pod, apiVersion: v1, metadata: {name: p, namespace: default}, spec: {containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}\n"))
	for _, amount := range longAmounts {
		f.Add([]byte(dumpWith(amount)))
	}
	path := filepath.Join(f.TempDir(), "dump.yaml")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if large.Match(raw) {
			return
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := scenario.Load([]string{path})
		if err != nil {
			return
		}
		for _, r := range runs {
			playBriefly(t, r)
		}
	})
}
