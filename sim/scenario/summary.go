package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// This file is what is known of a run in the end, and how it compares with what the
// scenario expects. Names of metrics are the dotted names of the summary's JSON fields.

// Summary is the outcome of a run. Its JSON names are stable; docs/reference/
// scenario.md describes them.
type Summary struct {
	Name string `json:"name"`
	Seed uint64 `json:"seed"` // of the scenario
	Pods struct {
		Total     int `json:"total"`     // pods that existed
		Bound     int `json:"bound"`     // pods that got a node
		Completed int `json:"completed"` // pods that ran to their end
		Running   int `json:"running"`   // pods that run in the end
		Pending   int `json:"pending"`   // pods without a node in the end
		ToCome    int `json:"toCome"`    // pods that would have come after the end, those of controllers included
		Evicted   int `json:"evicted"`   // evictions granted
		Preempted int `json:"preempted"` // pods preempted for others
		Lost      int `json:"lost"`      // pods whose node went under them
	} `json:"pods"`
	TimeToBound   Quantiles `json:"timeToBound"`   // seconds from a pod's arrival to its node
	TimeToRunning Quantiles `json:"timeToRunning"` // seconds from a pod's arrival to its start
	TimeToEnd     Quantiles `json:"timeToEnd"`     // seconds from a pod's arrival to its end, of those that ran to it
	Nodes         struct {
		Peak              int `json:"peak"`              // most nodes at a time
		Launched          int `json:"launched"`          // instances that became nodes
		FailedLaunches    int `json:"failedLaunches"`    // instances that did not become nodes, and those of refused orders
		CancelledLaunches int `json:"cancelledLaunches"` // instances that Berth gave up before they became nodes, since no pod needed them any more
		Removed           int `json:"removed"`           // nodes that went
		Final             int `json:"final"`             // nodes in the end
		InVain            int `json:"inVain"`            // nodes that Berth bought and on which no pod has ever been but those of DaemonSets
	} `json:"nodes"`
	Drain     Drain   `json:"drain"`
	Resizes   Resizes `json:"resizes"`
	NodeHours float64 `json:"nodeHours"` // of instances that the cloud charges for
	Cost      float64 `json:"cost"`      // node hours times price
	GPUHours  struct {
		Used float64 `json:"used"` // GPUs that pods on nodes request, times hours
		Idle float64 `json:"idle"` // the other GPUs of nodes that are ready, times hours
	} `json:"gpuHours"`
	Utilization struct {
		CPU    float64 `json:"cpu"`    // requested share of allocatable, time-weighted, 0 to 1
		Memory float64 `json:"memory"` // requested share of allocatable, time-weighted, 0 to 1
	} `json:"utilization"`
	PDBViolations  int            `json:"pdbViolations"`  // removals that a disruption budget forbade
	Violations     int            `json:"violations"`     // of rules and invariants; see the text
	Churn          int            `json:"churn"`          // nodes removed within 15 minutes of their launch
	BoughtBack     int            `json:"boughtBack"`     // nodes ordered of a group within 30 minutes after Berth removed one of it; each removal counts once
	PeakWriteRate  float64        `json:"peakWriteRate"`  // highest rate, in bytes a second, of boots and pulls
	Decisions      map[string]int `json:"decisions"`      // by kind
	VirtualSeconds float64        `json:"virtualSeconds"` // until the last change
	WallSeconds    float64        `json:"wallSeconds"`    // of the simulation itself
	Digest         string         `json:"digest"`         // of the ordered decisions
}

// Drain is what deleting nodes has cost the pods on them.
type Drain struct {
	Nodes      int     `json:"nodes"`      // nodes that Berth deleted after it had evicted pods from them
	Pods       int     `json:"pods"`       // pods that Berth evicted so that their node could go, without those of DaemonSets
	Homeless   int     `json:"homeless"`   // evicted pods whose replacement had no node 30 s after it was created
	GapSeconds float64 `json:"gapSeconds"` // pod-seconds without a running replacement, over all evicted pods
	Duration   float64 `json:"duration"`   // seconds from the first eviction until the last drained node was deleted
}

// Resizes counts changes in place of what running pods request.
type Resizes struct {
	Requested  int `json:"requested"`  // resizes that were asked for
	Done       int `json:"done"`       // resizes that kubelets carried out
	Deferred   int `json:"deferred"`   // times that a kubelet deferred one
	Infeasible int `json:"infeasible"` // times that a kubelet called one infeasible
	Moved      int `json:"moved"`      // pods that Berth evicted from nodes that stay, since their resize was pending
	Waiting    int `json:"waiting"`    // resizes that are pending in the end
}

// Quantiles of a distribution; zeros when it is empty.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// QuantilesOf returns the quantiles of values, by the nearest rank: each is one of them.
func QuantilesOf(values []float64) Quantiles {
	if len(values) == 0 {
		return Quantiles{}
	}
	s := slices.Sorted(slices.Values(values))
	at := func(p float64) float64 { return s[min(int(p*float64(len(s))), len(s)-1)] }
	return Quantiles{at(0.5), at(0.9), at(0.99), s[len(s)-1]}
}

// numbers returns the numbers of the summary by the dotted names of their JSON fields.
func (s *Summary) numbers() map[string]float64 {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of plain fields
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		panic(err)
	}
	out := map[string]float64{}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		switch x := v.(type) {
		case float64:
			out[prefix] = x
		case map[string]any:
			for k, y := range x {
				walk(strings.TrimPrefix(prefix+"."+k, "."), y)
			}
		}
	}
	walk("", tree)
	return out
}

// Number returns a metric by name, 0 for an unknown one: so is a kind of decision that
// never came.
func (s *Summary) Number(metric string) float64 { return s.numbers()[metric] }

// Metrics returns the names that expectations may use.
func Metrics() []string {
	return slices.Sorted(maps.Keys((&Summary{}).numbers()))
}

// Check returns, as sentences, the expectations that the summary doesn't meet. Their metrics have been
// validated; one of a kind of decision that never came is 0.
func (s *Summary) Check(expect []Expectation) []string {
	numbers := s.numbers()
	var out []string
	for _, e := range expect {
		got := numbers[e.Metric]
		switch {
		case e.Is != nil && got != *e.Is:
			out = append(out, fmt.Sprintf("%s is %g, expected %g", e.Metric, got, *e.Is))
		case e.Min != nil && got < *e.Min:
			out = append(out, fmt.Sprintf("%s is %g, expected at least %g", e.Metric, got, *e.Min))
		case e.Max != nil && got > *e.Max:
			out = append(out, fmt.Sprintf("%s is %g, expected at most %g", e.Metric, got, *e.Max))
		}
	}
	return out
}
