// Package observe shows what a live Berth does: metrics under kube-scheduler's names,
// health, configuration, profiles, and the decisions behind a pod.
//
// Server is a drive.Hook: it sees every Step, in the goroutine that owns the core.
// HTTP requests come in goroutines of their own; what they read is either kept here
// under a lock (metrics, history), or asked of the core between two Steps (Questions).
package observe
