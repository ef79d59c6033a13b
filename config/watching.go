package config

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// This file has the flags of what operators watch: the status ConfigMap, metrics and the health
// check.

// Watching is what these flags set.
type Watching struct {
	Namespace string // of the autoscaler's ConfigMaps
	// WriteStatus and StatusName are of the ConfigMap with the status (StatusConfigMap).
	WriteStatus bool
	StatusName  string // of the status ConfigMap
	// PerGroupMetrics asks for series of each node group, whose number grows with the groups'.
	PerGroupMetrics bool
	// Times of the health check.
	MaxInactivity, MaxFailing, MaxStartup time.Duration
}

func defaultWatching() Watching {
	return Watching{
		Namespace: "kube-system", WriteStatus: true, StatusName: "cluster-autoscaler-status",
		MaxInactivity: 10 * time.Minute, MaxFailing: 15 * time.Minute, MaxStartup: 20 * time.Minute,
	}
}

// StatusConfigMap returns the name of the status ConfigMap, "" when none is to be written.
func (w *Watching) StatusConfigMap() string {
	if !w.WriteStatus {
		return ""
	}
	return w.StatusName
}

func (w *Watching) flags() []flag {
	return []flag{
		textFlag("namespace", &w.Namespace, namespaceName, "namespace of the autoscaler's ConfigMaps: its status and the priorities of the expander priority"),
		boolFlag("write-status-configmap", &w.WriteStatus, "write the autoscaler's status to a ConfigMap, with events on it"),
		textFlag("status-config-map-name", &w.StatusName, objectName, "name of the status ConfigMap"),
		boolFlag("emit-per-nodegroup-metrics", &w.PerGroupMetrics, "emit per-node-group metrics: cluster_autoscaler_node_group_*"),
		durationFlag("max-inactivity", &w.MaxInactivity, moreThanZero, "maximum time since the last recorded autoscaler activity before /health-check fails"),
		durationFlag("max-failing-time", &w.MaxFailing, moreThanZero, "maximum time since the last recorded successful autoscaler run before /health-check fails"),
		durationFlag("max-startup-time", &w.MaxStartup, moreThanZero, "maximum time until the first successful autoscaler run before /health-check fails, if longer than the two above"),
	}
}

// namespaceName refuses what can't be the name of a namespace.
func namespaceName(name string) string { return named(validation.IsDNS1123Label(name)) }

// objectName refuses what can't be the name of an object.
func objectName(name string) string { return named(validation.IsDNS1123Subdomain(name)) }

func named(wrong []string) string {
	if len(wrong) == 0 {
		return ""
	}
	return "it is not a valid name: " + strings.Join(wrong, "; ")
}
