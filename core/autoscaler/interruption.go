package autoscaler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berthproject/berth/core/cluster"
)

// This file recognises the taints and conditions with which a cloud, or its termination handler, announces
// that it is about to take a node: a reclaimed spot instance, or a host that goes into maintenance.

// InterruptedTaint keeps pods off a node that the cloud is about to take, in Berth's state only. Its
// value is the mark's name as far as a taint's value can hold it. The key has two slashes, which no
// taint in the API may have: nobody but Berth can say this of a node. A taint berth.dev/interrupted in
// the API is a taint like any other.
const InterruptedTaint = "berth.dev/interrupted/in-state"

// conditionPrefix begins the text of a mark that is a condition.
const conditionPrefix = "condition:"

// InterruptionMark is a taint or a condition that announces the interruption of its node. Exactly one
// of the first two fields is set.
type InterruptionMark struct {
	Taint     string `json:",omitempty"` // key
	Condition string `json:",omitempty"` // type; it counts while its status is True
	// Warning is how long after the mark the cloud takes the node; 0 when that isn't known.
	Warning time.Duration `json:",omitempty"`
}

// DefaultInterruptionMarks returns the marks that are set on nodes which are going for certain, by the
// handlers of AWS, Google Cloud and Azure. Rebalance recommendations aren't among them: most of
// these nodes are never taken. Nor is VMEventScheduled, which also announces a pause of seconds.
func DefaultInterruptionMarks() []InterruptionMark {
	return []InterruptionMark{
		{Taint: "aws-node-termination-handler/spot-itn", Warning: 2 * time.Minute},
		{Taint: "aws-node-termination-handler/scheduled-maintenance"},
		{Taint: "aws-node-termination-handler/asg-lifecycle-termination"},
		{Taint: "cloud.google.com/impending-node-termination", Warning: 30 * time.Second},
		{Taint: "remediator.kubernetes.azure.com/unschedulable", Warning: 30 * time.Second},
		{Condition: "PreemptionScheduled", Warning: 30 * time.Second},
	}
}

// ParseInterruptionMark reads a mark as --node-interruption-marks has it: a taint's key, or
// "condition:" and a condition's type, and optionally "=" and the warning. Taints that Berth or the
// node controller sets are refused: they say something else.
func ParseInterruptionMark(text string) (InterruptionMark, error) {
	name, warning, timed := strings.Cut(strings.TrimSpace(text), "=")
	m := InterruptionMark{Taint: name}
	if condition, is := strings.CutPrefix(name, conditionPrefix); is {
		m = InterruptionMark{Condition: condition}
	}
	if timed {
		d, err := time.ParseDuration(warning)
		if err != nil || d <= 0 {
			return InterruptionMark{}, fmt.Errorf("the warning of %q is %q; it must be a duration greater than 0, such as 30s", name, warning)
		}
		m.Warning = d
	}
	if faults := validation.IsQualifiedName(m.name()); faults != nil {
		return InterruptionMark{}, fmt.Errorf("%q is no taint key, nor %s and a condition type: %s", name, conditionPrefix, strings.Join(faults, ", "))
	}
	switch {
	case m.Taint == ToBeDeletedTaint || m.Taint == DeletionCandidateTaint || slices.Contains(conditionTaints, m.Taint):
		return InterruptionMark{}, fmt.Errorf("%s announces no interruption: an autoscaler or the node controller sets it; name a taint of a termination handler", m.Taint)
	case m.Condition == string(v1.NodeReady):
		return InterruptionMark{}, errors.New("the condition Ready announces no interruption; name one of a termination handler")
	}
	return m, nil
}

// name returns the key or the type.
func (m InterruptionMark) name() string {
	if m.Condition != "" {
		return m.Condition
	}
	return m.Taint
}

// String returns the mark as ParseInterruptionMark reads it.
func (m InterruptionMark) String() string {
	out := m.name()
	if m.Condition != "" {
		out = conditionPrefix + out
	}
	if m.Warning > 0 {
		out += "=" + m.Warning.String()
	}
	return out
}

// Said returns the mark in words: "taint KEY" or "condition TYPE".
func (m InterruptionMark) Said() string {
	if m.Condition != "" {
		return "condition " + m.Condition
	}
	return "taint " + m.Taint
}

// on reports whether a node carries the mark.
func (m InterruptionMark) on(n *cluster.NodeInfo) bool {
	if m.Condition == "" {
		return n.HasTaint(m.Taint)
	}
	return slices.ContainsFunc(n.Object.Status.Conditions, func(c v1.NodeCondition) bool {
		return string(c.Type) == m.Condition && c.Status == v1.ConditionTrue
	})
}

// FindInterruption returns the first mark that a node carries, nil for none.
func FindInterruption(marks []InterruptionMark, n *cluster.NodeInfo) *InterruptionMark {
	for i := range marks {
		if marks[i].on(n) {
			return &marks[i]
		}
	}
	return nil
}

// Going reports whether a node will soon be gone: it is being removed, by whomever, or the cloud is
// about to take it. No room is kept on such a node, whatever its pods tolerate.
func Going(n *cluster.NodeInfo) bool {
	return n.Object.DeletionTimestamp != nil || n.HasTaint(ToBeDeletedTaint) || n.HasTaint(InterruptedTaint)
}

// Interrupted returns a node as the state has it that carries a mark.
func (m InterruptionMark) Interrupted(n *cluster.NodeInfo) *cluster.NodeInfo {
	value := m.name()
	if i := strings.LastIndexByte(value, '/'); i >= 0 {
		value = value[i+1:]
	}
	return n.WithTaint(v1.Taint{Key: InterruptedTaint, Value: value, Effect: v1.TaintEffectNoSchedule})
}
