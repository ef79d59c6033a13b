// Package observe shows what a live Berth does: metrics under kube-scheduler's names,
// health, configuration, profiles, and the decisions behind a pod.
//
// Server is a drive.Hook: it sees every Step, in the goroutine that owns the core.
// HTTP requests come in goroutines of their own; what they read is either kept here
// under a lock (metrics, history), or asked of the core between two Steps (Questions).
//
//	server.go       the server, as the rest of Berth sees it
//	serving.go, certificate.go
//	                HTTPS, who may ask, and the certificate
//	handlers.go     the paths
//	api.go          what the API of edge/api answers from
//	zpages.go       /statusz, /flagz and /configz
//	explain.go, names.go, status.go, shadow.go, resources.go
//	                what is asked of the core
//	history*.go, log.go
//	                decisions, kept and logged
//	healthcheck.go  Cluster Autoscaler's health check
//	registry.go     how metrics are made, and the list of all
//	metrics*.go     the metrics, subject by subject
//
// What must hold:
//   - a request never holds up the core for longer than one question takes, and at most one
//     question of /debug/explain and /debug/status waits for it at a time;
//   - memory is bounded whatever is asked and however long Berth runs: the history by its number of
//     decisions and by bytes, and gauges of node groups go with their groups;
//   - series of scheduler_* and cluster_autoscaler_* keep upstream's names, labels and meaning, so that
//     dashboards and alerts for those programs hold.
package observe
