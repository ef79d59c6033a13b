package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/step"
)

// This file holds the metrics of preemptions that are carried out while other pods are scheduled
// (KEP-4832). What is a goroutine in kube-scheduler is here the calls that ask the victims of one
// preemptor to leave: from the first call until the last one is answered. Each preemption is
// counted under the names of kube-scheduler 1.36 and those that 1.37 has in their place, and under
// those by which the KEP states its objective, which no version of kube-scheduler serves.

// The values of the labels operation and result.
const (
	operationPreemption = "preemption"
	resultSuccess       = "success"
	resultError         = "error"
)

// preemptionMetrics are the metrics of calls that ask victims to leave.
type preemptionMetrics struct {
	took      *prometheus.HistogramVec // by result
	executed  *prometheus.CounterVec   // by result
	tookOf    *prometheus.HistogramVec // by operation
	executeds *prometheus.CounterVec   // by operation and result

	// Of kube-scheduler 1.37, by preemptor: a pod or a pod group.
	evaluation *prometheus.HistogramVec // and by status code
	execution  *prometheus.HistogramVec // and by result
	violations *prometheus.CounterVec

	// executing are the preemptions with calls in flight, by preemptor.
	executing map[types.UID]*execution
}

// execution is a preemption with calls in flight.
type execution struct {
	by     string // entityPod or entityPodGroup
	began  time.Time
	calls  int  // in flight, at least 1
	failed bool // a call has failed
}

func newPreemptionMetrics(r *registry) preemptionMetrics {
	r.subsystem = "scheduler"
	seconds, short := prometheus.ExponentialBuckets(0.01, 2, 20), prometheus.ExponentialBuckets(0.001, 2, 16)
	m := preemptionMetrics{
		took:       r.histograms("preemption_goroutines_duration_seconds", "Duration of carrying out a preemption, from the first call that asks one of its victims to leave until the last is answered, by result. The pod's nomination is written first. Deprecated in kube-scheduler 1.37: use preemption_execution_duration_seconds.", seconds, "result"),
		executed:   r.counters("preemption_goroutines_execution_total", "Number of preemptions carried out, by result: success, or error if a victim could not be asked to leave.", "result"),
		tookOf:     r.histograms("goroutines_duration_seconds", "The same as preemption_goroutines_duration_seconds, under the name in KEP-4832, which kube-scheduler does not serve.", seconds, "operation"),
		executeds:  r.counters("goroutines_execution_total", "The same as preemption_goroutines_execution_total, under the name in KEP-4832, which kube-scheduler does not serve. The objective there is less than 1 % errors.", "operation", "result"),
		evaluation: r.histograms("preemption_evaluation_duration_seconds", "Duration of the decisions that looked for preemption victims, by status: Success if there were some, otherwise Unschedulable. Victims are looked for within a decision, so its whole share of those made together counts, as in scheduling_algorithm_duration_seconds.", short, "preemptor", "result"),
		execution:  r.histograms("preemption_execution_duration_seconds", "The same as preemption_goroutines_duration_seconds, under its name in kube-scheduler 1.37 and with finer buckets.", short, "preemptor", "result"),
		violations: r.counters("preemption_pdb_violations_total", "Number of violations of disruption budgets by preemption victims.", "preemptor"),
		executing:  map[types.UID]*execution{},
	}
	m.violations.WithLabelValues(entityPod)
	m.violations.WithLabelValues(entityPodGroup)
	for _, result := range []string{resultSuccess, resultError} {
		m.executed.WithLabelValues(result)
		m.executeds.WithLabelValues(operationPreemption, result)
	}
	return m
}

// evaluated counts the searches for victims: one for each pod that found no node, and for each pod group whose members
// found too few. Each took its share of the Step, a group's for each member. The ledger names the victims directly
// after the pod or group, if there are some.
func (m *preemptionMetrics) evaluated(decisions []step.Decision, took time.Duration) {
	for i := range decisions {
		d := &decisions[i]
		by, share := entityPod, took
		switch d.Kind {
		case step.Waits:
		case step.GroupWaits:
			by, share = entityPodGroup, took*time.Duration(d.Members)
		default:
			continue
		}
		status := "Unschedulable"
		if i+1 < len(decisions) && decisions[i+1].Kind == step.Preempts && decisions[i+1].Pod == d.Pod && decisions[i+1].PodGroup == d.PodGroup {
			status = "Success"
		}
		m.evaluation.WithLabelValues(by, status).Observe(share.Seconds())
	}
}

// step follows calls from when a Step hands them out until the Step that brings their outcome. A
// victim that goes before its call is answered is owed the outcome all the same.
func (m *preemptionMetrics) step(now time.Time, inputs []step.Input, ready *step.Ready) {
	for _, in := range inputs {
		if done, ok := in.(step.PreemptionDone); ok {
			m.done(now, done)
		}
	}
	for i := range ready.Preemptions {
		p := &ready.Preemptions[i]
		if m.executing[p.By] == nil {
			by := entityPod
			if p.ByGroup {
				by = entityPodGroup
			}
			m.executing[p.By] = &execution{by: by, began: now}
		}
		m.executing[p.By].calls++
	}
}

// done counts an answer, and the preemption when it is the last one. It has failed when any call has.
func (m *preemptionMetrics) done(now time.Time, done step.PreemptionDone) {
	x := m.executing[done.By]
	if x == nil {
		return
	}
	x.failed = x.failed || done.Err != nil
	if x.calls--; x.calls > 0 {
		return
	}
	delete(m.executing, done.By)
	result, took := resultSuccess, now.Sub(x.began).Seconds()
	if x.failed {
		result = resultError
	}
	m.took.WithLabelValues(result).Observe(took)
	m.execution.WithLabelValues(x.by, result).Observe(took)
	m.executed.WithLabelValues(result).Inc()
	m.tookOf.WithLabelValues(operationPreemption).Observe(took)
	m.executeds.WithLabelValues(operationPreemption, result).Inc()
}
