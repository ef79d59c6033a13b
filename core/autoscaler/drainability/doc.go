// Package drainability says of a pod whether it may be evicted so that its node can be
// removed. The rules are Cluster Autoscaler's (pkg/simulator/drainability/rules there), of
// the same names and in the same order, each in a file of its own; beside them, Karpenter's
// karpenter.sh/do-not-disrupt is honoured.
//
// Whether a disruption budget allows the eviction is no rule here: what a budget has left
// depends on the pods that were given up before, which the caller counts.
package drainability
