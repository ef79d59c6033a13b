package observe

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// This file reads the metrics of kube-scheduler of both versions, as testdata has them, and says why Berth
// doesn't serve some of them.

// Why metrics of kube-scheduler aren't served.
const (
	pluginsTogether = "the rules of all plugins are evaluated together and their results cached: scheduling_algorithm_duration_seconds has the time of a decision"
	noCallQueue     = "calls to the API server are not queued by type: goroutines has those in flight"
	noEventList     = "an input is applied in the step that it arrives in: berth_step_duration_seconds has its time"
	noBatches       = "pods that no rule distinguishes are always evaluated once, there are no hints to be used or flushed, and no node is rescored for one"
	noPlacements    = "the topology domains that could hold a pod group are found by a bound, and few are tried: the ledger says which was taken"
	noHints         = "rules are asked about all changes of a step together, and most answer from an index: berth_step_duration_seconds has their time"
)

// notServed says why Berth has no metric of a name.
var notServed = map[string]string{
	"event_handling_duration_seconds":           noEventList,
	"inflight_events":                           noEventList,
	"batch_attempts_total":                      noBatches,
	"batch_cache_flushed_total":                 noBatches,
	"batch_rescore_attempts_total":              noBatches,
	"batch_rescore_duration_seconds":            noBatches,
	"get_node_hint_duration_seconds":            noBatches,
	"store_schedule_results_duration_seconds":   noBatches,
	"plugin_execution_duration_seconds":         pluginsTogether,
	"queueing_hint_execution_duration_seconds":  noHints,
	"pre_queueing_hint_evaluations_total":       noHints,
	"async_api_call_execution_total":            noCallQueue,
	"async_api_call_execution_duration_seconds": noCallQueue,
	"pending_async_api_calls":                   noCallQueue,
	"generated_placements_total":                noPlacements,
	"placement_evaluations_total":               noPlacements,
	"placement_evaluation_duration_seconds":     noPlacements,
	"volume_binder_cache_requests_total":        "volumes are matched in the state of the cluster, there is no cache beside it",
	"volume_scheduling_stage_error_total":       "a volume that can't be bound rejects nodes, which unschedulable_pods counts; a failed write is an attempt that ends in an error",
}

// defined is a metric as a version of kube-scheduler defines it.
type defined struct {
	name, kind, stability string
	labels, deprecated    string
	buckets               []float64
}

// definedIn returns the metrics of a version, as devcluster/upstream has written them, by name.
func definedIn(t *testing.T, version string) map[string]defined {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "kube-scheduler-"+version+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]defined{}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		m := defined{name: words[0], kind: words[1], stability: words[2]}
		for _, w := range words[3:] {
			switch key, value, _ := strings.Cut(w, "="); key {
			case "labels":
				m.labels = strings.ReplaceAll(value, ",", " ")
			case "buckets":
				m.buckets = bucketsOf(t, value)
			case "deprecated":
				m.deprecated = value
			default:
				t.Fatalf("unknown property %q of %s", w, m.name)
			}
		}
		out[m.name] = m
	}
	return out
}

// bucketsOf returns what ExponentialBuckets(START,FACTOR,COUNT) evaluates to.
func bucketsOf(t *testing.T, expression string) []float64 {
	t.Helper()
	inner, ok := strings.CutPrefix(strings.TrimSuffix(expression, ")"), "ExponentialBuckets(")
	arguments := strings.Split(inner, ",")
	if !ok || len(arguments) != 3 {
		t.Fatalf("can't evaluate the buckets %s", expression)
	}
	var numbers [3]float64
	for i, x := range arguments {
		var err error
		if numbers[i], err = strconv.ParseFloat(x, 64); err != nil {
			t.Fatalf("can't evaluate the buckets %s: %v", expression, err)
		}
	}
	return prometheus.ExponentialBuckets(numbers[0], numbers[1], int(numbers[2]))
}

// ofKubeScheduler returns the metrics under scheduler_ of both versions. What both have is as 1.37 has it.
func ofKubeScheduler(t *testing.T) (out []upstream) {
	t.Helper()
	old, all := definedIn(t, "1.36"), definedIn(t, "1.37")
	for name, m := range old {
		if _, ok := all[name]; !ok {
			all[name] = m
		}
	}
	for full, m := range all {
		if name, ok := strings.CutPrefix(full, "scheduler_"); ok {
			out = append(out, upstream{name: name, kind: m.kind, labels: m.labels, buckets: m.buckets, why: notServed[name]})
		}
	}
	slices.SortFunc(out, func(a, b upstream) int { return strings.Compare(a.name, b.name) })
	return out
}

// TestReasonsAreOfMetricsUpstream fails for a reason of a metric that neither version has, and for
// a metric under another prefix that Berth doesn't have.
func TestReasonsAreOfMetricsUpstream(t *testing.T) {
	known := map[string]bool{}
	for _, version := range []string{"1.36", "1.37"} {
		for name := range definedIn(t, version) {
			known[name] = true
			if !strings.HasPrefix(name, "scheduler_") && !slices.ContainsFunc(NewMetrics().List(), func(m Metric) bool { return m.Name == name }) {
				t.Errorf("%s has no value", name)
			}
		}
	}
	for name := range notServed {
		if !known["scheduler_"+name] {
			t.Errorf("no version has scheduler_%s", name)
		}
	}
}

// TestVersionsDefineOneMetricAlike: a metric that both versions have has the same type, labels and buckets
// in both, so that one series serves the dashboards of either.
func TestVersionsDefineOneMetricAlike(t *testing.T) {
	later := definedIn(t, "1.37")
	for name, was := range definedIn(t, "1.36") {
		if is, ok := later[name]; ok && (was.kind != is.kind || was.labels != is.labels || !slices.Equal(was.buckets, is.buckets)) {
			t.Errorf("%s is %+v in 1.36 and %+v in 1.37", name, was, is)
		}
	}
}

// stabilityOf returns how stable kube-scheduler calls each of its metrics, with the versions where these differ.
func stabilityOf(t *testing.T) map[string]string {
	t.Helper()
	old, out := definedIn(t, "1.36"), map[string]string{}
	for name, m := range definedIn(t, "1.37") {
		text := m.stability
		if was, ok := old[name]; !ok {
			text += ", new in 1.37"
		} else if was.stability != m.stability {
			text += ", in 1.36 " + was.stability
		}
		if m.deprecated != "" {
			text += ", deprecated in " + m.deprecated
		}
		out[name] = text
	}
	for name, m := range old {
		if out[name] == "" {
			out[name] = m.stability + ", not in 1.37"
		}
	}
	return out
}
